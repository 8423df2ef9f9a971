"""Difference and intersection: a row's number of copies is a function of those in the operands."""

from __future__ import annotations

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    add,
    all_same,
    either,
    equal,
    integer,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Difference,
    Intersection,
    Output,
    Project,
    Relation,
    Select,
    Semijoin,
    SetOperation,
    Union,
    keep,
)
from freshview.algebra.schema import COUNT, Attribute
from freshview.delta.derivation import Derivation, Signed, renamed


def set_operation_delta(
    node: SetOperation, left: Signed | None, right: Signed | None, derivation: Derivation
) -> Signed | None:
    """δ(x) = f(a + δa, b + δb) − f(a, b) for every row x in δL or δR, which occurs a and b times before.

        L ∸ R: f = max(0, a − b)      L − R: f = 1 if a > 0 and b = 0, else 0
        L ∩ R as bags: f = min(a, b)  L ∩ R: f = 1 if a > 0 and b > 0, else 0

    a and b are counted in Lᵖʳᵉ and Rᵖʳᵉ, of the changed rows only; nulls are equal. Derived for bags;
    on sets f gives [B07] Table 4.1, rows ∩ and −, which the tests show.
    """
    if left is None and right is None:
        return None
    left = None if left is None else derivation.shared(left)
    right = None if right is None else derivation.shared(right)
    changed = [
        renamed(delta.relation, _columns(delta.relation), derivation.new)
        for delta in (left, right)
        if delta is not None
    ]
    fresh = changed[0][1]
    rows = (
        Union(tuple(relation for relation, _ in changed), fresh)
        if len(changed) > 1
        else changed[0][0]
    )
    counts = tuple(derivation.new.attribute(name, "bigint") for name in ("a", "b", "δa", "δb"))
    parts = [
        _counted(_among(derivation.pre(node.left), rows, fresh), counts, 0, integer(1)),
        _counted(_among(derivation.pre(node.right), rows, fresh), counts, 1, integer(1)),
    ]
    if left is not None:
        parts.append(_counted(left.relation, counts, 2, Column(COUNT)))
    if right is not None:
        parts.append(_counted(right.relation, counts, 3, Column(COUNT)))
    every = Union(tuple(parts), (*node.attributes, *counts))
    totals = tuple(
        AggregateOutput(
            derivation.new.attribute(c.name, "bigint"), AggregateCall("sum", (Column(c),), "bigint")
        )
        for c in counts
    )
    a, b, da, db = (Column(total.attribute) for total in totals)
    before = copies(node, a, b)
    after = copies(node, add(a, da, "bigint"), add(b, db, "bigint"))
    change = Call("-", (after, before), "bigint")
    counted = Project(
        Aggregate(every, node.attributes, totals),
        (*(keep(attribute) for attribute in node.attributes), Output(COUNT, change)),
    )
    return Signed(Select(counted, Call("not", (equal(Column(COUNT), integer(0)),), "boolean")))


def copies(node: SetOperation, a: Expression, b: Expression) -> Expression:
    """f(a, b): how often a row is in the result that is a times in the left operand and b in the right."""
    zero, one = integer(0), integer(1)

    def less(x: Expression, y: Expression) -> Expression:
        return Call("<", (x, y), "boolean")

    match node:
        case Difference(all=True):
            return either(less(b, a), Call("-", (a, b), "bigint"), zero)
        case Intersection(all=True):
            return either(less(a, b), a, b)
        case Difference():
            return either(Call("and", (less(zero, a), equal(b, zero)), "boolean"), one, zero)
        case Intersection():
            return either(Call("and", (less(zero, a), less(zero, b)), "boolean"), one, zero)


def _among(operand: Relation, rows: Relation, fresh: tuple[Attribute, ...]) -> Relation:
    """The rows of an operand that are among the changed ones."""
    return Semijoin(operand, rows, all_same(operand.attributes, fresh))


def _counted(
    rows: Relation, counts: tuple[Attribute, ...], place: int, value: Expression
) -> Relation:
    """Rows with one of the four counts set and the others 0."""
    columns = tuple(keep(a) for a in _columns(rows))
    values = (value if i == place else integer(0) for i in range(len(counts)))
    return Project(rows, (*columns, *(Output(c, v) for c, v in zip(counts, values, strict=True))))


def _columns(relation: Relation) -> tuple[Attribute, ...]:
    return tuple(a for a in relation.attributes if a != COUNT)
