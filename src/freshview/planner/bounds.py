"""Demands on the nodes of an expression: which rows of each can matter to the whole.

A bound at a node says that only its rows whose attribute is among some values are asked for; ``demands``
hands bounds down, one rule per operator. A rule is right if what the node yields for the rows that are
asked for depends only on the rows that it asks of its children.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from freshview.algebra.clock import Limits, ranges_in
from freshview.algebra.expressions import Call, Column, Expression, Literal, conjuncts, equality
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
)
from freshview.algebra.schema import Attribute

Leaf = Scan | Changes | Given
Known = Changes | Given


@dataclass(frozen=True, slots=True)
class Origin:
    """Columns of leaves that together hold every value of an attribute; null too if it is padded."""

    columns: tuple[tuple[Leaf, Attribute], ...]
    padded: bool = False

    @property
    def leaves(self) -> set[Leaf]:
        return {leaf for leaf, _ in self.columns}


@dataclass(frozen=True, slots=True)
class Bound:
    """Only rows whose attribute is among the values of the origin matter; null-safe or not.

    It holds as long as no origin in ``without_null`` has a null among its values.
    """

    attribute: Attribute
    origin: Origin
    null_safe: bool
    without_null: frozenset[Origin] = frozenset()


@dataclass(frozen=True, slots=True)
class Range:
    """Only rows whose attribute lies within one of the limits matter, which a row at hand holds.

    If one of them is NULL there, every row matters. The limits may be of another type than the
    attribute, a day and a moment: then it is the attribute cast to theirs that lies within them.
    """

    attribute: Attribute
    leaf: Given
    limits: Limits


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of a node: rows within all bounds and ranges, none while one of ``needs`` is empty."""

    bounds: tuple[Bound, ...] = ()
    needs: frozenset[Known] = frozenset()
    ranges: tuple[Range, ...] = ()


def nothing_demanded() -> Demand:
    """The demand on the top of an expression: all its rows."""
    return Demand()


def demands(node: Relation, asked: Demand) -> Iterator[tuple[Leaf, Demand]]:
    """The demand that reaches each leaf."""
    match node:
        case Scan() | Changes() | Given():
            yield node, asked
        case Values() | Previous():
            return
        case _:
            for child, demand in _handed_down(node, asked):
                yield from demands(child, demand)


def _handed_down(node: Relation, asked: Demand) -> Iterator[tuple[Relation, Demand]]:
    match node:
        case Select(child, predicate):
            yield child, _with(asked, _through_equalities(asked.bounds, predicate))
        case Project(child, outputs):
            held = {
                o.attribute: o.expression.attribute
                for o in outputs
                if isinstance(o.expression, Column)
            }
            yield child, _renamed(asked, held)
        case Aggregate(child, group, _):
            yield child, _renamed(asked, {a: a for a in group})
        case Repeat(child) | Sort(child) | Generate(child):
            yield child, _renamed(asked, {a: a for a in child.attributes})
        case Window(child, _, partition, _):
            kept = {e.attribute: e.attribute for e in partition if isinstance(e, Column)}
            yield child, _renamed(asked, kept)
        case Expand(child) | Limit(child):
            yield child, Demand(needs=asked.needs)
        case Recursion(anchor, step):
            yield anchor, Demand(needs=asked.needs)
            yield step, Demand(needs=asked.needs)
        case Union(operands, attributes):
            for operand in operands:
                yield (
                    operand,
                    _renamed(asked, dict(zip(attributes, operand.attributes, strict=True))),
                )
        case Intersection() | Difference():
            yield from _through_set_operation(node, asked)
        case Join(left, right, on):
            yield left, _meeting(asked, left, right, on)
            yield right, _meeting(asked, right, left, on)
        case Semijoin(left, right, on, anti):
            own = _renamed(asked, {a: a for a in left.attributes})
            yield left, own if anti else _meeting(own, left, right, on)
            yield right, _meeting(own, right, left, on)
        case MarkJoin(left, right, on, _):
            own = _renamed(asked, {a: a for a in left.attributes})
            yield left, own
            yield right, _meeting(own, right, left, on)
        case OuterJoin():
            yield from _through_outer_join(node, asked)
        case Scan() | Changes() | Given() | Values() | Previous():
            return
        case _:
            assert_never(node)


def _with(asked: Demand, more: Iterable[Bound]) -> Demand:
    return replace(asked, bounds=tuple(dict.fromkeys((*asked.bounds, *more))))


def _renamed(asked: Demand, names: dict[Attribute, Attribute]) -> Demand:
    """The bounds on attributes that the child has too, under its names."""
    bounds = tuple(
        replace(bound, attribute=names[bound.attribute])
        for bound in asked.bounds
        if bound.attribute in names
    )
    ranges = tuple(
        replace(held, attribute=names[held.attribute])
        for held in asked.ranges
        if held.attribute in names
    )
    return replace(asked, bounds=bounds, ranges=ranges)


def _meeting(asked: Demand, side: Relation, other: Relation, on: Expression | None) -> Demand:
    """The demand on a side of which only rows matter that meet a row of the other side.

    Its own bounds, those on an attribute that its own must equal, and what the other side holds.
    """
    own = frozenset(side.attributes)
    bounds = [bound for bound in asked.bounds if bound.attribute in own]
    for one, another, null_safe in _equalities(on):
        mine, theirs = (one, another) if one in own else (another, one)
        if mine not in own or theirs in own:
            continue
        bounds += [
            replace(bound, attribute=mine, null_safe=bound.null_safe and null_safe)
            for bound in asked.bounds
            if bound.attribute == theirs
        ]
        origin = origin_of(other, theirs)
        if origin is not None:
            bounds.append(Bound(mine, origin, null_safe))
    needs = asked.needs | emptied_by(other)
    return Demand(tuple(dict.fromkeys(bounds)), needs, _ranges(asked, side, other, on))


def _ranges(
    asked: Demand, side: Relation, other: Relation, on: Expression | None
) -> tuple[Range, ...]:
    """The ranges of a side of which only rows matter that meet a row of the other side.

    Its own, those on an attribute that its own must equal, and what the condition asks of it.
    """
    own = frozenset(side.attributes)
    ranges = [held for held in asked.ranges if held.attribute in own]
    for one, another, _ in _equalities(on):
        mine, theirs = (one, another) if one in own else (another, one)
        ranges += [
            replace(held, attribute=mine)
            for held in asked.ranges
            if mine in own and held.attribute == theirs
        ]
    for attribute, limits in ranges_in(on):
        if attribute in own:
            held = _held(attribute, limits, other)
            ranges += [] if held is None else [held]
    return tuple(dict.fromkeys(ranges))


def _held(attribute: Attribute, limits: Limits, other: Relation) -> Range | None:
    """Limits that the other side of a join takes from one row of a temporary."""
    leaves: set[Leaf] = set()
    columns: list[tuple[Attribute, Attribute]] = []
    for pair in limits:
        origins = [origin_of(other, end) if end in other.attributes else None for end in pair]
        known = [o.columns[0] for o in origins if o is not None and len(o.columns) == 1]
        if len(known) < len(pair):
            return None
        leaves.update(leaf for leaf, _ in known)
        columns.append((known[0][1], known[1][1]))
    leaf = leaves.pop()
    if leaves or not isinstance(leaf, Given):
        return None
    return Range(attribute, leaf, tuple(columns))


def _through_equalities(bounds: tuple[Bound, ...], predicate: Expression) -> Iterator[Bound]:
    """σ_{a=b}: a bound on one is a bound on the other."""
    for left, right, null_safe in _equalities(predicate):
        for bound in bounds:
            for one, other in ((left, right), (right, left)):
                if bound.attribute == one:
                    safe = bound.null_safe and null_safe
                    yield replace(bound, attribute=other, null_safe=safe)


def _equalities(predicate: Expression | None) -> Iterator[tuple[Attribute, Attribute, bool]]:
    for part in conjuncts(predicate):
        pair = equality(part)
        if pair is not None:
            assert isinstance(part, Call)
            yield *pair, part.operation == "<=>"


def _through_set_operation(
    node: Intersection | Difference, asked: Demand
) -> Iterator[tuple[Relation, Demand]]:
    """A row is in the result as the whole row that it is in both operands."""
    left, right = node.left, node.right
    places = tuple(zip(left.attributes, right.attributes, strict=True))
    ours = _renamed(asked, {a: a for a in left.attributes})
    theirs = _renamed(asked, dict(places))
    held = [(b, origin_of(left, a)) for a, b in places]
    known = tuple(Bound(b, origin, True) for b, origin in held if origin is not None)
    yield right, replace(_with(theirs, known), needs=asked.needs | emptied_by(left))
    if isinstance(node, Intersection):
        held = [(a, origin_of(right, b)) for a, b in places]
        known = tuple(Bound(a, origin, True) for a, origin in held if origin is not None)
        ours = replace(_with(ours, known), needs=asked.needs | emptied_by(right))
    yield left, ours


def _through_outer_join(node: OuterJoin, asked: Demand) -> Iterator[tuple[Relation, Demand]]:
    left, right, on = node.left, node.right, node.on
    yield left, _outer_side(asked, left, right, on, node.keeps_left, node.keeps_right)
    yield right, _outer_side(asked, right, left, on, node.keeps_right, node.keeps_left)


def _outer_side(
    asked: Demand,
    side: Relation,
    other: Relation,
    on: Expression | None,
    is_kept: bool,
    other_is_kept: bool,
) -> Demand:
    """The demand on one side of an outer join.

    A bound on one of its attributes holds for it, but while rows of the other side are padded and a
    null is asked for, every row counts that keeps one from being padded. If the side is not kept, only
    its rows that meet the other side matter. If it is, the same is true as long as its own padded
    rows are not asked for: some attribute of the other side is bound to values that are not null.
    """
    own = frozenset(side.attributes)
    asked = replace(asked, ranges=tuple(r for r in asked.ranges if r.attribute in own))
    bounds = [bound for bound in asked.bounds if bound.attribute in own]
    if other_is_kept:
        bounds = [_unless_null(bound) for bound in bounds]
    theirs = tuple(bound for bound in asked.bounds if bound.attribute not in own)
    if not is_kept:
        meeting = _meeting(replace(asked, bounds=theirs), side, other, on)
        return replace(meeting, bounds=tuple(dict.fromkeys((*bounds, *meeting.bounds))))
    for bound in theirs:
        strict = _unless_null(bound)
        for met in _meeting(Demand((strict,)), side, other, on).bounds:
            bounds.append(replace(met, without_null=met.without_null | strict.without_null))
    return replace(asked, bounds=tuple(dict.fromkeys(bounds)))


def _unless_null(bound: Bound) -> Bound:
    if not bound.null_safe:
        return bound
    return replace(bound, without_null=bound.without_null | {bound.origin})


def origin_of(node: Relation, attribute: Attribute) -> Origin | None:
    """Columns that hold every value which an attribute has in a node, or None if it is computed."""
    match node:
        case Scan() | Changes() | Given():
            return Origin(((node, attribute),))
        case Project(child, outputs):
            expression = next(o.expression for o in outputs if o.attribute == attribute)
            match expression:
                case Column(held):
                    return origin_of(child, held)
                case Literal(None):
                    return Origin((), padded=True)
                case _:
                    return None
        case Aggregate(child, group, _):
            return origin_of(child, attribute) if attribute in group else None
        case Select(child) | Repeat(child) | Sort(child) | Limit(child):
            return origin_of(child, attribute)
        case Window(child) | Generate(child) if attribute in child.attributes:
            return origin_of(child, attribute)
        case Union(operands, attributes):
            place = attributes.index(attribute)
            parts = [origin_of(operand, operand.attributes[place]) for operand in operands]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            columns = tuple(dict.fromkeys(column for part in known for column in part.columns))
            return Origin(columns, any(part.padded for part in known))
        case Join(left, right) | OuterJoin(left, right):
            in_left = attribute in left.attributes
            origin = origin_of(left if in_left else right, attribute)
            if origin is None or isinstance(node, Join):
                return origin
            pads = node.keeps_right if in_left else node.keeps_left
            return replace(origin, padded=origin.padded or pads)
        case Semijoin(left) | MarkJoin(left) | Intersection(left) | Difference(left):
            return origin_of(left, attribute) if attribute in left.attributes else None
        case _:
            return None


def emptied_by(node: Relation) -> frozenset[Known]:
    """Leaves at hand each of which leaves the node without rows when it has none itself."""
    match node:
        case Changes() | Given():
            return frozenset({node})
        case Select(child) | Project(child) | Repeat(child) | Sort(child) | Limit(child):
            return emptied_by(child)
        case Window(child) | Generate(child) | Expand(child):
            return emptied_by(child)
        case Aggregate(child, group, _):
            return emptied_by(child) if group else frozenset()
        case Join(left, right):
            return emptied_by(left) | emptied_by(right)
        case Semijoin(left, right, _, anti):
            return emptied_by(left) if anti else emptied_by(left) | emptied_by(right)
        case MarkJoin(left) | Difference(left):
            return emptied_by(left)
        case Intersection(left, right):
            return emptied_by(left) | emptied_by(right)
        case OuterJoin(left, right, _, keeps_left, keeps_right):
            if keeps_left and keeps_right:
                return emptied_by(left) & emptied_by(right)
            return emptied_by(left) if keeps_left else emptied_by(right)
        case Union(operands, _):
            each = [emptied_by(operand) for operand in operands]
            return frozenset.intersection(*each) if each else frozenset()
        case _:
            return frozenset()
