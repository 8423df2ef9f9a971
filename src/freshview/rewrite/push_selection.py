"""Push selections down: a row that cannot matter should be dropped before it is joined.

    σ_p(σ_q(E))        = σ_{q ∧ p}(E)
    σ_p(Π_o(E))        = Π_o(σ_{p[o]}(E))            o deterministic
    σ_p(L ⋈_q R)       = σ_{p_L}(L) ⋈_{q ∧ p_LR} σ_{p_R}(R)
    σ_p(L ⟕_q R)       = σ_{p_rest}(σ_{p_L}(L) ⟕_q R)
    σ_p(L ⋉ R), σ_p(L ▷ R)  push what reads L
    σ_p(E₁ ⊎ E₂)       = σ_p(E₁) ⊎ σ_p(E₂)          and so for ∩ and −
    σ_p(π_{G,F}(E))    = σ_{p_rest}(π_{G,F}(σ_{p_G}(E)))  G not empty
    σ_p(ω_{P,o,F}(E))  = σ_{p_rest}(ω_{P,o,F}(σ_{p_P}(E)))  whole partitions go or stay
    σ_p(μ_g(E))        = σ_{p_rest}(μ_g(σ_{p_E}(E)))

A predicate that is not deterministic stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from freshview.algebra.clock import is_moving
from freshview.algebra.expressions import (
    Column,
    Expression,
    conjunction,
    conjuncts,
    is_deterministic,
    references,
    substitute,
)
from freshview.algebra.relations import (
    Aggregate,
    Difference,
    Generate,
    Intersection,
    Join,
    OuterJoin,
    Project,
    Relation,
    Select,
    Semijoin,
    Sort,
    Union,
    Window,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import transform_up


def push_selection(relation: Relation) -> Relation:
    """Every selection of the tree as far down as it may go."""
    return transform_up(relation, _push)


def _push(node: Relation) -> Relation:
    match node:
        case Select(child, predicate):
            return _push_into(child, conjuncts(predicate), node)
        case Join(_, _, on) if on is not None:
            return _into_join(node, conjuncts(on))
        case Semijoin(_, right, on) if on is not None and not is_moving(node):
            inside, rest = _split(conjuncts(on), right.attributes)
            if not inside:
                return node
            return replace(node, right=_selected(right, inside), on=conjunction(rest))
        case OuterJoin(_, right, on, True, False) if on is not None:
            inside, rest = _split(conjuncts(on), right.attributes)
            if not inside:
                return node
            return replace(node, right=_selected(right, inside), on=conjunction(rest))
        case _:
            return node


def _push_into(child: Relation, parts: tuple[Expression, ...], original: Relation) -> Relation:
    """σ_parts(child) with the parts moved below ``child`` where that is allowed."""
    match child:
        case Select(below, predicate):
            return _push_into(below, conjuncts(predicate) + parts, original)
        case Project(below, outputs) if all(is_deterministic(o.expression) for o in outputs):
            values = {output.attribute: output.expression for output in outputs}
            moved = tuple(substitute(part, values) for part in parts)
            return replace(child, child=_selected(below, moved))
        case Join(_, _, on):
            return _into_join(child, conjuncts(on) + parts)
        case OuterJoin(left, _, _, True, False) | Semijoin(left, _, _):
            inside, rest = _split(parts, left.attributes)
            if inside:
                return _wrap(replace(child, left=_selected(left, inside)), rest)
        case Union(operands, attributes):
            each = tuple(_selected(o, _renamed(parts, attributes, o)) for o in operands)
            return replace(child, children=each)
        case Intersection(left, right) | Difference(left, right):
            inside, rest = _split(parts, left.attributes)
            if inside:
                others = _renamed(inside, left.attributes, right)
                pushed = replace(
                    child, left=_selected(left, inside), right=_selected(right, others)
                )
                return _wrap(pushed, rest)
        case Aggregate(below, group, _) if group:
            inside, rest = _split(parts, group)
            if inside:
                return _wrap(replace(child, child=_selected(below, inside)), rest)
        case Window(below, _, partition):
            inside, rest = _split(parts, [e.attribute for e in partition if isinstance(e, Column)])
            if inside:
                return _wrap(replace(child, child=_selected(below, inside)), rest)
        case Generate(below):
            inside, rest = _split(parts, below.attributes)
            if inside:
                return _wrap(replace(child, child=_selected(below, inside)), rest)
        case Sort(below, _):
            return replace(child, child=_selected(below, parts))
        case _:
            pass
    if isinstance(original, Select) and original.child is child:
        return original
    return _wrap(child, parts)


def _into_join(node: Join, parts: tuple[Expression, ...]) -> Relation:
    left_parts, rest = _split(parts, node.left.attributes)
    right_parts, both = _split(rest, node.right.attributes)
    on = conjunction(both)
    if not left_parts and not right_parts and conjuncts(node.on) == both:
        return node
    return Join(_selected(node.left, left_parts), _selected(node.right, right_parts), on)


def _selected(child: Relation, parts: tuple[Expression, ...]) -> Relation:
    """σ_parts(child), pushed further down at once."""
    predicate = conjunction(parts)
    return child if predicate is None else _push(Select(child, predicate))


def _wrap(child: Relation, parts: tuple[Expression, ...]) -> Relation:
    predicate = conjunction(parts)
    return child if predicate is None else Select(child, predicate)


def _split(
    parts: Iterable[Expression], attributes: Iterable[Attribute]
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """The parts that read only these attributes and are deterministic, and the others."""
    known = frozenset(attributes)
    inside: list[Expression] = []
    rest: list[Expression] = []
    for part in parts:
        fits = references(part) <= known and references(part) and is_deterministic(part)
        (inside if fits else rest).append(part)
    return tuple(inside), tuple(rest)


def _renamed(
    parts: tuple[Expression, ...], attributes: tuple[Attribute, ...], operand: Relation
) -> tuple[Expression, ...]:
    values: dict[Attribute, Expression] = {
        outer: Column(inner) for outer, inner in zip(attributes, operand.attributes, strict=True)
    }
    return tuple(substitute(part, values) for part in parts)
