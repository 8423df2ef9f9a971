"""Whole strategies against the oracle: whatever a lookup leaves out, the view is its recompute."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings

from freshview.algebra.evaluate import Bag, Database, Table, evaluate
from freshview.algebra.expressions import Call, Column
from freshview.algebra.relations import Join, Limit, Output, Project, Relation
from freshview.algebra.schema import Numbering
from freshview.algebra.windows import total_order
from freshview.delta.transaction import Delta, Transaction
from freshview.group_recompute.top_rows import TopLayout
from freshview.planner.plan import change_plan
from freshview.planner.strategy import Strategy, Technique
from freshview.planner.techniques import strategy
from tests.properties.generators import OPERATORS, Builder, views
from tests.properties.planned import (
    defined,
    kinds,
    recomputed,
    refreshed,
    spare_rows,
    visible,
)
from tests.properties.random_tables import Dice, dice, retraction, states, transactions


def named(view: Relation) -> Relation:
    """The view with its columns named apart, as a view's columns are."""
    new = Numbering(1000)
    outputs = (
        Output(new.attribute(f"x{place}", a.type), Column(a))
        for place, a in enumerate(view.attributes)
    )
    return Project(view, tuple(outputs))


def check(view: Relation, data: Dice) -> Technique:
    kept = strategy("v", named(view))
    assert kept.reason is None, kept.reason
    check_strategy(kept, data)
    return kept.technique


def history(data: Dice, state: dict[str, Table]) -> list[Transaction]:
    """Three transactions, the second of which only inserts, and one that empties all."""
    steps: list[Transaction] = []
    for step in range(3):
        transaction = data.draw(transactions(state))
        if step == 1:
            grown = {n: Delta(d.inserted, Counter()) for n, d in transaction.deltas.items()}
            transaction = Transaction(grown)
        steps.append(transaction)
        state = transaction.apply(state)
    return [*steps, retraction(state)]


def check_strategy(
    kept: Strategy, data: Dice, state: dict[str, Table] | None = None
) -> list[list[tuple[object, ...]]]:
    """The recompute after each transaction of a random history.

    The visible rows before and after each step, for comparison with those of another strategy.
    """
    state = data.draw(states) if state is None else state
    stored = recomputed(kept, state)
    shown = [defined(kept, state)]
    for transaction in history(data, state):
        seed = data.randrange(2**32)
        stored, _ = refreshed(kept, stored, state, transaction, Dice(seed))
        state = transaction.apply(state)
        if kept.top is None:
            assert stored == recomputed(kept, state)
        else:
            assert_held(kept, kept.top, stored, state)
        shown.append(visible(kept, stored))
        assert shown[-1] == defined(kept, state)
    return shown


def assert_held(kept: Strategy, top: TopLayout, stored: Bag, state: dict[str, Table]) -> None:
    """What is stored are the first rows, how many depends on what happened; and whether more follow."""
    place = {a: kept.stored.index(a) for a in kept.stored}
    held: Bag = Counter()
    for row in stored:
        held[tuple(row[place[a]] for a in top.stored)] += row[place[top.held]]
    child = replace(top.limit, count=held.total(), offset=0)
    assert held == evaluate(child, Database(state))
    everything = evaluate(top.limit.child, Database(state)).total()
    assert held.total() >= min(everything, top.end)
    said = {row[place[top.more]] for row in stored}
    assert len(said) <= 1
    assert said == {True} or everything == held.total()


@settings(max_examples=700)
@given(data=dice)
def test_a_null_safe_join_is_its_recompute(data: Dice) -> None:
    check(Builder(data, Numbering(0)).null_safe_join(1), data)


def first_rows(data: Dice) -> Strategy:
    builder = Builder(data, Numbering(0), everything=True)
    child = builder.relation(data.randint(0, 1))
    order = tuple(builder.ordering(child.attributes) for _ in range(data.randint(0, 2)))
    order = total_order(order, child.attributes)
    view = Limit(child, data.randint(1, 3), data.choice([0, 0, 1]), order)
    kept = strategy("v", named(view))
    assert kept.top is not None
    return kept


@settings(max_examples=1500)
@given(data=dice)
def test_first_rows_of_many_are_kept_when_those_to_spare_run_out(data: Dice) -> None:
    kept = first_rows(data)
    with spare_rows(data.randint(1, 3)):
        check_strategy(kept, data, states(data, most=14))


def test_the_rows_to_spare_do_run_out() -> None:
    """The base is asked again in some cases, and in most it is not."""
    asked: Counter[bool] = Counter()
    for seed in range(200):
        data = Dice(seed)
        kept = first_rows(data)
        state = states(data, most=14)
        transaction = transactions(state)(data)
        if change_plan(kept, kinds(transaction)) is None:
            continue
        with spare_rows(1):
            stored = recomputed(kept, state)
            _, reads = refreshed(kept, stored, state, transaction, None)
        asked[any(reads[name] for name in state)] += 1
    assert asked[True] > 20
    assert asked[False] > 50


@settings(max_examples=1000)
@given(data=dice)
def test_a_nested_view_of_every_operator_is_its_recompute(data: Dice) -> None:
    check(data.draw(views(OPERATORS["nested"], everything=True)), data)


@settings(max_examples=1000)
@given(data=dice)
def test_an_aggregate_over_anything_is_its_recompute(data: Dice) -> None:
    builder = Builder(data, Numbering(0), everything=True)
    check(builder.aggregate(builder.relation(2)), data)


@settings(max_examples=300)
@given(data=dice)
def test_a_null_safe_join_meets_the_padded_rows_of_an_outer_join(data: Dice) -> None:
    """(R ⟗ S) ⋈_{<=>} T by deltas: a padded column is null by a literal, and nulls find rows of T."""
    b = Builder(data, Numbering(0))
    outer, other = b.outer_join(1), b.scan()
    padded, key = (Column(b.dice.choice(side.attributes)) for side in (outer, other))
    view = Join(outer, other, Call("<=>", (padded, key), "boolean"))
    kept = strategy("v", named(view), Technique.DELTA)
    assert kept.reason is None
    check_strategy(kept, data)
