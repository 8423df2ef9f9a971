"""Lineage against the oracle: it is the published one, it suffices, and nothing else matters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings

from freshview.algebra.evaluate import Bag, Database, Row, Table, evaluate
from freshview.algebra.expressions import Expression
from freshview.algebra.relations import (
    Aggregate,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Select,
    Semijoin,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import scans, walk
from freshview.lineage.base_rows import base_rows
from freshview.lineage.carry import carried
from freshview.lineage.emptiness import is_empty_over_nothing
from freshview.lineage.identity import shown_groups
from freshview.lineage.trace import trace
from tests.properties.generators import OPERATORS, SHAPES, Builder, views
from tests.properties.random_tables import TABLES, Dice, dice, states
from tests.properties.traced import Restricted, asked, defined, traced


@dataclass(frozen=True)
class Case:
    """A view over tables, and keys of some of its rows."""

    view: Relation
    state: dict[str, Table]
    columns: tuple[Attribute, ...]
    keys: set[Row]

    @property
    def rows(self) -> Bag:
        return asked(self.view, self.columns, self.keys, self.state)


def case(view: Relation, data: Dice, among: tuple[Attribute, ...] | None = None) -> Case:
    """One or two rows of the view, known by some of its columns (of ``among``), or one that is not there."""
    state = data.draw(states)
    attributes = view.attributes if among is None else among
    columns = tuple(data.sample(attributes, data.randint(0, len(attributes))))
    places = [view.attributes.index(column) for column in columns]
    rows = sorted(evaluate(view, Database(state)), key=repr)
    picked = data.sample(rows, min(len(rows), data.randint(1, 2)))
    keys = {tuple(row[place] for place in places) for row in picked}
    if data.random() < 0.05:
        keys = {(99,) * len(places)}
    return Case(view, state, columns, keys)


def monotone(data: Dice, depth: int) -> Relation:
    """A view of which more rows of a table never make fewer rows: no −, no ▷, no padding, no numbers."""

    class Monotone(Builder):
        def relation(self, depth: int) -> Relation:
            if depth <= 0:
                return self.scan()
            ways = [
                self.select, self.project, self.join, self.union, self.distinct, self.intersection,
                lambda depth: self.semijoin(depth, anti=False), self.recursion,
            ]  # fmt: skip
            return self.dice.choice(ways)(depth)

        def steps(
            self, going: Relation, beside: Relation, on: Expression | None
        ) -> tuple[Relation, ...]:
            return Join(going, beside, on), Semijoin(going, beside, on)

    return Monotone(data, Numbering(0)).relation(depth)


@settings(max_examples=1500)
@given(data=dice)
def test_the_lineage_of_nested_views_is_the_defined_one(data: Dice) -> None:
    one = case(data.draw(views(OPERATORS["nested"], everything=True)), data)
    assume(one.rows or shown_groups(one.view) is None)
    check_defined(one)


def check_defined(one: Case) -> None:
    """The lineage is the defined one.

    Below a limit it is a part of it: of rows that are equal in all columns of the query, and of which
    some are past the limit, the definition has all and the evaluation those that it took.
    """
    found = traced(one.view, one.columns, one.keys, one.state)
    expected = defined(one.view, set(one.rows), one.state)
    if any(isinstance(node, Limit) for node in walk(one.view)):
        assert all(found.rows[scan] <= expected.rows[scan] for scan in scans(one.view))
    else:
        assert found == expected


@settings(max_examples=500)
@given(data=dice)
def test_the_lineage_below_an_aggregate_is_the_defined_one(data: Dice) -> None:
    builder = Builder(data, Numbering(0), everything=True)
    grouped = builder.aggregate(builder.relation(2))
    having = Select(grouped, builder.predicate(grouped.attributes))
    one = case(data.choice([grouped, having]), data)
    assume(one.rows)
    check_defined(one)


ONE = {
    name: shape
    for name, shape in (OPERATORS | SHAPES).items()
    # An offset skips other rows than the ones that it skips now; a recursion has a join and more inside.
    if name not in {"nested", "limit", "recursion"}
}


@pytest.mark.parametrize("shape", ONE)
@settings(max_examples=100)
@given(data=dice)
def test_the_lineage_of_one_operator_suffices(shape: str, data: Dice) -> None:
    """Over its lineage alone the view has the asked rows again, each as often."""
    one = case(data.draw(views(ONE[shape])), data)
    assert again(one) == one.rows


@settings(max_examples=1000)
@given(data=dice)
def test_the_lineage_of_a_monotone_view_suffices(data: Dice) -> None:
    one = case(monotone(data, 3), data)
    assert again(one) == one.rows


@settings(max_examples=1000)
@given(data=dice)
def test_the_lineage_of_an_aggregate_over_a_monotone_view_suffices(data: Dice) -> None:
    grouped = Builder(data, Numbering(1000)).aggregate(monotone(data, 2))
    one = case(grouped, data, grouped.group)
    assert again(one) == one.rows


def again(one: Case) -> Bag:
    """The asked rows of the view over its lineage alone."""
    found = traced(one.view, one.columns, one.keys, one.state)
    restricted = evaluate(one.view, Restricted(one.state, only=found.rows))
    return Counter({row: n for row, n in restricted.items() if row in one.rows})


@settings(max_examples=700)
@given(data=dice)
def test_a_row_outside_the_lineage_does_not_matter(data: Dice) -> None:
    """Without it the asked rows are what they were: exact, since any other row is looked at."""
    is_grouped = data.random() < 0.7
    view = monotone(data, 2)
    if is_grouped:
        view = Builder(data, Numbering(1000)).aggregate(view)
    one = case(view, data, view.group if isinstance(view, Aggregate) else None)
    found = traced(one.view, one.columns, one.keys, one.state)
    for scan in scans(view):
        every = set(Database(one.state).leaf(scan))
        for outside in every - found.rows[scan]:
            less = Restricted(one.state, only={scan: every - {outside}})
            assert with_keys(one, evaluate(view, less)) == one.rows


@settings(max_examples=700)
@given(data=dice)
def test_every_row_of_the_lineage_of_a_join_matters(data: Dice) -> None:
    """σ, Π, ⋈ and ⊎: without any one of them there are fewer copies of the asked rows."""
    one = case(Builder(data, Numbering(0)).relation(3), data)
    found = traced(one.view, one.columns, one.keys, one.state)
    for scan in scans(one.view):
        every = set(Database(one.state).leaf(scan))
        for inside in found.rows[scan]:
            less = Restricted(one.state, only={scan: every - {inside}})
            left = with_keys(one, evaluate(one.view, less))
            assert left < one.rows


def with_keys(one: Case, rows: Bag) -> Bag:
    places = [one.view.attributes.index(column) for column in one.columns]
    wanted = {row for row in rows if not places or tuple(row[p] for p in places) in one.keys}
    return Counter({row: n for row, n in rows.items() if row in wanted})


@settings(max_examples=700)
@given(data=dice)
def test_lookups_leave_out_nothing_that_matters(data: Dice) -> None:
    one = case(data.draw(views(OPERATORS["nested"], everything=True)), data)
    found = traced(one.view, one.columns, one.keys, one.state, data)
    assert found == traced(one.view, one.columns, one.keys, one.state)


@settings(max_examples=500)
@given(data=dice)
def test_what_is_said_to_be_empty_over_nothing_is(data: Dice) -> None:
    view = data.draw(views(OPERATORS["nested"], everything=True))
    nothing = {name: Table(columns, Counter()) for name, columns in TABLES.items()}
    rows = evaluate(view, Database(nothing))
    assert not (rows and is_empty_over_nothing(view))
    if not any(isinstance(node, Aggregate) and not node.group for node in walk(view)):
        assert is_empty_over_nothing(view)


@settings(max_examples=300)
@given(data=dice)
def test_carrying_rows_changes_no_row(data: Dice) -> None:
    view = data.draw(views(OPERATORS["nested"], everything=True))
    state = data.draw(states)
    wider = carried(view, Numbering(10_000))
    shown = Project(wider, tuple(map(keep, view.attributes)))
    assert evaluate(shown, Database(state)) == evaluate(view, Database(state))


@settings(max_examples=300)
@given(data=dice)
def test_base_rows_are_whole_and_counted(data: Dice) -> None:
    """All columns of the table, also those that the view does not read, and the table's own copies."""
    columns = data.sample(TABLES["r"], data.randint(1, 3))
    new = Numbering(0)
    narrow = Scan("r", tuple(new.attribute(column, "bigint") for column in columns))
    one = case(Builder(data, new).aggregate(narrow), data)
    found = trace(one.view, one.columns)
    given = {} if found.keys is None else {found.keys.name: Counter(one.keys)}
    database = Database(one.state, given=given)
    for step in found.steps:
        given[step.leaf.name] = evaluate(step.relation, database)
    (contribution,) = found.contributions
    whole = base_rows(contribution, dict.fromkeys(TABLES["r"], "bigint"), found.new)
    contributing = set(evaluate(contribution.rows, database))
    places = [TABLES["r"].index(column) for column in columns]
    held = one.state["r"].rows
    expected = {
        (*row, n): 1 for row, n in held.items() if tuple(row[p] for p in places) in contributing
    }
    assert evaluate(whole, database) == Counter(expected)
