"""Prune columns: what nobody above reads is not read from the table.

The columns of a scan decide what the change feed and the lookups fetch, and an update of a column
that no view reads cancels out before it costs anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from freshview.algebra.expressions import Expression, references
from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Previous,
    Project,
    Recursion,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    Window,
    keep,
)
from freshview.algebra.schema import Attribute

Needed = frozenset[Attribute]
_Node = TypeVar("_Node", bound=Relation)


def prune_columns(relation: Relation) -> Relation:
    """The same rows; below the top, only columns that something reads."""
    return _exactly(_prune(relation, frozenset(relation.attributes)), relation.attributes)


def _prune(node: Relation, needed: Needed) -> Relation:
    match node:
        case Scan(_, attributes):
            return _replaced(node, attributes=_kept(attributes, needed) or attributes[:1])
        case Changes() | Given() | Values() | Previous():
            return node
        case Recursion(anchor, step):
            return _replaced(node, anchor=prune_columns(anchor), step=prune_columns(step))
        case Intersection(left, right) | Difference(left, right):
            return _replaced(node, left=prune_columns(left), right=prune_columns(right))
        case Project(child, outputs):
            kept = tuple(o for o in outputs if o.attribute in needed) or outputs[:1]
            below = _reads(o.expression for o in kept)
            return _replaced(node, child=_prune(child, below), outputs=kept)
        case Aggregate(child, group, aggregates):
            used = tuple(a for a in aggregates if a.attribute in needed)
            if not group and not used:
                used = aggregates[:1]
            arguments = [e for a in used for e in a.call.arguments]
            filters = [a.call.filter for a in used if a.call.filter is not None]
            below = frozenset(group) | _reads([*arguments, *filters])
            return _replaced(node, child=_prune(child, below), aggregates=used)
        case Join() | OuterJoin() | Semijoin() | MarkJoin():
            below = needed | (references(node.on) if node.on is not None else frozenset())
            left = _prune(node.left, below & frozenset(node.left.attributes))
            right = _prune(node.right, below & frozenset(node.right.attributes))
            return _replaced(node, left=left, right=right)
        case Union():
            return _prune_union(node, needed)
        case Expand():
            return _prune_expand(node, needed)
        case _:
            return _prune_unary(node, needed)


def _prune_unary(
    node: Select | Repeat | Window | Generate | Sort | Limit, needed: Needed
) -> Relation:
    known = frozenset(node.child.attributes)
    match node:
        case Select(_, predicate):
            read = references(predicate)
        case Repeat(_, times):
            read = references(times)
        case Generate(_, generator):
            read = references(generator)
        case Sort(_, order) | Limit(_, _, _, order):
            read = _reads(key.expression for key in order)
        case Window(_, outputs, partition, order, ties):
            kept = tuple(o for o in outputs if o.attribute in needed)
            if not kept:
                return _prune(node.child, needed)
            if not any(o.call.needs_total_order for o in kept):
                ties = ()
            ordered = (key.expression for key in (*order, *ties))
            read = _reads([*partition, *ordered, *(a for o in kept for a in o.call.arguments)])
            node = _replaced(node, outputs=kept, ties=ties)
    return _replaced(node, child=_prune(node.child, (needed & known) | read))


def _prune_union(node: Union, needed: Needed) -> Relation:
    places = [i for i, attribute in enumerate(node.attributes) if attribute in needed] or [0]
    kept = tuple(node.attributes[i] for i in places)
    operands = []
    for operand in node.children:
        wanted = tuple(operand.attributes[i] for i in places)
        operands.append(_exactly(_prune(operand, frozenset(wanted)), wanted))
    return _replaced(node, children=tuple(operands), attributes=kept)


def _prune_expand(node: Expand, needed: Needed) -> Relation:
    places = [i for i, attribute in enumerate(node.attributes) if attribute in needed] or [0]
    projections = tuple(tuple(p[i] for i in places) for p in node.projections)
    below = _reads(e for projection in projections for e in projection)
    return _replaced(
        node,
        child=_prune(node.child, below),
        projections=projections,
        attributes=tuple(node.attributes[i] for i in places),
    )


def _exactly(relation: Relation, attributes: tuple[Attribute, ...]) -> Relation:
    if relation.attributes == attributes:
        return relation
    return Project(relation, tuple(keep(attribute) for attribute in attributes))


def _kept(attributes: tuple[Attribute, ...], needed: Needed) -> tuple[Attribute, ...]:
    return tuple(attribute for attribute in attributes if attribute in needed)


def _reads(expressions: Iterable[Expression]) -> Needed:
    return frozenset(a for expression in expressions for a in references(expression))


def _replaced(node: _Node, **fields: Any) -> _Node:
    if all(
        getattr(node, name) is new or getattr(node, name) == new for name, new in fields.items()
    ):
        return node
    return replace(node, **fields)
