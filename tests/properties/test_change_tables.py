"""Aggregate-change tables and the refresh operator against the oracle: [GM06] 4 and 5."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings

from freshview.algebra.evaluate import Bag, Database, Table, evaluate
from freshview.algebra.relations import Aggregate, Output, Relation
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import numbering
from freshview.change_table.aggregate import change_table
from freshview.change_table.refresh_operator import GroupLayout, refresh, stored_groups
from freshview.delta.aggregate_states import aggregate_states
from freshview.delta.derivation import Derivation
from freshview.delta.derive import derive
from freshview.delta.group_states import stored_states
from freshview.delta.states import post, pre
from freshview.delta.transaction import Transaction
from tests.properties.generators import Builder
from tests.properties.random_tables import Dice, dice, retraction, states, transactions


def layout_of(view: Aggregate) -> GroupLayout:
    new = numbering(view)
    kept = aggregate_states(view, new)
    visible = tuple(
        Output(output.attribute.with_name(f"v{place}"), kept.value(output.call))
        for place, output in enumerate(view.aggregates)
    )
    names = [f"__key{place}" for place in range(max(1, len(view.group)))]
    key = tuple(new.attribute(name, "bigint") for name in names)
    return GroupLayout(view.group, key, kept, visible)


def groups(view: Relation, layout: GroupLayout, database: Database) -> Bag:
    """The stored rows of the view, computed from scratch."""
    assert isinstance(view, Aggregate)
    states = stored_states(view, layout.states, Numbering(5000))
    return evaluate(layout.rows(states), database)


def refreshed(view: Aggregate, layout: GroupLayout, stored: Bag, database: Database) -> Bag:
    """The stored rows after setting what the refresh operator gave, by key."""
    new = Numbering(5000)
    delta = derive(view.child, Derivation(view.child, database.deltas, new=new))
    if delta is None:
        return stored
    leaf = stored_groups(layout, "stored", new)
    change = change_table(view, delta.relation, layout.states, new)
    columns = tuple(a.name for a in leaf.leaf.attributes)
    held = Database(
        database.post, {**database.pre, "stored": Table(columns, stored)}, database.deltas
    )
    width, keys = len(columns), len(layout.key)
    rows = {row[:keys]: row for row in stored}
    visible = slice(keys, keys + len(layout.visible))
    for row in evaluate(refresh(change, layout, leaf, new), held):
        new, (keep, was), old = row[:width], row[width : width + 2], row[width + 2 :]
        before = rows.pop(new[:keys], None)
        assert was is (before is not None)
        assert before is None or before[visible] == old
        if keep:
            rows[new[:keys]] = new
    return Counter(rows.values())


@settings(max_examples=1000)
@given(data=dice)
def test_refresh_gives_the_recomputed_groups(data: Dice) -> None:
    """Null groups, empty groups, no groups, filters; then everything retracted to empty."""
    builder = Builder(data, Numbering(0))
    view = builder.aggregate(builder.relation(2))
    layout = layout_of(view)
    state = data.draw(states)
    stored = groups(view, layout, Database(state))
    for step in range(3):
        transaction: Transaction = (
            retraction(state) if step == 2 else data.draw(transactions(state))
        )
        database = transaction.database(state)
        assert stored == groups(pre(view), layout, database)
        stored = refreshed(view, layout, stored, database)
        assert stored == groups(post(view), layout, database)
        state = transaction.apply(state)
    assert len(stored) == (0 if view.group else 1)


@settings(max_examples=500)
@given(data=dice)
def test_visible_values_are_those_of_the_aggregate(data: Dice) -> None:
    builder = Builder(data, Numbering(0))
    view = builder.aggregate(builder.relation(2))
    layout = layout_of(view)
    database = Database(data.draw(states))
    start = len(layout.key) if view.group else 1
    shown: Bag = Counter()
    for row in groups(view, layout, database):
        group = row[: len(view.group)]
        shown[group + row[start : start + len(layout.visible)]] += 1
    assert shown == evaluate(view, database)


@settings(max_examples=500)
@given(data=dice)
def test_sums_by_repeated_rows_equal_sums_by_product(data: Dice) -> None:
    """Wide decimals, whose product with a count would round, are summed over repeated rows."""
    builder = Builder(data, Numbering(0))
    view = builder.aggregate(builder.scan())
    wide = _retyped(view)
    state = data.draw(states)
    transaction = data.draw(transactions(state))
    database = transaction.database(state)
    results = []
    for node in (view, wide):
        new = numbering(node)
        kept = aggregate_states(node, new)
        delta = derive(node.child, Derivation(node.child, transaction.deltas, new=new))
        results.append(
            None
            if delta is None
            else evaluate(change_table(node, delta.relation, kept, new), database)
        )
    assert results[0] == results[1]


def _retyped(view: Aggregate) -> Aggregate:
    from dataclasses import replace

    from freshview.algebra.expressions import cast

    aggregates = tuple(
        replace(
            output,
            call=replace(
                output.call,
                arguments=tuple(cast(a, "decimal(30,4)") for a in output.call.arguments),
            ),
        )
        for output in view.aggregates
    )
    return replace(view, aggregates=aggregates)


def test_figure_2b_of_gm06() -> None:
    """Example 3: ⟨C1,690,4⟩ ⊔ ⟨C1,170,3⟩ = ⟨C1,860,7⟩, and ⟨C2,210,2⟩ ⊔ ⟨C2,−210,−2⟩ is deleted."""
    from freshview.algebra.aggregates import AggregateCall
    from freshview.algebra.expressions import Column
    from freshview.algebra.relations import AggregateOutput, Scan
    from freshview.delta.transaction import Delta

    new = Numbering(0)
    category, price = new.attribute("category", "string"), new.attribute("price", "bigint")
    sales = Scan("sales", (category, price))
    total = AggregateOutput(
        new.attribute("SumCaSales", "bigint"), AggregateCall("sum", (Column(price),), "bigint")
    )
    number = AggregateOutput(
        new.attribute("NumCaSales", "bigint"), AggregateCall("count", (), "bigint")
    )
    view = Aggregate(sales, (category,), (total, number))
    layout = layout_of(view)
    before = Counter([("C1", 500), ("C1", 100), ("C1", 50), ("C1", 40), ("C2", 110), ("C2", 100)])
    state = {"sales": Table(("category", "price"), before)}
    stored = groups(view, layout, Database(state))
    assert {row[:3] for row in stored} == {("C1", 690, 4), ("C2", 210, 2)}
    inserted = Counter([("C1", 100), ("C1", 50), ("C1", 20)])
    deleted = Counter([("C2", 110), ("C2", 100)])
    database = Transaction({"sales": Delta(inserted, deleted)}).database(state)
    after = refreshed(view, layout, stored, database)
    assert {row[:3] for row in after} == {("C1", 860, 7)}
