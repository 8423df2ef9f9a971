"""The states of the groups of an aggregate: computed from its rows, from signed rows, and added up."""

from __future__ import annotations

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    add,
    cast,
    coalesce,
    either,
    integer,
    is_null,
    null,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    Repeat,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.delta.aggregate_states import AggregateStates, ArgumentState


def stored_states(node: Aggregate, states: AggregateStates, new: Numbering) -> Relation:
    """π_{G, states}(E): the states of every group, computed from scratch."""
    one = new.attribute("one", "bigint", nullable=False)
    counted = Project(node.child, (*map(keep, node.child.attributes), Output(one, integer(1))))
    extrema = tuple(Output(e.value, Column(e.gained)) for _, e in states.extrema)
    columns = (*map(keep, node.group), *map(keep, states.additive), *extrema)
    return Project(grouped_states(node, counted, one, states, new), columns)


def grouped_states(
    node: Aggregate,
    counted: Relation,
    count: Attribute,
    states: AggregateStates,
    new: Numbering,
) -> Relation:
    """The changes of states per group of a relation with signed counts; sums over no row are zero."""
    signed = counted
    if not all(argument.multiplies for argument in states.arguments):
        signed = _single_copies(counted, count)
    columns: list[Output] = [keep(attribute) for attribute in node.group]
    results: list[tuple[Attribute, Attribute, str]] = []

    def collected(state: Attribute, addend: Expression, function: str = "sum") -> None:
        column = new.attribute(f"{state.name}_addend", addend.type)
        columns.append(Output(column, addend))
        results.append((state, column, function))

    collected(states.rows, Column(count))
    for argument in states.arguments:
        missing = is_null(argument.argument)
        collected(argument.present, either(missing, integer(0), Column(count)))
        if argument.total is not None:
            collected(argument.total, _product(argument, argument.total.type, count))
        for extremum in argument.extrema:
            came, nothing = (
                Call("<", (integer(0), Column(count)), "boolean"),
                null(argument.argument.type),
            )
            collected(extremum.gained, either(came, argument.argument, nothing), extremum.function)
            collected(extremum.lost, either(came, nothing, argument.argument), extremum.function)
    raw = {state: new.attribute(state.name, state.type) for state, _, _ in results}
    grouped = Aggregate(
        Project(signed, tuple(columns)),
        node.group,
        tuple(
            AggregateOutput(raw[state], AggregateCall(function, (Column(column),), state.type))
            for state, column, function in results
        ),
    )
    filled = tuple(
        Output(state, coalesce(cast(Column(raw[state]), state.type), zero(state)))
        if function == "sum"
        else Output(state, Column(raw[state]))
        for state, _, function in results
    )
    return Project(grouped, (*map(keep, node.group), *filled))


def _product(argument: ArgumentState, type: str, count: Attribute) -> Expression:
    """n·A, the change of a sum by a row with its signed count."""
    value = cast(argument.argument, _addend_type(argument.argument.type))
    if argument.multiplies:
        return Call("*", (cast(Column(count), "decimal(19,0)"), value), type)
    negative = Call("<", (Column(count), integer(0)), "boolean")
    opposite = Call("-", (cast(integer(0), value.type), value), value.type)
    return either(negative, opposite, value)


def _single_copies(counted: Relation, count: Attribute) -> Relation:
    """Each row |n| times with count ±1, for sums in which n·A would not be exact."""
    number = Column(count)
    sign = either(Call("<", (number, integer(0)), "boolean"), integer(-1), integer(1))
    outputs = (*(keep(a) for a in counted.attributes if a != count), Output(count, sign))
    return Project(Repeat(counted, Call("abs", (number,), "bigint")), outputs)


def _addend_type(type: str) -> str:
    return "decimal(19,0)" if not type.startswith("decimal") else type


def added(before: Attribute, state: Attribute) -> Expression:
    """U's function for a state: f(v, □v) = v + □v, where a missing v is zero."""
    total = add(coalesce(Column(before), zero(state)), Column(state), state.type)
    return Call("cast", (total,), state.type)


def zero(state: Attribute) -> Expression:
    return cast(integer(0), state.type)
