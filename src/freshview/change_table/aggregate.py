"""Generating the aggregate-change table, after [GM06] 5.1."""

from __future__ import annotations

from collections.abc import Sequence

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    conjunction,
    equal,
    integer,
    is_null,
)
from freshview.algebra.relations import Aggregate, AggregateOutput, Relation, Select, Union
from freshview.algebra.schema import COUNT, Attribute, Numbering
from freshview.delta.aggregate_states import AggregateStates
from freshview.delta.group_states import grouped_states, zero
from freshview.delta.states import consolidate


def change_table(
    node: Aggregate, delta: Relation, states: AggregateStates, new: Numbering
) -> Relation:
    """□V = π_{G, f(A), Count=sum(_count)}(Π_{G,A,_count=1}(ΔE) ⊎ Π_{G,A=N(A),_count=−1}(∇E)).

    With one signed relation δE in place of ΔE and ∇E, N(A) is n·A for COUNT and SUM; for MIN and MAX,
    N(A) is A ([GM06] Table 3), and the extremum of what was deleted is kept apart from that of what
    was inserted. Extrema need a minimal δE: a row that came and went again is neither. Groups in
    which nothing changes are left out. Reads no state.
    """
    if states.extrema:
        delta = consolidate(delta)
    return _changed(grouped_states(node, delta, COUNT, states, new), states)


def combined(
    changes: Sequence[Relation], group: tuple[Attribute, ...], states: AggregateStates
) -> Relation:
    """Several change tables as one: U is + throughout, so they are added up by group."""
    if len(changes) == 1:
        return _changed(changes[0], states)
    columns = (*group, *states.additive)
    added = tuple(
        AggregateOutput(state, AggregateCall("sum", (Column(state),), state.type))
        for state in states.additive
    )
    return _changed(Aggregate(Union(tuple(changes), columns), group, added), states)


def _changed(changes: Relation, states: AggregateStates) -> Relation:
    """The groups in which something changes."""
    nothing: list[Expression] = [equal(Column(state), zero(state)) for state in states.additive]
    nothing += [is_null(Column(a)) for _, e in states.extrema for a in (e.gained, e.lost)]
    nothing += [equal(Column(doubles.moved), integer(0)) for _, doubles in states.double_sums]
    unchanged: Expression | None = conjunction(tuple(nothing))
    assert unchanged is not None
    return Select(changes, Call("not", (unchanged,), "boolean"))
