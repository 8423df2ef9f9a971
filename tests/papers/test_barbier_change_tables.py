"""[B07] 5.1, 5.5 and 5.6: extents and change tables as defined, Table 5.2 row by row, Theorem 5.8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from freshview.algebra.evaluate import Database, evaluate
from freshview.algebra.relations import Relation
from freshview.algebra.schema import Numbering
from freshview.change_table.extent import AggregatePart, extent
from freshview.change_table.propagate import part_change
from freshview.delta.derivation import Derivation
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.properties import test_parts as parts
from tests.properties.generators import Builder
from tests.properties.planned import recomputed, visible
from tests.properties.random_tables import Dice, dice, states, transactions
from tests.properties.stepwise import with_temporaries
from tests.properties.test_planned import check_strategy, named


def built(shape: Callable[[Builder], Relation], data: Dice) -> Relation:
    return named(shape(Builder(data, Numbering(0))))


@settings(max_examples=300)
@given(data=dice)
def test_definition_5_2_the_extent_is_the_view_with_its_causes(data: Dice) -> None:
    """E(D, V) = D(τ(V)): what is shown of it is D(V), each row as often as its counts say."""
    view = built(data.choice(list(parts.SHAPES.values())), data)
    made = strategy("v", view)
    state = data.draw(states)
    shown = sorted(evaluate(view, Database(state)).elements(), key=repr)
    assert visible(made, recomputed(made, state)) == shown


@settings(max_examples=300)
@given(data=dice)
def test_definition_5_3_a_change_table_has_a_key_and_changes_of_its_states(data: Dice) -> None:
    """□_G is a key of it, and each other column is the change of what U updates."""
    view = parts.join(Builder(data, Numbering(0)))
    made = extent(view, Numbering(5000))
    state = data.draw(states)
    transaction = data.draw(transactions(state))
    database = transaction.database(state)
    for part in made.parts:
        derivation = Derivation(part.source, transaction.deltas, new=Numbering(6000))
        change = part_change(part, derivation)
        if change is None:
            continue
        assert set(change.relation.attributes) == {*part.key, *part.states}
        places = [change.relation.attributes.index(a) for a in part.key]
        rows = evaluate(change.relation, with_temporaries(derivation.temporaries, database))
        assert max(Counter(tuple(row[p] for p in places) for row in rows).values(), default=1) == 1
        assert set(rows.values()) <= {1}


TABLE_5_2 = {
    "selection": parts.select_over_group,
    "projection": parts.aggregate_of_sums,
    "product": parts.product,
}


@pytest.mark.parametrize("row", TABLE_5_2)
@settings(max_examples=200)
@given(data=dice)
def test_table_5_2(row: str, data: Dice) -> None:
    """E(D_old, V) ⊔ □V = E(D_new, V) with □V carried through the operator of the row."""
    made = strategy("v", built(TABLE_5_2[row], data), Technique.CHANGE_TABLE)
    assert made.reason is None
    layout = made.row_layout or made.composition
    assert layout is not None
    passing = [p for p in layout.extent.parts if layout.extent.singularity(p) is None]
    assert any(isinstance(part, AggregatePart) for part in passing)
    check_strategy(made, data)


@settings(max_examples=500)
@given(data=dice)
def test_theorem_5_8(data: Dice) -> None:
    """Not proved in the thesis: the refreshed extent is the extent of the new state."""
    made = strategy("v", built(data.choice(list(parts.SHAPES.values())), data))
    assert made.reason is None
    check_strategy(made, data)
