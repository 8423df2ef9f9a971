"""The dispatch table against what views do: a rule for each pair that has one, a reason for each hole.

A pair with a rule is proven on at least 500 random views whose refreshes the oracle runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Column
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Limit,
    Relation,
)
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import walk
from freshview.planner.dispatch import TABLE, TECHNIQUES, Hole, Rule, operator_of
from freshview.planner.strategy import Strategy, Technique
from freshview.planner.techniques import strategy
from freshview.rewrite.read_clock import read_clock
from tests.properties import test_parts as parts
from tests.properties.generators import Builder
from tests.properties.random_tables import Dice, dice
from tests.properties.test_moving_windows import Clockwork, check_moving
from tests.properties.test_planned import check_strategy, named

Shape = Callable[[Builder], Relation]


def aggregate_of(*functions: str, distinct: bool = False) -> Shape:
    def shape(b: Builder) -> Relation:
        child = b.relation(1)
        group = tuple(
            b.dice.sample(child.attributes, b.dice.randint(1, min(2, len(child.attributes))))
        )
        outputs = tuple(
            AggregateOutput(
                b.new.attribute(f"f{place}", "bigint"),
                AggregateCall(
                    function, (Column(b.dice.choice(child.attributes)),), "bigint", distinct
                ),
            )
            for place, function in enumerate(functions)
        )
        return Aggregate(child, group, outputs)

    return shape


PLAIN: dict[str, Shape] = {
    "scan": lambda b: b.scan(),
    "selection": lambda b: b.select(1),
    "projection": lambda b: b.project(1),
    "join": lambda b: b.join(1),
    "union": lambda b: b.union(1),
    "outer join": lambda b: b.outer_join(1),
    "semijoin": lambda b: b.dice.choice([b.semijoin, b.mark_join])(1),
    "moving window": lambda b: read_clock(Clockwork(b.dice, b.new, b.everything).windowed(1)),
    "intersection": lambda b: b.intersection(1),
    "difference": lambda b: b.difference(1),
    "distinct": lambda b: b.distinct(1),
    "aggregate": aggregate_of("sum", "count"),
    "extremum": aggregate_of("min", "max"),
    "other aggregate": aggregate_of("sum", "count", distinct=True),
    "window": lambda b: b.window(1),
    "grouping sets": lambda b: b.expand(1),
    "generate": lambda b: b.generate(1),
    "limit": lambda b: b.limit(1),
    "recursion": lambda b: b.recursion(1),
}
"""A view with the operator on top, or next to it."""

THROUGH: dict[str, tuple[Shape, ...]] = {
    "scan": (parts.product,),
    "selection": (parts.select_over_group, parts.having_below_join, parts.select_over_outer_join),
    "projection": (parts.projection, parts.computed_below_outer_join),
    "join": (parts.join, parts.product, parts.join_of_two_aggregates, parts.join_over_outer_join),
    "union": (parts.union, parts.union_with_plain),
    "outer join": (
        PLAIN["outer join"], parts.outer_join_over_aggregate, parts.outer_join_of_two_aggregates,
        parts.outer_joins, parts.computed_below_outer_join,
    ),
}  # fmt: skip
"""Views in which a change table passes the operator."""

PAIRS = [
    (operator, technique)
    for operator, row in TABLE.items()
    for technique in TECHNIQUES
    if isinstance(row[technique], Rule)
]
HOLES = [
    (operator, technique)
    for operator, row in TABLE.items()
    for technique in TECHNIQUES
    if isinstance(row[technique], Hole)
]


def view_of(operator: str, technique: Technique, b: Builder) -> Relation:
    if technique is Technique.CHANGE_TABLE and operator in THROUGH:
        return b.dice.choice(THROUGH[operator])(b)
    return PLAIN[operator](b)


def checked(kept: Strategy, data: Dice) -> list[list[tuple[object, ...]]]:
    """The visible rows after some transactions, of the clock too if the view reads one."""
    return (check_moving if kept.clocks else check_strategy)(kept, data)


@pytest.mark.parametrize(("operator", "technique"), PAIRS)
@settings(max_examples=500)
@given(data=dice)
def test_every_pair_with_a_rule_gives_the_recompute(
    operator: str, technique: Technique, data: Dice
) -> None:
    view = named(view_of(operator, technique, Builder(data, Numbering(0))))
    assert operator in {operator_of(node) for node in walk(view)}
    kept = strategy("v", view, technique)
    if kept.reason is not None and operator == "limit" and technique is Technique.GROUP_RECOMPUTE:
        top = next(node for node in walk(view) if isinstance(node, Limit))
        assert top.count is None, "without a count there is no last row to keep"
        return
    if kept.reason is not None and technique is Technique.CHANGE_TABLE:
        # Everything above an outer join that reads what it pads: no change table gets through.
        assert kept.reason.code == "NOT_BY_CHANGE_TABLE"
        return
    assert kept.reason is None, kept.reason
    checked(kept, data)


def test_change_tables_mostly_get_through() -> None:
    kinds: Counter[bool] = Counter()
    for seed in range(200):
        data = Dice(seed)
        view = named(parts.select_over_outer_join(Builder(data, Numbering(0))))
        kinds[strategy("v", view, Technique.CHANGE_TABLE).reason is None] += 1
    assert kinds[True] > 150


@pytest.mark.parametrize(("operator", "technique"), HOLES)
def test_every_hole_has_a_reason(operator: str, technique: Technique) -> None:
    view = PLAIN[operator](Builder(Dice(1), Numbering(0)))
    assert operator in {operator_of(node) for node in walk(view)}
    kept = strategy("v", named(view), technique)
    assert kept.technique is Technique.FULL
    assert kept.reason is not None
    assert kept.reason.code
    assert kept.reason.why


@settings(max_examples=500)
@given(data=dice)
def test_all_applicable_techniques_agree(data: Dice) -> None:
    """The same batches through every technique that has a rule for the view."""
    shape = data.choice([*PLAIN.values(), *parts.SHAPES.values()])
    view = named(shape(Builder(data, Numbering(0), everything=data.random() < 0.5)))
    seed = data.randrange(2**32)
    ways = [strategy("v", view, technique) for technique in TECHNIQUES]
    shown = [checked(way, Dice(seed)) for way in ways if way.reason is None]
    assert len({repr(one) for one in shown}) <= 1
