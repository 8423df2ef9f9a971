"""Every delta rule against the oracle: pre-state plus delta is the post-state, down to empty."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from freshview.algebra.evaluate import Bag, Table, evaluate
from freshview.algebra.relations import Join, Relation
from freshview.algebra.traverse import scans, tables
from freshview.delta.derivation import Derivation, Kind
from freshview.delta.derive import derive
from freshview.delta.states import consolidate, inverse, post, pre
from freshview.delta.transaction import Delta, Transaction, from_signed, minimal
from tests.properties.generators import OPERATORS, SHAPES, views
from tests.properties.planned import kinds
from tests.properties.random_tables import Dice, dice, retraction, rows, states, transactions
from tests.properties.stepwise import stepwise, with_temporaries

CASES = 200


def signed(bag: Bag) -> Bag:
    """Rows (…, n) as a bag of rows with signed counts."""
    total: Bag = Counter()
    for row, copies in bag.items():
        total[row[:-1]] += row[-1] * copies
    return Counter({row: count for row, count in total.items() if count})


def plus(bag: Bag, counts: Bag) -> Bag:
    total = Counter(bag)
    for row, count in counts.items():
        total[row] += count
    assert all(count >= 0 for count in total.values())
    return +total


def check_step(view: Relation, state: dict[str, Table], transaction: Transaction) -> None:
    database = transaction.database(state)
    before, after = evaluate(pre(view), database), evaluate(post(view), database)
    for known in (dict.fromkeys(transaction.deltas, Kind.ANY), kinds(transaction)):
        derivation = Derivation(view, known)
        delta = derive(view, derivation)
        if delta is None:
            assert before == after
            assert not set(tables(view)) & set(transaction.deltas)
            return
        ready = with_temporaries(derivation.temporaries, database)
        raw = evaluate(delta.relation, ready)
        assert plus(before, signed(raw)) == after
        net = evaluate(consolidate(delta.relation), ready)
        assert all(copies == 1 for copies in net.values())
        as_delta = from_signed(signed(net))
        assert as_delta == minimal(before, after)
        assert as_delta.is_minimal(before)
        assert not (delta.insertions_only and as_delta.deleted)
        undone = signed(evaluate(inverse(consolidate(delta.relation)), ready))
        assert plus(after, undone) == before


def check_steps(view: Relation, data: Dice) -> None:
    """Two transactions, one that only inserts, and one that empties every table."""
    state = data.draw(states)
    for step in range(4):
        transaction = retraction(state) if step == 3 else data.draw(transactions(state))
        if step == 1:
            grown = {n: Delta(d.inserted, Counter()) for n, d in transaction.deltas.items()}
            transaction = Transaction(grown)
        check_step(view, state, transaction)
        state = transaction.apply(state)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=CASES)
@given(data=dice)
def test_delta_is_the_minimal_difference(shape: str, data: Dice) -> None:
    check_steps(data.draw(views(SHAPES[shape])), data)


@pytest.mark.parametrize("shape", OPERATORS)
@settings(max_examples=CASES)
@given(data=dice)
def test_delta_of_every_operator_is_the_minimal_difference(shape: str, data: Dice) -> None:
    check_steps(data.draw(views(OPERATORS[shape], everything=True)), data)


@pytest.mark.parametrize("shape", ["nested"])
@settings(max_examples=CASES)
@given(data=dice)
def test_leaf_by_leaf_gives_the_same_delta(shape: str, data: Dice) -> None:
    """[B07] 2.3: the deltas of one occurrence after the other add up to the delta of all at once."""
    view = data.draw(views(OPERATORS[shape], everything=True))
    state = data.draw(states)
    transaction = data.draw(transactions(state))
    database = transaction.database(state)
    total: Bag = Counter()
    for leaf in scans(view):
        derivation = Derivation(view, transaction.deltas, leaves=[leaf])
        delta = derive(view, derivation)
        if delta is not None:
            part = signed(stepwise(delta.relation, derivation.temporaries, database))
            total = Counter({r: total[r] + part[r] for r in {*total, *part}})
    net = Counter({row: count for row, count in total.items() if count})
    assert from_signed(net) == minimal(
        evaluate(pre(view), database), evaluate(post(view), database)
    )


@settings(max_examples=CASES)
@given(data=dice)
def test_raw_change_feed_gives_the_same_delta(data: Dice) -> None:
    """Rows inserted and deleted again between two refreshes cancel (trap 2)."""
    view = data.draw(views(SHAPES["nested"]))
    state = data.draw(states)
    first = data.draw(transactions(state))
    middle = first.apply(state)
    second = data.draw(transactions(middle))
    names = {*first.deltas, *second.deltas}
    nothing = Delta(Counter(), Counter())
    both = Transaction(
        {
            name: Delta(
                first.deltas.get(name, nothing).inserted
                + second.deltas.get(name, nothing).inserted,
                first.deltas.get(name, nothing).deleted + second.deltas.get(name, nothing).deleted,
            )
            for name in names
        }
    )
    after = second.apply(middle)
    database = both.database(state)
    database = type(database)(post=after, pre=state, deltas=database.deltas)
    delta = derive(view, Derivation(view, names))
    if delta is not None:
        net = signed(evaluate(consolidate(delta.relation), database))
        assert plus(evaluate(pre(view), database), net) == evaluate(post(view), database)


def joined(left: Bag, right: Bag) -> Bag:
    """l ⋈ r of binary relations on l's second and r's first column."""
    result: Bag = Counter()
    for a, n in left.items():
        for b, m in right.items():
            if a[1] is not None and a[1] == b[0]:
                result[a + b] += n * m
    return result


@settings(max_examples=CASES)
@given(data=dice)
def test_two_table_join_formulas_of_is00_agree(data: Dice) -> None:
    """[IS00] Exp. 1.2.6 and 1.2.7 are the specification of the telescoped rule for two operands."""
    left, right, i_l, i_r = (rows(2, data) for _ in range(4))
    d_l, d_r = left & rows(2, data), right & rows(2, data)
    i_j = (
        joined(i_l, right) + joined(left, i_r) + joined(i_l, i_r)
        - joined(i_l, d_r) - joined(d_l, i_r)
    )  # fmt: skip
    d_j = (joined(d_l, right) + joined(left, d_r)) - joined(d_l, d_r)
    after = joined((left + i_l) - d_l, (right + i_r) - d_r)
    assert (joined(left, right) + i_j) - d_j == after
    view = SHAPES_BINARY
    tables_before = {"l": Table(("a", "b"), left), "r": Table(("b", "c"), right)}
    transaction = Transaction({"l": Delta(i_l, d_l), "r": Delta(i_r, d_r)})
    database = transaction.database(tables_before)
    delta = derive(view, Derivation(view, ("l", "r")))
    assert delta is not None
    net: Counter = Counter(i_j)
    net.subtract(d_j)
    assert signed(evaluate(delta.relation, database)) == Counter(
        {r: n for r, n in net.items() if n}
    )


def _binary() -> Relation:
    from freshview.algebra.expressions import Call, Column
    from freshview.algebra.relations import Scan
    from freshview.algebra.schema import Numbering

    new = Numbering(0)
    left = Scan("l", (new.attribute("a", "bigint"), new.attribute("b", "bigint")))
    right = Scan("r", (new.attribute("b", "bigint"), new.attribute("c", "bigint")))
    on = Call("=", (Column(left.attributes[1]), Column(right.attributes[0])), "boolean")
    return Join(left, right, on)


SHAPES_BINARY = _binary()
