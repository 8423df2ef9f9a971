"""Join and product: multilinear, so the delta telescopes over the operands that changed."""

from __future__ import annotations

from freshview.algebra.expressions import Expression, conjunction, conjuncts, references
from freshview.algebra.relations import Join, Project, Relation, Union, keep
from freshview.algebra.schema import COUNT, Attribute
from freshview.delta.derivation import Derivation, Signed


def join_delta(
    operands: tuple[Relation, ...],
    deltas: tuple[Signed | None, ...],
    on: tuple[Expression, ...],
    derivation: Derivation,
) -> Signed | None:
    """δ(E₁ ⋈ … ⋈ Eₙ), one term per changed operand.

    Σᵢ E₁ᵖᵒˢᵗ ⋈ … ⋈ Eᵢ₋₁ᵖᵒˢᵗ ⋈ δEᵢ ⋈ Eᵢ₊₁ᵖʳᵉ ⋈ … ⋈ Eₙᵖʳᵉ

    A term has one delta, which brings the signed count; the others are plain bags. Nothing is
    counted twice and no δ ⋈ δ appears. It is [B07] Definition 3.6 telescoped (the printed form with
    ⊎ counts Δ×Δ twice), and for two operands it equals [IS00] Exp. 1.2.6 and 1.2.7. Two occurrences
    of one table are two operands: a self-join needs no rule of its own ([GM06] footnote 8).
    """
    attributes = tuple(attribute for operand in operands for attribute in operand.attributes)
    terms = tuple(
        _term(operands, place, delta.relation, on, attributes, derivation)
        for place, delta in enumerate(deltas)
        if delta is not None
    )
    if not terms:
        return None
    whole = terms[0] if len(terms) == 1 else Union(terms, (*attributes, COUNT))
    return Signed(whole, all(delta is None or delta.insertions_only for delta in deltas))


def flatten(join: Join) -> tuple[tuple[Relation, ...], tuple[Expression, ...]]:
    """The operands of a tree of joins from left to right, and all its conditions."""
    operands: list[Relation] = []
    on = list(conjuncts(join.on))
    for side in (join.left, join.right):
        if isinstance(side, Join):
            below, conditions = flatten(side)
            operands += below
            on += conditions
        else:
            operands.append(side)
    return tuple(operands), tuple(on)


def _term(
    operands: tuple[Relation, ...],
    place: int,
    delta: Relation,
    on: tuple[Expression, ...],
    attributes: tuple[Attribute, ...],
    derivation: Derivation,
) -> Relation:
    """One term, joined outwards from its delta, so that each step meets as few rows as it can."""
    earlier = [derivation.post(operand) for operand in operands[:place]]
    waiting = earlier + [derivation.pre(operand) for operand in operands[place + 1 :]]
    joined, pending = delta, on
    while waiting:
        following = next((o for o in waiting if _connects(joined, o, pending)), waiting[0])
        waiting.remove(following)
        known = frozenset(joined.attributes + following.attributes)
        ready = tuple(part for part in pending if references(part) <= known)
        pending = tuple(part for part in pending if part not in ready)
        joined = Join(joined, following, conjunction(ready))
    return Project(joined, tuple(keep(attribute) for attribute in (*attributes, COUNT)))


def _connects(joined: Relation, operand: Relation, pending: tuple[Expression, ...]) -> bool:
    here, there = frozenset(joined.attributes), frozenset(operand.attributes)
    return any(
        references(part) <= here | there and references(part) & here and references(part) & there
        for part in pending
    )
