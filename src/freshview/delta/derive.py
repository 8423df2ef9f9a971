"""The one dispatch from an expression to its delta expression."""

from __future__ import annotations

from typing import assert_never

from freshview.algebra.clock import is_moving
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
from freshview.algebra.render import describe
from freshview.algebra.traverse import tables
from freshview.delta.aggregate import aggregate_delta
from freshview.delta.derivation import Derivation, Signed
from freshview.delta.exactness import check_groups, check_order
from freshview.delta.generate import expansion_delta, generation_delta
from freshview.delta.join import flatten, join_delta
from freshview.delta.limit import check_limit_order, limit_delta
from freshview.delta.moving_window import moving_window_delta
from freshview.delta.multiplicity import set_operation_delta
from freshview.delta.outer_join import outer_join_delta
from freshview.delta.projection import projection_delta, repetition_delta
from freshview.delta.recursion import recursion_delta
from freshview.delta.selection import selection_delta
from freshview.delta.semijoin import mark_join_delta, semijoin_delta
from freshview.delta.union import union_delta
from freshview.delta.window import check_window_order, window_delta


def derive(relation: Relation, derivation: Derivation) -> Signed | None:
    """The delta of a relation in a derivation; None if none of its tables changed.

    The result has the relation's attributes and the signed count. It is not consolidated. Raises
    NoRule at an operator without a rule, changed or not: whether a view is incremental must not
    depend on which table happened to change.
    """

    def below(child: Relation) -> Signed | None:
        return derive(child, derivation)

    match relation:
        case Scan():
            return derivation.scan(relation)
        case Values() | Previous():
            return None
        case Select(child, _):
            delta = below(child)
            return None if delta is None else selection_delta(relation, delta)
        case Project(child, _):
            delta = below(child)
            return None if delta is None else projection_delta(relation, delta)
        case Repeat(child, _):
            delta = below(child)
            return None if delta is None else repetition_delta(relation, delta)
        case Join():
            operands, on = flatten(relation)
            return join_delta(operands, tuple(map(below, operands)), on, derivation)
        case OuterJoin(left, right):
            return outer_join_delta(relation, below(left), below(right), derivation)
        case Semijoin(left, right) if is_moving(relation):
            return moving_window_delta(relation, below(left), below(right), derivation)
        case Semijoin(left, right):
            return semijoin_delta(relation, below(left), below(right), derivation)
        case MarkJoin(left, right):
            return mark_join_delta(relation, below(left), below(right), derivation)
        case Intersection(left, right) | Difference(left, right):
            return set_operation_delta(relation, below(left), below(right), derivation)
        case Aggregate(child, group, aggregates):
            check_groups(group)
            for output in aggregates:
                check_order(output.call)
            delta = below(child)
            return None if delta is None else aggregate_delta(relation, delta, derivation)
        case Union(operands, _):
            return union_delta(relation, tuple(map(below, operands)))
        case Sort(child, _):
            return below(child)
        case Window(child):
            check_window_order(relation)
            delta = below(child)
            return None if delta is None else window_delta(relation, delta, derivation)
        case Limit(child):
            check_limit_order(relation)
            return None if below(child) is None else limit_delta(relation, derivation)
        case Expand(child):
            delta = below(child)
            return None if delta is None else expansion_delta(relation, delta)
        case Generate(child):
            delta = below(child)
            return None if delta is None else generation_delta(relation, delta)
        case Recursion(anchor, step):
            alone = Derivation(relation, tables(relation))
            derive(anchor, alone)
            derive(step, alone)
            return recursion_delta(relation, derivation)
        case Changes() | Given():
            raise AssertionError(f"{describe(relation)} is no part of a view")
        case _:
            assert_never(relation)
