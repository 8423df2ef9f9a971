"""The states of the groups of an aggregate: computed from its rows, from signed rows, and added up."""

from __future__ import annotations

from dataclasses import dataclass, field

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    add,
    cast,
    coalesce,
    either,
    equal,
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
from freshview.delta.aggregate_states import AggregateStates, ArgumentState, DoubleSum


def stored_states(node: Aggregate, states: AggregateStates, new: Numbering) -> Relation:
    """π_{G, states}(E): the states of every group, computed from scratch."""
    one = new.attribute("one", "bigint", nullable=False)
    counted = Project(node.child, (*map(keep, node.child.attributes), Output(one, integer(1))))
    extrema = tuple(Output(e.value, Column(e.gained)) for _, e in states.extrema)
    wide = tuple(keep(doubles.wide) for _, doubles in states.double_sums)
    columns = (*map(keep, node.group), *map(keep, states.additive), *extrema, *wide)
    return Project(grouped_states(node, counted, one, states, new, whole=True), columns)


@dataclass(slots=True)
class _Collected:
    """What is aggregated: columns below the aggregate, and the functions of them that give states."""

    new: Numbering
    columns: list[Output]
    results: list[tuple[Attribute, tuple[Attribute, ...], str]] = field(default_factory=list)

    def column(self, name: str, value: Expression) -> Attribute:
        made = self.new.attribute(name, value.type)
        self.columns.append(Output(made, value))
        return made

    def state(self, state: Attribute, addend: Expression, function: str = "sum") -> Attribute:
        column = self.column(f"{state.name}_addend", addend)
        self.results.append((state, (column,), function))
        return column


def grouped_states(
    node: Aggregate,
    counted: Relation,
    count: Attribute,
    states: AggregateStates,
    new: Numbering,
    whole: bool = False,
) -> Relation:
    """The changes of states per group of a relation with signed counts; sums over no row are zero.

    ``whole`` says that the relation is all of the group's rows, from which the sum of doubles with
    rests can be told; of a change it cannot.
    """
    signed = counted
    if not all(argument.multiplies for argument in states.arguments):
        signed = _single_copies(counted, count)
    collected = _Collected(new, [keep(attribute) for attribute in node.group])
    collected.state(states.rows, Column(count))
    for argument in states.arguments:
        missing = is_null(argument.argument)
        collected.state(argument.present, either(missing, integer(0), Column(count)))
        if argument.total is not None:
            collected.state(argument.total, _product(argument, argument.total.type, count))
        if argument.doubles is not None:
            _collect_doubles(collected, argument, argument.doubles, count, whole)
        for extremum in argument.extrema:
            came, nothing = (
                Call("<", (integer(0), Column(count)), "boolean"),
                null(argument.argument.type),
            )
            gained = either(came, argument.argument, nothing)
            collected.state(extremum.gained, gained, extremum.function)
            lost = either(came, nothing, argument.argument)
            collected.state(extremum.lost, lost, extremum.function)
    raw = {state: new.attribute(state.name, state.type) for state, _, _ in collected.results}
    grouped = Aggregate(
        Project(signed, tuple(collected.columns)),
        node.group,
        tuple(
            AggregateOutput(
                raw[state], AggregateCall(function, tuple(map(Column, columns)), state.type)
            )
            for state, columns, function in collected.results
        ),
    )
    filled = tuple(
        Output(state, coalesce(cast(Column(raw[state]), state.type), zero(state)))
        if function == "sum"
        else Output(state, Column(raw[state]))
        for state, _, function in collected.results
    )
    return Project(grouped, (*map(keep, node.group), *filled))


def _collect_doubles(
    collected: _Collected,
    argument: ArgumentState,
    doubles: DoubleSum,
    count: Attribute,
    whole: bool,
) -> None:
    """n·pᵢ for each piece, and how many values have a rest: n of them, |n| that came or went."""
    value, number = cast(argument.argument, "double"), Column(count)
    limbs = [
        collected.state(
            limb,
            Call("*", (number, Call("piece", (value, integer(place)), "bigint")), "bigint"),
        )
        for place, limb in enumerate(doubles.limbs)
    ]
    rest = Call("rest", (value,), "double")
    near = Call("or", (is_null(value), equal(rest, Literal(0.0, "double", "0.0"))), "boolean")
    collected.state(doubles.outside, either(near, integer(0), number))
    if whole:
        columns = (*limbs, collected.column("rest", rest))
        collected.results.append((doubles.wide, columns, "wide_sum"))
    else:
        moved = Call("abs", (number,), "bigint")
        collected.state(doubles.moved, either(near, integer(0), moved))


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
