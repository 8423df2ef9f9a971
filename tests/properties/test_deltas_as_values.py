"""Deltas and transactions as values: [B07] 1.3 and 1.4 for bags."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings

from freshview.algebra.evaluate import Bag
from freshview.delta.transaction import Delta, from_signed, minimal
from tests.properties.random_tables import Dice, bags, dice, states, transactions

PAIRS = bags(2)


def test_example_1_10_an_inverse_need_not_undo() -> None:
    """i = ∅, (Δ, ∇) = (∅, {1}): applying the delta and then its inverse gives {1}, not ∅."""
    empty: Bag = Counter()
    delta = Delta(inserted=Counter(), deleted=Counter({(1,): 1}))
    assert delta.apply(empty) == empty
    assert delta.inverse().apply(delta.apply(empty)) == Counter({(1,): 1})
    assert not delta.is_minimal(empty)


@settings(max_examples=500)
@given(before=PAIRS, after=PAIRS)
def test_minimal_delta_leads_from_one_instance_to_the_other(before: Bag, after: Bag) -> None:
    delta = minimal(before, after)
    assert delta.apply(before) == after
    assert delta.is_minimal(before)


@settings(max_examples=500)
@given(before=PAIRS, inserted=PAIRS, deleted=PAIRS)
def test_minimal_delta_is_unique(before: Bag, inserted: Bag, deleted: Bag) -> None:
    """Remark 1.13: any minimal delta between two instances is the one."""
    delta = Delta(inserted, deleted)
    if delta.is_minimal(before):
        assert delta == minimal(before, delta.apply(before))
    else:
        canonical = minimal(before, delta.apply(before))
        assert canonical.apply(before) == delta.apply(before)
        assert canonical.is_minimal(before)


@settings(max_examples=500)
@given(before=PAIRS, after=PAIRS)
def test_inverse_of_a_minimal_delta_undoes_it_and_is_minimal(before: Bag, after: Bag) -> None:
    """Remark 1.14."""
    delta = minimal(before, after)
    assert delta.inverse().apply(after) == before
    assert delta.inverse().is_minimal(after)
    assert delta.inverse() == minimal(after, before)


@settings(max_examples=500)
@given(before=PAIRS, after=PAIRS)
def test_signed_counts_and_pairs_are_two_forms_of_one_delta(before: Bag, after: Bag) -> None:
    delta = minimal(before, after)
    assert from_signed(delta.signed()) == delta
    assert not delta.inserted & delta.deleted


@settings(max_examples=500)
@given(data=dice)
def test_a_transaction_over_several_tables_is_undone_by_its_inverse(data: Dice) -> None:
    """Definition 1.15 and 1.16."""
    state = data.draw(states)
    transaction = data.draw(transactions(state))
    assert transaction.is_minimal(state)
    assert transaction.inverse().apply(transaction.apply(state)) == state
