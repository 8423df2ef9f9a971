"""The count algorithm against the oracle: [B07] 3."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from freshview.algebra.evaluate import Database, Table, evaluate
from freshview.algebra.relations import Changes, Join, Relation, Scan, State, Union
from freshview.algebra.schema import EXTENT_COUNT_NAME, Numbering
from freshview.counting.canonical import canonical, is_spju, normal
from freshview.counting.extent import count_table, extent
from freshview.counting.refresh import count_refresh, touched_extent
from freshview.delta.derivation import Derivation
from freshview.delta.derive import derive
from freshview.delta.states import consolidate, post, pre
from freshview.delta.transaction import Transaction, minimal
from tests.properties.generators import OPERATORS, SHAPES, views
from tests.properties.random_tables import Dice, dice, retraction, states, transactions


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=250)
@given(data=dice)
def test_canonical_form_is_equivalent(shape: str, data: Dice) -> None:
    """Lemma 3.1, with unions pulled to the top (3.3.1)."""
    view = data.draw(views(SHAPES[shape]))
    database = Database(data.draw(states))
    total: Counter = Counter()
    assert is_spju(view)
    for form in canonical(view):
        assert all(isinstance(relation, Scan) for relation in form.relations)
        total.update(evaluate(form.relation(), database))
        assert evaluate(form.joined(), database) == evaluate(form.relation(), database)
    assert total == evaluate(view, database)


@pytest.mark.parametrize("shape", OPERATORS)
@settings(max_examples=100)
@given(data=dice)
def test_canonical_form_goes_around_other_operators(shape: str, data: Dice) -> None:
    view = data.draw(views(OPERATORS[shape], everything=True))
    database = Database(data.draw(states))
    assert evaluate(normal(view), database) == evaluate(view, database)


def test_a_join_of_many_unions_stays_a_join() -> None:
    """Ten times ten forms would be a hundred joins; the unions are operands instead."""
    new = Numbering(0)

    def union() -> Union:
        parts = tuple(Scan("s", (new.attribute("b", "bigint"),)) for _ in range(10))
        return Union(parts, (new.attribute("u", "bigint"),))

    (form,) = canonical(Join(union(), union()))
    assert len(form.relations) == 2


def check_count_refresh(view: Relation, state: dict[str, Table], transaction: Transaction) -> None:
    formed = normal(view)
    table = count_table(formed, Derivation(formed, transaction.deltas))
    database = transaction.database(state)
    before, after = evaluate(extent(pre(view)), database), evaluate(extent(post(view)), database)
    if table is None:
        assert before == after
        return
    delta = derive(view, Derivation(view, transaction.deltas))
    assert delta is not None
    nested = evaluate(consolidate(delta.relation), database)
    assert evaluate(table, database) == nested, "agreement"
    assert evaluate(count_refresh(table, extent(pre(view))), database) == after, "Theorem 3.7"
    check_touched(view, table, database)


def check_touched(view: Relation, table: Relation, database: Database) -> None:
    """Setting the touched rows by key gives the refreshed extent."""
    before, after = evaluate(extent(pre(view)), database), evaluate(extent(post(view)), database)
    touched = touched_extent(table, "stored", Numbering(5000))
    assert touched.stored.state is State.PRE
    columns = tuple(a.name for a in touched.stored.attributes)
    assert columns[-1] == EXTENT_COUNT_NAME
    positions = tuple(f"{i}" for i in range(len(columns)))
    numbered = Scan(
        "stored",
        tuple(a.with_name(p) for a, p in zip(touched.stored.attributes, positions, strict=True)),
        State.PRE,
    )
    relation = _with_leaf(touched.relation, touched.stored, numbered)
    stored = {**database.pre, "stored": Table(positions, before)}
    rows = evaluate(relation, Database(database.post, stored, database.deltas))
    held = {row[:-1]: row[-1] for row in before}
    for *columns_, count, change in rows:
        key = tuple(columns_)
        assert held.pop(key, 0) + change == count
        if count:
            held[key] = count
    assert Counter((*key, count) for key, count in held.items()) == after


def _with_leaf(relation: Relation, old: Scan, new: Scan) -> Relation:
    """Columns of a view may share a name; the oracle's stand-in for its table numbers them."""
    from freshview.algebra.expressions import Column, substitute
    from freshview.algebra.relations import OuterJoin, Output, Project

    values = {a: Column(b) for a, b in zip(old.attributes, new.attributes, strict=True)}
    assert isinstance(relation, Project)
    assert isinstance(relation.child, OuterJoin)
    join = relation.child
    on = None if join.on is None else substitute(join.on, values)
    child = OuterJoin(join.left, new, on, True, False)
    outputs = tuple(Output(o.attribute, substitute(o.expression, values)) for o in relation.outputs)
    return Project(child, outputs)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=250)
@given(data=dice)
def test_count_refresh_gives_the_new_extent(shape: str, data: Dice) -> None:
    view = data.draw(views(SHAPES[shape]))
    state = data.draw(states)
    for _ in range(2):
        transaction = data.draw(transactions(state))
        check_count_refresh(view, state, transaction)
        state = transaction.apply(state)
    check_count_refresh(view, state, retraction(state))


def test_published_form_counts_two_insertions_twice() -> None:
    """Definition 3.6 with ∪ read as ⊎: for R × S with one row inserted into each, Δ×Δ comes twice.

    ΔJ = (ΔR × Sⁿ) ⊎ (Rⁿ × ΔS) contains the new pair two times; the telescoped form has it once.
    """
    new = Numbering(0)
    x, y = Scan("x", (new.attribute("a", "bigint"),)), Scan("y", (new.attribute("b", "bigint"),))
    view = Join(x, y)
    row = Counter({(1,): 1})
    empty = {"x": Table(("a",), Counter()), "y": Table(("b",), Counter())}
    transaction = Transaction({"x": minimal(Counter(), row), "y": minimal(Counter(), row)})
    database, after = transaction.database(empty), tuple(map(post, (x, y)))
    terms = [
        evaluate(Join(Changes("x", x.attributes), after[1]), database),
        evaluate(Join(after[0], Changes("y", y.attributes)), database),
    ]
    assert sum(sum(term.values()) for term in terms) == 2
    assert evaluate(Join(*after), database) == Counter({(1, 1): 1})
    table = count_table(view, Derivation(view, ("x", "y")))
    assert table is not None
    assert evaluate(table, transaction.database(empty)) == Counter({(1, 1, 1): 1})
