"""Semijoin, antijoin and the mark join: a row of the left operand counts while it has a partner."""

from __future__ import annotations

from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    column,
    either,
    integer,
)
from freshview.algebra.relations import (
    Join,
    MarkJoin,
    Output,
    Project,
    Relation,
    Select,
    Semijoin,
    Union,
    Values,
    keep,
)
from freshview.algebra.schema import COUNT, Attribute
from freshview.delta.derivation import Derivation, Signed

TRUTHS = (Literal(True, "boolean", "true"), Literal(False, "boolean", "false"))


def semijoin_delta(
    node: Semijoin,
    left: Signed | None,
    right: Signed | None,
    derivation: Derivation,
    late: bool = False,
) -> Signed | None:
    """δ(L ⋉ R) = δL ⋉ Rᵖʳᵉ ⊎ the rows of Lᵖᵒˢᵗ that meet δR and gained (+1) or lost (−1) all partners.

    For L ▷ R the same with ▷ and the signs turned round. Derived for bags from [B07] 1.2 (⋉ is π_L(⋈),
    ▷ is L − (L ⋉ R)) and Table 4.1: whether a row has a partner is decided from R in both states, never
    from a NULL. With ``late`` the telescope runs the other way: δL meets Rᵖᵒˢᵗ and the rows that turn
    are those of Lᵖʳᵉ. Of R that only grew, no row can lose its last partner, and Rᵖᵒˢᵗ is not read.
    """
    first, second = (derivation.post, derivation.pre) if late else (derivation.pre, derivation.post)
    terms: list[Relation] = []
    if left is not None:
        terms.append(Semijoin(left.relation, first(node.right), node.on, node.anti))
    if right is not None:
        terms.append(_turned(node, derivation.shared(right), second(node.left), derivation))
    if not terms:
        return None
    grows = (left is None or left.insertions_only) and (
        right is None or (right.insertions_only and not node.anti)
    )
    whole = terms[0] if len(terms) == 1 else Union(tuple(terms), (*node.attributes, COUNT))
    return Signed(whole, grows)


def _turned(node: Semijoin, right: Signed, rows: Relation, derivation: Derivation) -> Relation:
    """The left rows whose having a partner turned, with the count by which the result changed."""
    if right.insertions_only:
        met = Semijoin(rows, _plain(right.relation), node.on)
        turned: Relation = Semijoin(met, derivation.pre(node.right), node.on, anti=True)
        count: Expression = integer(-1 if node.anti else 1)
    else:
        turned, _, has = turning(node, right, rows, derivation)
        count = either(column(has), integer(1), integer(-1))
        if node.anti:
            count = either(column(has), integer(-1), integer(1))
    kept = tuple(keep(a) for a in node.attributes)
    return Project(turned, (*kept, Output(COUNT, count)))


def turning(
    node: Semijoin | MarkJoin, right: Signed, rows: Relation, derivation: Derivation
) -> tuple[Relation, Attribute, Attribute]:
    """σ_{had≠has}: the rows that meet δR, with whether they had a partner and whether they have one."""
    had = derivation.new.attribute("had", "boolean", nullable=False)
    has = derivation.new.attribute("has", "boolean", nullable=False)
    met: Relation = Semijoin(rows, _plain(right.relation), node.on)
    met = MarkJoin(met, derivation.pre(node.right), node.on, had)
    met = MarkJoin(met, derivation.post(node.right), node.on, has)
    same = Call("=", (Column(had), Column(has)), "boolean")
    return Select(met, Call("not", (same,), "boolean")), had, has


def mark_join_delta(
    node: MarkJoin, left: Signed | None, right: Signed | None, derivation: Derivation
) -> Signed | None:
    """δ of L with a mark: δL marked by Rᵖʳᵉ, and for rows that turned, the new mark +1, the old −1."""
    terms: list[Relation] = []
    if left is not None:
        marked = MarkJoin(left.relation, derivation.pre(node.right), node.on, node.mark)
        terms.append(Project(marked, tuple(keep(a) for a in (*node.attributes, COUNT))))
    if right is not None:
        rows = derivation.post(node.left)
        turned, _, has = turning(node, derivation.shared(right), rows, derivation)
        both = Join(turned, Values((node.mark,), tuple((truth,) for truth in TRUTHS)))
        is_new = Call("=", (Column(node.mark), Column(has)), "boolean")
        count = Output(COUNT, either(is_new, integer(1), integer(-1)))
        terms.append(Project(both, (*(keep(a) for a in node.attributes), count)))
    if not terms:
        return None
    return Signed(terms[0] if len(terms) == 1 else Union(tuple(terms), (*node.attributes, COUNT)))


def _plain(delta: Relation) -> Relation:
    """The rows of a delta without their counts."""
    return Project(delta, tuple(keep(a) for a in delta.attributes if a != COUNT))
