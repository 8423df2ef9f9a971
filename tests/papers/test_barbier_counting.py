"""[B07] 3 and 5: the count algorithm and change table propagation, one test per statement."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Database, Table, evaluate
from freshview.algebra.expressions import Column
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Given,
    Join,
    Project,
    Relation,
    Scan,
    Select,
    keep,
)
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import numbering, scans
from freshview.change_table.aggregate import change_table, combined
from freshview.change_table.compose import composed
from freshview.change_table.extent import AggregatePart, PlainPart, extent
from freshview.change_table.propagate import extent_rows
from freshview.counting.canonical import canonical, normal
from freshview.counting.extent import count_table
from freshview.counting.extent import extent as counted
from freshview.counting.refresh import count_refresh
from freshview.delta.aggregate_states import aggregate_states
from freshview.delta.derivation import Derivation
from freshview.delta.derive import derive
from freshview.delta.group_states import stored_states
from freshview.delta.states import post, pre
from freshview.delta.transaction import Delta, Transaction
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.properties import test_parts as parts
from tests.properties.generators import SHAPES, Builder, views
from tests.properties.planned import defined, recomputed, refreshed, visible
from tests.properties.random_tables import Dice, dice, states, transactions
from tests.properties.test_planned import named


@settings(max_examples=300)
@given(data=dice)
def test_lemma_3_1_every_spj_expression_has_a_canonical_form(data: Dice) -> None:
    view = data.draw(views(SHAPES["n_way_join"]))
    (form,) = canonical(view)
    database = Database(data.draw(states))
    assert evaluate(form.relation(), database) == evaluate(view, database)


@settings(max_examples=300)
@given(data=dice)
def test_definitions_3_2_3_4_and_remark_3_3_extent_and_count_table(data: Dice) -> None:
    """The extent has each row once with a count that is not zero, and the view can be read off it."""
    view = data.draw(views(SHAPES["projection"]))
    state = data.draw(states)
    database = Database(state)
    rows = evaluate(counted(view), database)
    assert all(copies == 1 and row[-1] > 0 for row, copies in rows.items())
    assert Counter({row[:-1]: row[-1] for row in rows}) == evaluate(view, database)
    transaction = data.draw(transactions(state))
    table = count_table(view, Derivation(view, transaction.deltas))
    if table is not None:
        changed = evaluate(table, transaction.database(state))
        assert all(copies == 1 and row[-1] != 0 for row, copies in changed.items())


@settings(max_examples=300)
@given(data=dice)
def test_definitions_3_5_3_6_and_theorem_3_7_count_refresh(data: Dice) -> None:
    """R_count(c, E(D_old, V)) = E(D_new, V)."""
    view = normal(data.draw(views(SHAPES["equijoin"])))
    state = data.draw(states)
    transaction = data.draw(transactions(state))
    database = transaction.database(state)
    table = count_table(view, Derivation(view, transaction.deltas))
    if table is not None:
        after = evaluate(count_refresh(table, counted(pre(view))), database)
        assert after == evaluate(counted(post(view)), database)


@pytest.mark.parametrize("shape", parts.SHAPES)
@settings(max_examples=100)
@given(data=dice)
def test_definition_5_1_one_conversion_point_on_every_path(shape: str, data: Dice) -> None:
    """A part is a conversion point; plain rows are one by a dummy projection onto all attributes."""
    view = named(parts.SHAPES[shape](Builder(data, Numbering(0))))
    made = extent(view, numbering(view))
    places = [{s.attributes for s in scans(part.source)} for part in made.parts]
    for leaf in scans(view):
        assert sum(leaf.attributes in place for place in places) == 1


def two_tables() -> tuple[Aggregate, Aggregate]:
    new = Numbering(0)

    def summed(table: str) -> Aggregate:
        scan = Scan(table, tuple(new.attribute(c, "bigint") for c in ("k", "v")))
        total = AggregateOutput(
            new.attribute("total", "bigint"),
            AggregateCall("sum", (Column(scan.attributes[1]),), "bigint"),
        )
        return Aggregate(scan, (scan.attributes[0],), (total,))

    return summed("r"), summed("s")


STATE = {
    "r": Table(("k", "v"), Counter([(1, 5), (1, 6), (2, 7)])),
    "s": Table(("k", "v"), Counter([(1, 2), (3, 4), (3, 4), (3, 5)])),
}


def test_table_5_1_conversion_point_adds_the_count() -> None:
    view, _ = two_tables()
    made = extent(view, numbering(view))
    (part,) = made.parts
    assert isinstance(part, AggregatePart)
    rows = evaluate(extent_rows(made, numbering(view, made.frame)), Database(STATE))
    causes = {row[0]: row[1] for row in rows}
    assert causes == {1: 2, 2: 1}


def test_table_5_1_selection_leaves_the_counts_alone() -> None:
    view, _ = two_tables()
    chosen = Select(view, parts.equal(Column(view.group[0]), parts.integer(1)))
    made = extent(chosen, numbering(chosen))
    rows = evaluate(extent_rows(made, numbering(chosen, made.frame)), Database(STATE))
    assert {row[0]: row[1] for row in rows} == {1: 2}


def test_table_5_1_product_has_the_causes_of_both_sides() -> None:
    """The thesis multiplies the counts; kept apart, a row is there while both are not zero."""
    one, two = two_tables()
    view = Join(one, two)
    made = extent(view, numbering(view))
    rows = evaluate(extent_rows(made, numbering(view, made.frame)), Database(STATE))
    places = [made.frame.attributes.index(part.alive) for part in made.parts]
    products = Counter(row[places[0]] * row[places[1]] for row in rows)
    assert products == Counter([2 * 1, 2 * 3, 1 * 1, 1 * 3])


def test_table_5_1_projection_above_sums_the_counts() -> None:
    one, two = two_tables()
    joined = Join(one, two, parts.equal(Column(one.group[0]), Column(two.group[0])))
    assert isinstance(extent(joined, numbering(joined)).parts[0], AggregatePart)
    plain = Join(one, Scan("t", (numbering(one).attribute("d", "bigint"),)))
    above = Aggregate(
        plain,
        (plain.attributes[-1],),
        (
            AggregateOutput(
                numbering(plain).attribute("all", "bigint"),
                AggregateCall("sum", (Column(one.aggregates[0].attribute),), "bigint"),
            ),
        ),
    )
    new = numbering(above)
    made = extent(plain, new)
    assert isinstance(made.parts[1], PlainPart)
    states_above = aggregate_states(above, new)
    composition = composed(above, made, states_above)
    state = {**STATE, "t": Table(("d",), Counter([(9,), (9,)]))}
    (row,) = evaluate(composition.summed(extent_rows(made, new), new), Database(state))
    assert row[:2] == (9, 2 * 3), "three causes in r, each with two copies in t"


def states_of(rows: Counter[tuple[int, ...]]) -> Counter[tuple[object, ...]]:
    """The states of SUM per group over these rows, from scratch."""
    view, _ = two_tables()
    new = numbering(view)
    kept = aggregate_states(view, new)
    database = Database({"r": Table(("k", "v"), rows)})
    return evaluate(stored_states(view, kept, new), database)


Rows = Counter[tuple[int, ...]]


def combined_changes(*deltas: tuple[Rows, Rows]) -> Counter[tuple[object, ...]]:
    """The change tables of several deltas, combined by U; groups without causes left out."""
    view, _ = two_tables()
    new = numbering(view)
    kept = aggregate_states(view, new)
    given: dict[str, Bag] = {}
    changes: list[Relation] = []
    for number, (added, gone) in enumerate(deltas):
        delta = derive(view.child, Derivation(view.child, ("r",), new=new))
        assert delta is not None
        table = change_table(view, delta.relation, kept, new)
        before = {"r": Table(("k", "v"), gone)}
        transaction = Transaction({"r": Delta(added, gone)})
        given[f"□{number}"] = evaluate(table, transaction.database(before))
        changes.append(Given(f"□{number}", table.attributes))
    columns = (*view.group, *kept.additive)
    both = Project(combined(changes, view.group, kept), tuple(keep(a) for a in columns))
    found = evaluate(both, Database({}, given=given))
    return Counter({row: n for row, n in found.items() if row[1]})


@settings(max_examples=300)
@given(data=dice)
def test_definitions_5_4_and_5_6_combine(data: Dice) -> None:
    """combine_f(f(A₁), f(A₂)) = f(A₁ ∪ A₂), with the change tables that both sets give."""
    one, two = (
        Counter((data.randrange(3), data.randrange(9)) for _ in range(data.randrange(5)))
        for _ in range(2)
    )
    nothing: Counter[tuple[int, ...]] = Counter()
    assert combined_changes((one, nothing), (two, nothing)) == states_of(one + two)


@settings(max_examples=300)
@given(data=dice)
def test_definitions_5_5_and_5_7_cancel(data: Dice) -> None:
    """V(B − {t}) = V(B ∪ {cancel(t)}), and a group without causes is gone."""
    rows = Counter((data.randrange(3), data.randrange(9)) for _ in range(1 + data.randrange(5)))
    gone = Counter([data.choice(sorted(rows.elements()))])
    nothing: Counter[tuple[int, ...]] = Counter()
    assert combined_changes((rows, nothing), (nothing, gone)) == states_of(rows - gone)


@settings(max_examples=300)
@given(data=dice)
def test_definition_5_7_the_refresh_operator(data: Dice) -> None:
    """(E − D) ∪ U ∪ N: groups that □V meets are updated or go, others come, the rest stays."""
    view, _ = two_tables()
    made = strategy("v", named(view), Technique.CHANGE_TABLE)
    rows, added = (
        Counter((data.randrange(3), data.randrange(9)) for _ in range(data.randrange(6)))
        for _ in range(2)
    )
    gone = Counter(data.sample(sorted(rows.elements()), data.randrange(rows.total() + 1)))
    state = {"r": Table(("k", "v"), rows)}
    transaction = Transaction({"r": Delta(added - (added & gone), gone - (added & gone))})
    stored = recomputed(made, state)
    after, _ = refreshed(made, stored, state, transaction, None)
    assert after == recomputed(made, transaction.apply(state))
    assert visible(made, after) == defined(made, transaction.apply(state))
