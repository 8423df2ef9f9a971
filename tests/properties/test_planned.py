"""Whole strategies against the oracle: whatever a lookup leaves out, the view is its recompute."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from freshview.algebra.expressions import Column
from freshview.algebra.relations import Aggregate, Output, Project, Relation
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import walk
from freshview.delta.transaction import Delta, Transaction
from freshview.planner.strategy import Technique, strategy
from tests.properties.generators import (
    OPERATORS,
    Builder,
    Dice,
    dice,
    retraction,
    states,
    transactions,
    views,
)
from tests.properties.planned import recomputed, refreshed


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
    if kept.reason is not None:
        assert kept.reason.code == "DISTINCT_AGGREGATE"
        top = next(node for node in walk(kept.relation) if not isinstance(node, Project))
        assert isinstance(top, Aggregate)
        assert not top.group, "there is a group to confine the recompute to"
        return kept.technique
    state = data.draw(states)
    stored = recomputed(kept, state)
    for step in range(4):
        transaction = retraction(state) if step == 3 else data.draw(transactions(state))
        if step == 1:
            grown = {n: Delta(d.inserted, Counter()) for n, d in transaction.deltas.items()}
            transaction = Transaction(grown)
        stored, _ = refreshed(kept, stored, state, transaction, data)
        state = transaction.apply(state)
        assert stored == recomputed(kept, state)
    return kept.technique


@pytest.mark.parametrize("shape", OPERATORS)
@settings(max_examples=500)
@given(data=dice)
def test_a_view_of_every_operator_is_its_recompute(shape: str, data: Dice) -> None:
    check(data.draw(views(OPERATORS[shape], everything=True)), data)


@settings(max_examples=1500)
@given(data=dice)
def test_an_aggregate_over_anything_is_its_recompute(data: Dice) -> None:
    builder = Builder(data, Numbering(0), everything=True)
    check(builder.aggregate(builder.relation(2)), data)
