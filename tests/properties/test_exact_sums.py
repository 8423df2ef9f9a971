"""Sums of doubles against fractions: rounded once, whatever came, went and in which order."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Table
from freshview.algebra.exact_sums import WEIGHTS, exact_sum, pieces, rest, rounded
from freshview.algebra.expressions import Call, Column, equal, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    Relation,
    Scan,
    Select,
)
from freshview.algebra.schema import Numbering
from freshview.delta.transaction import Transaction, minimal
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.properties.planned import defined, recomputed, refreshed, visible
from tests.properties.random_tables import Dice, dice, retraction
from tests.properties.test_planned import named

NAN, INFINITY = math.nan, math.inf
ODD = (
    0.0, -0.0, 1.0, -1.0, 0.1, 0.2, -0.3, 1 / 3, 1e20, -1e20, 2.0**53, 2.0**-60, -(2.0**-100),
    2.0**80, -(2.0**80), 1e300, -1e300, 1e-300, 1e308, -1e308, 5e-324, -5e-324, 2.2e-308,
    math.nextafter(2.0**80, 0), 2.0**-100 + 2.0**-152, NAN, INFINITY, -INFINITY,
)  # fmt: skip
"""Near and far, with and without rests, next to every limit."""

finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=2000)
@given(value=finite)
def test_pieces_and_rest_are_the_value(value: float) -> None:
    found = pieces(value)
    whole = sum(piece * Fraction(2) ** weight for piece, weight in zip(found, WEIGHTS, strict=True))
    assert whole + Fraction(rest(value)) == Fraction(value)
    assert all(abs(piece) <= 2**30 for piece in found)


@pytest.mark.parametrize("value", [NAN, INFINITY, -INFINITY, 2.0**80, 1e300])
def test_what_is_too_large_has_no_pieces(value: float) -> None:
    assert pieces(value) == (0,) * len(WEIGHTS)
    assert repr(rest(value)) == repr(value)


@settings(max_examples=2000)
@given(values=st.lists(finite, max_size=12))
def test_the_sum_is_rounded_once(values: list[float]) -> None:
    limbs = [sum(column) for column in zip(*map(pieces, values), strict=True)]
    limbs = limbs or [0] * len(WEIGHTS)
    found = rounded(limbs, [rest(value) for value in values])
    assert found == exact_sum((value, 1) for value in values)
    try:
        assert found == math.fsum(values)
    except OverflowError:  # which fsum raises for an intermediate sum as well
        whole = sum(map(Fraction, values))
        too_large = abs(whole) >= 2**1024 - 2**970
        assert found == (
            math.copysign(INFINITY, 1 if whole > 0 else -1) if too_large else float(whole)
        )


def value_of(data: Dice) -> float | None:
    kind = data.random()
    if kind < 0.1:
        return None
    if kind < 0.6:
        return data.choice(ODD)
    return data.choice((1, -1)) * data.random() * 2.0 ** data.randrange(-30, 30)


def rows(data: Dice, most: int) -> Bag:
    return Counter((data.choice((None, 0, 1)), value_of(data)) for _ in range(data.randrange(most)))


def state_of(data: Dice) -> dict[str, Table]:
    other = Counter({(key,): 1 for key in (0, 1, None) if data.random() < 0.7})
    return {"r": Table(("g", "x"), rows(data, 8)), "s": Table(("g",), other)}


def transaction(data: Dice, state: dict[str, Table]) -> Transaction:
    before = state["r"].rows
    present = sorted(before.elements(), key=repr)
    deleted = Counter(data.sample(present, data.randrange(len(present) + 1)))
    after = (before - deleted) + rows(data, 4)
    changes = {"r": minimal(before, after)}
    if data.random() < 0.3:
        others = state["s"].rows
        changes["s"] = minimal(others, Counter({(data.choice((0, 1)),): 1}))
    return Transaction(changes)


def sums(data: Dice, x: Column, new: Numbering) -> tuple[AggregateOutput, ...]:
    small = Call("<", (x, x), "boolean") if data.random() < 0.1 else equal(x, x)
    only = small if data.random() < 0.3 else None
    distinct = data.random() < 0.15
    calls = [AggregateCall("sum", (x,), "double", distinct, only)]
    if data.random() < 0.5:
        calls.append(AggregateCall("avg", (x,), "double"))
    if data.random() < 0.3:
        calls.append(AggregateCall("count", (x,), "bigint"))
    return tuple(AggregateOutput(new.attribute(f"f{p}", c.type), c) for p, c in enumerate(calls))


def view_of(data: Dice) -> Relation:
    """SUM and AVG by groups, of everything, below a join, below a selection, above a join."""
    new = Numbering(0)
    r = Scan("r", (new.attribute("g", "bigint"), new.attribute("x", "double")))
    s = Scan("s", (new.attribute("g", "bigint"),))
    g, x = r.attributes
    same = equal(Column(g), Column(s.attributes[0]))
    child: Relation = Join(r, s, same) if data.random() < 0.3 else r
    group = (g,) if data.random() < 0.7 else ()
    view: Relation = Aggregate(child, group, sums(data, Column(x), new))
    if group and child is r and data.random() < 0.4:
        if data.random() < 0.5:
            return Join(view, s, same)
        return Select(view, Call("<", (integer(0), Column(view.attributes[-1])), "boolean"))
    return view


TECHNIQUES = (None, *(t for t in Technique if t is not Technique.FULL))


@settings(max_examples=1000)
@given(data=dice)
def test_views_with_sums_of_doubles_are_their_recomputes(data: Dice) -> None:
    view = named(view_of(data))
    kept = strategy("v", view, data.choice(TECHNIQUES))
    if kept.reason is not None:
        assert kept.reason.code.startswith(("NOT_BY_", "DISTINCT_AGGREGATE"))
        kept = strategy("v", view)
    assert kept.reason is None
    state = state_of(data)
    stored = recomputed(kept, state)
    for step in range(5):
        change = retraction(state) if step == 4 else transaction(data, state)
        stored, _ = refreshed(kept, stored, state, change, Dice(data.randrange(2**32)))
        state = change.apply(state)
        assert repr(sorted(stored.items(), key=repr)) == repr(
            sorted(recomputed(kept, state).items(), key=repr)
        )
        assert repr(visible(kept, stored)) == repr(defined(kept, state))


def only_sum(state: list[float]) -> object:
    """The stored sum after the values came one by one, and then all but the last went."""
    new = Numbering(0)
    r = Scan("r", (new.attribute("g", "bigint"), new.attribute("x", "double")))
    call = AggregateCall("sum", (Column(r.attributes[1]),), "double")
    view = named(Aggregate(r, (), (AggregateOutput(new.attribute("s", "double"), call),)))
    kept = strategy("v", view)
    assert kept.technique is Technique.CHANGE_TABLE
    table: dict[str, Table] = {"r": Table(("g", "x"), Counter())}
    stored = recomputed(kept, table)
    steps = [state[: n + 1] for n in range(len(state))]
    steps += [state[n:] for n in range(1, len(state))]
    for values in steps:
        after = Counter((0, value) for value in values)
        change = Transaction({"r": minimal(table["r"].rows, after)})
        stored, _ = refreshed(kept, stored, table, change, None)
        table = change.apply(table)
    return visible(kept, stored)[0][0]


@pytest.mark.parametrize(
    "values",
    [[1e20, 1.0], [1e300, 1.0, 1e-300], [1e308, 1e308, -1e308], [NAN, INFINITY, -INFINITY, 0.1],
     [-0.0], [5e-324, 1.0, -5e-324], [1e300, 2.0**-100]],
)  # fmt: skip
def test_what_went_leaves_nothing_behind(values: list[float]) -> None:
    assert repr(only_sum(values)) == repr(values[-1] + 0.0)
