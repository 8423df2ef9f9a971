"""[B07] 1.3–1.4 and 4: deltas, transactions and algebraic delta propagation, one test per statement."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from freshview.algebra.evaluate import Bag, Database, evaluate
from freshview.algebra.relations import Difference, Relation, Scan, Values
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import walk
from freshview.delta.derivation import Derivation
from freshview.delta.derive import derive
from freshview.delta.sets import Pair, post_by_inversion, post_by_substitution, set_delta
from freshview.delta.states import consolidate, post, pre
from freshview.delta.transaction import Delta, from_signed, minimal
from tests.papers.sets import SetBuilder, set_rows, set_state, set_transaction
from tests.properties.random_tables import Dice, dice
from tests.properties.stepwise import with_temporaries

ROWS = ("σ", "π", "∪", "∩", "−", "×")
"""The rows of Table 4.1 beyond constants and relation names."""


def test_example_1_10_an_inverse_need_not_undo() -> None:
    """(∅ − {1}) ∪ ∅, then its inverse, gives {1}: the delta was not minimal for ∅."""
    nothing: Bag = Counter()
    delta = Delta(nothing, Counter({(1,): 1}))
    assert delta.inverse().apply(delta.apply(nothing)) == Counter({(1,): 1})
    assert not delta.is_minimal(nothing)


@settings(max_examples=500)
@given(data=dice)
def test_remarks_1_12_to_1_14_minimal_deltas(data: Dice) -> None:
    """Δ and ∇ are disjoint, the one minimal delta is (i₂ − i₁, i₁ − i₂), and its inverse undoes it."""
    before, after = (set_state(data)["r"].rows for _ in range(2))
    delta = minimal(before, after)
    assert not delta.inserted & delta.deleted
    assert delta.apply(before) == after
    assert delta.is_minimal(before)
    assert delta.inverse().is_minimal(after)
    assert delta.inverse().apply(after) == before


def evaluated(pair: Pair, database: Database, derivation: Derivation) -> Delta:
    ready = with_temporaries(derivation.temporaries, database)
    return Delta(evaluate(pair.inserted, ready), evaluate(pair.deleted, ready))


def check_minimal(query: Relation, data: Dice) -> None:
    """Theorem 4.4: a minimal delta between the old value and the new one, for sets."""
    state = set_state(data)
    transaction = set_transaction(state, data)
    database = transaction.database(state)
    derivation = Derivation(query, transaction.deltas)
    found = evaluated(set_delta(query, derivation), database, derivation)
    before, after = evaluate(pre(query), database), evaluate(post(query), database)
    assert found == minimal(before, after)
    assert not found.inserted & before
    assert found.deleted <= before


@pytest.mark.parametrize("row", ROWS)
@settings(max_examples=500)
@given(data=dice)
def test_table_4_1(row: str, data: Dice) -> None:
    check_minimal(SetBuilder(data, Numbering(0)).set_expression(1, row), data)


def test_table_4_1_constants_and_relation_names() -> None:
    new = Numbering(0)
    scan = Scan("r", (new.attribute("a", "bigint"),))
    constant = Values(scan.attributes, ())
    derivation = Derivation(scan, ("r",))
    assert set_delta(constant, derivation) == Pair(constant, constant)
    assert set_delta(scan, Derivation(scan, ())) == Pair(constant, constant)
    changed = set_delta(scan, derivation)
    assert {type(leaf).__name__ for leaf in walk(changed.inserted)} >= {"Changes"}


@settings(max_examples=1000)
@given(data=dice)
def test_theorem_4_4_on_nested_expressions(data: Dice) -> None:
    check_minimal(SetBuilder(data, Numbering(0)).set_expression(3), data)


@settings(max_examples=500)
@given(data=dice)
def test_table_4_3_and_theorem_4_8_aggregation(data: Dice) -> None:
    builder = SetBuilder(data, Numbering(0))
    builder.aggregates = True
    check_minimal(builder.set_expression(2, "π,f"), data)


@settings(max_examples=500)
@given(data=dice)
def test_the_bag_rules_give_table_4_1_where_no_row_occurs_twice(data: Dice) -> None:
    builder = SetBuilder(data, Numbering(0))
    builder.aggregates = True
    query = builder.set_expression(2)
    state = set_state(data)
    transaction = set_transaction(state, data)
    database = transaction.database(state)
    as_sets, as_bags = (Derivation(query, transaction.deltas) for _ in range(2))
    delta = derive(query, as_bags)
    found = evaluated(set_delta(query, as_sets), database, as_sets)
    if delta is None:
        assert found == Delta(Counter(), Counter())
        return
    ready = with_temporaries(as_bags.temporaries, database)
    signed: Bag = Counter()
    for row in evaluate(consolidate(delta.relation), ready):
        signed[row[:-1]] = row[-1]
    assert from_signed(signed) == found


@settings(max_examples=500)
@given(data=dice)
def test_definition_4_1_table_4_1_gives_pre_update_expressions(data: Dice) -> None:
    """Evaluated with the state before and the deltas alone, a minimal delta of the query."""
    query = SetBuilder(data, Numbering(0)).set_expression(2)
    state = set_state(data)
    transaction = set_transaction(state, data)
    database = transaction.database(state)
    derivation = Derivation(query, transaction.deltas)
    unchanged = {n: t for n, t in database.post.items() if n not in transaction.deltas}
    only_before = Database(unchanged, database.pre, database.deltas)
    found = evaluated(set_delta(query, derivation), only_before, derivation)
    assert found == minimal(evaluate(pre(query), database), evaluate(post(query), database))


@settings(max_examples=1000)
@given(data=dice)
def test_lemma_4_3_what_minimal_means_row_by_row(data: Dice) -> None:
    """Both sides hold or neither does, for any four sets."""
    old, new, more, less = (set(set_rows(1, data)) for _ in range(4))
    if data.random() < 0.5:
        more, less = new - old, old - new
    as_sets = new == (old - less) | more and not less - old and not more & old
    universe = old | new | more | less
    by_row = all(
        (x in more) == (x not in old and x in new) and (x in less) == (x in old and x not in new)
        for x in universe
    )
    assert as_sets == by_row


@settings(max_examples=500)
@given(data=dice)
def test_theorem_4_2_both_constructions_of_a_post_update_form(data: Dice) -> None:
    """By substituting (R − ΔR) ∪ ∇R for R, and by inverting the transaction and the result."""
    query = SetBuilder(data, Numbering(0)).set_expression(2)
    state = set_state(data)
    transaction = set_transaction(state, data)
    database = transaction.database(state)
    derivation = Derivation(query, transaction.deltas)
    before = set_delta(query, derivation, share=False)
    expected = evaluated(before, database, derivation)
    only_after = Database(post=database.post, deltas=database.deltas)
    changed = transaction.deltas
    substituted = Pair(
        post_by_substitution(before.inserted, changed),
        post_by_substitution(before.deleted, changed),
    )
    assert evaluated(substituted, only_after, derivation) == expected
    assert evaluated(post_by_inversion(before), only_after, derivation) == expected


def size(relation: Relation) -> int:
    return sum(1 for _ in walk(relation))


def chain(depth: int) -> Relation:
    """R − (R − (R − …)), whose delta mentions each operand's several times."""
    new = Numbering(0)

    def scan() -> Relation:
        return Scan("r", (new.attribute("a", "bigint"),))

    query = scan()
    for _ in range(depth):
        query = Difference(scan(), query, all=False)
    return query


def test_4_3_1_shared_temporaries_keep_the_size_linear() -> None:
    """Written out the expressions grow exponentially; with temporaries by a constant per operator.

    A subexpression Q itself is counted once, as in the thesis, where its name stands for it.
    """

    def sizes(depth: int) -> tuple[int, int]:
        query = chain(depth)
        derivation = Derivation(query, ("r",))
        pair = set_delta(query, derivation)
        parts = [t.relation for t in derivation.temporaries] + [pair.inserted, pair.deleted]
        nodes = {node for part in parts for node in walk(part)}
        written = set_delta(query, Derivation(query, ("r",)), share=False)
        return len(nodes), size(written.inserted) + size(written.deleted)

    shared = [sizes(depth)[0] for depth in (2, 4, 8)]
    assert shared[2] - shared[1] == 2 * (shared[1] - shared[0])
    assert sizes(8)[1] > 10 * sizes(4)[1]
