"""Generating the aggregate-change table, after [GM06] 5.1."""

from __future__ import annotations

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    cast,
    coalesce,
    conjunction,
    either,
    equal,
    integer,
    is_null,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    Repeat,
    Select,
    keep,
)
from freshview.algebra.schema import COUNT, Attribute
from freshview.algebra.traverse import numbering
from freshview.change_table.states import AggregateStates


def stored_states(node: Aggregate, states: AggregateStates) -> Relation:
    """π_{G, states}(E): the states of every group, computed from scratch."""
    counted = Project(node.child, (*map(keep, node.child.attributes), Output(COUNT, integer(1))))
    return _states(node, counted, states)


def change_table(node: Aggregate, delta: Relation, states: AggregateStates) -> Relation:
    """□V = π_{G, f(A), Count=sum(_count)}(Π_{G,A,_count=1}(ΔE) ⊎ Π_{G,A=N(A),_count=−1}(∇E)).

    With one signed relation δE in place of ΔE and ∇E, N(A) is n·A ([GM06] Table 3). Groups in which
    nothing changes are left out. Reads no state: the aggregates are self-maintainable.
    """
    changes = _states(node, delta, states)
    unchanged: Expression | None = conjunction(
        tuple(equal(Column(state), _zero(state)) for state in states.attributes)
    )
    assert unchanged is not None
    return Select(changes, Call("not", (unchanged,), "boolean"))


def _states(node: Aggregate, counted: Relation, states: AggregateStates) -> Relation:
    """The states per group of a relation with signed counts; sums over no row are zero."""
    new = numbering(counted, node)
    signed = counted
    if not all(argument.multiplies for argument in states.arguments):
        signed = _single_copies(counted)
    columns: list[Output] = [keep(attribute) for attribute in node.group]
    totals: list[tuple[Attribute, Attribute]] = []

    def summed(state: Attribute, addend: Expression) -> None:
        column = new.attribute(f"{state.name}_addend", addend.type)
        columns.append(Output(column, addend))
        totals.append((state, column))

    summed(states.rows, Column(COUNT))
    for argument in states.arguments:
        missing = is_null(argument.argument)
        summed(argument.present, either(missing, integer(0), Column(COUNT)))
        if argument.total is not None:
            value = cast(argument.argument, _addend_type(argument.argument.type))
            product = Call("*", (cast(Column(COUNT), "decimal(19,0)"), value), argument.total.type)
            if not argument.multiplies:
                negative = Call("<", (Column(COUNT), integer(0)), "boolean")
                opposite = Call("-", (cast(integer(0), value.type), value), value.type)
                product = either(negative, opposite, value)
            summed(argument.total, product)
    raw = {state: new.attribute(state.name, state.type) for state, _ in totals}
    grouped = Aggregate(
        Project(signed, tuple(columns)),
        node.group,
        tuple(
            AggregateOutput(raw[state], AggregateCall("sum", (Column(column),), state.type))
            for state, column in totals
        ),
    )
    filled = tuple(
        Output(state, coalesce(cast(Column(raw[state]), state.type), _zero(state)))
        for state, _ in totals
    )
    return Project(grouped, (*map(keep, node.group), *filled))


def _single_copies(counted: Relation) -> Relation:
    """Each row |n| times with count ±1, for sums in which n·A would not be exact."""
    count = Column(COUNT)
    sign = either(Call("<", (count, integer(0)), "boolean"), integer(-1), integer(1))
    outputs = (*(keep(a) for a in counted.attributes if a != COUNT), Output(COUNT, sign))
    return Project(Repeat(counted, Call("abs", (count,), "bigint")), outputs)


def _addend_type(type: str) -> str:
    return "decimal(19,0)" if not type.startswith("decimal") else type


def _zero(state: Attribute) -> Expression:
    return cast(integer(0), state.type)
