"""What is stored of an aggregate so that a change table can refresh it, and how values follow.

For a group: ``__rows``, the number of its rows; for each aggregated argument the number of its
non-null values and, if it is summed, their exact sum, and its extrema as they are asked for. COUNT,
SUM, AVG, MIN and MAX are read off these, so a null never has to tell an empty group from a group of
nulls. The exact sum of doubles is six sums of pieces (``algebra/exact_sums.py``) and the number of values
that have a rest beyond them; while there are such values, the sum is computed from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.aggregates import (
    DISTRIBUTIVE,
    DOUBLES,
    EXTREMA,
    OR_NULL,
    SUMMED,
    AggregateCall,
    can_overflow,
    multiplies_exactly,
    sum_state_type,
)
from freshview.algebra.exact_sums import WEIGHTS
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    cast,
    either,
    equal,
    integer,
    null,
)
from freshview.algebra.relations import Aggregate
from freshview.algebra.render import aggregate_text
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import walk
from freshview.reasons import NoRule, Reason

ROWS_NAME = "__rows"


@dataclass(frozen=True, slots=True)
class Extremum:
    """MIN or MAX of an argument: the stored value, and in a change table what came and what went.

    ``gained`` is the extremum of the inserted values and ``lost`` that of the deleted ones; each is
    null where there is none ([GM06] Table 3: N leaves the value as it is).
    """

    function: str
    value: Attribute
    gained: Attribute
    lost: Attribute

    def reaches(self, one: Expression, other: Expression) -> Expression:
        """Whether one value is as extreme as another, which is what decides about both."""
        return Call("<=" if self.function == "min" else ">=", (one, other), "boolean")


@dataclass(frozen=True, slots=True)
class DoubleSum:
    """The exact sum of doubles: sums of their pieces, and how many values have a rest.

    ``wide`` is the sum itself where there is a rest, else null. In a change table ``moved`` is the
    number of values with a rest that came or went, which ``outside`` does not tell: one may have come
    for another.
    """

    limbs: tuple[Attribute, ...]
    outside: Attribute
    wide: Attribute
    moved: Attribute

    def value(self, present: Expression) -> Expression:
        """The sum, if it is one of some values."""
        limbs = tuple(Column(limb) for limb in self.limbs)
        near = Call("exact double", (*limbs, present), "double")
        return either(equal(Column(self.outside), integer(0)), near, Column(self.wide))


@dataclass(frozen=True, slots=True)
class ArgumentState:
    """The states of one aggregated argument: how many values, their sum and extrema if needed."""

    argument: Expression
    present: Attribute
    total: Attribute | None
    extrema: tuple[Extremum, ...] = ()
    doubles: DoubleSum | None = None

    @property
    def multiplies(self) -> bool:
        """Whether count × value is exact, so that rows need not be repeated."""
        return self.total is None or multiplies_exactly(self.argument.type)

    def extremum(self, function: str) -> Extremum:
        return next(e for e in self.extrema if e.function == function)


@dataclass(frozen=True, slots=True)
class AggregateStates:
    """All states of one aggregate node, and which argument each call reads."""

    rows: Attribute
    arguments: tuple[ArgumentState, ...]

    @property
    def additive(self) -> tuple[Attribute, ...]:
        """The states that a change table adds to."""
        states = [self.rows]
        for argument in self.arguments:
            states.append(argument.present)
            if argument.total is not None:
                states.append(argument.total)
            if argument.doubles is not None:
                states += (*argument.doubles.limbs, argument.doubles.outside)
        return tuple(states)

    @property
    def extrema(self) -> tuple[tuple[ArgumentState, Extremum], ...]:
        return tuple((a, extremum) for a in self.arguments for extremum in a.extrema)

    @property
    def double_sums(self) -> tuple[tuple[ArgumentState, DoubleSum], ...]:
        return tuple((a, a.doubles) for a in self.arguments if a.doubles is not None)

    @property
    def late(self) -> bool:
        """Whether a value may have to be asked of the base: an extremum, or a sum with rests."""
        return bool(self.extrema or self.double_sums)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What is stored of a group."""
        extrema = tuple(extremum.value for _, extremum in self.extrema)
        return self.additive + extrema + tuple(doubles.wide for _, doubles in self.double_sums)

    def of(self, call: AggregateCall) -> ArgumentState:
        argument = counted_argument(call)
        return next(state for state in self.arguments if state.argument == argument)

    def value(self, call: AggregateCall) -> Expression:
        """The value of an aggregate call from the states, as Spark would compute it."""
        if call.counts_rows:
            return Column(self.rows)
        state = self.of(call)
        present = Column(state.present)
        if call.function == "count":
            return present
        if call.function in EXTREMA:
            return Column(state.extremum(call.function).value)
        empty = equal(present, integer(0))
        if state.doubles is not None:
            total = state.doubles.value(present)
        else:
            assert state.total is not None
            total = Column(state.total)
        if call.function == "sum":
            return either(empty, null(call.type), cast(total, call.type))
        return either(empty, null(call.type), Call("average", (total, present), call.type))


def aggregate_states(node: Aggregate, new: Numbering) -> AggregateStates:
    """The states that keep this aggregate, or NoRule naming the call that has none."""
    wanted: dict[Expression, dict[str, None]] = {}
    # A sum of sums has 38 digits by its type alone.
    of_sums = any(isinstance(below, Aggregate) for below in walk(node.child))
    for output in node.aggregates:
        call = output.call
        check_self_maintainable(call)
        if not of_sums and call.function in SUMMED and can_overflow(call.arguments[0].type):
            raise NoRule(_without_state(call))
        if not call.counts_rows:
            wanted.setdefault(counted_argument(call), {}).setdefault(call.function)
    rows = new.attribute(ROWS_NAME, "bigint", nullable=False)
    arguments = tuple(
        _argument_state(place, argument, tuple(functions), new)
        for place, (argument, functions) in enumerate(wanted.items(), start=1)
    )
    return AggregateStates(rows, arguments)


def _argument_state(
    place: int, argument: Expression, functions: tuple[str, ...], new: Numbering
) -> ArgumentState:
    present = new.attribute(f"__present{place}", "bigint", nullable=False)
    total, doubles = None, None
    if SUMMED.isdisjoint(functions):
        pass
    elif argument.type in DOUBLES:
        doubles = _double_sum(place, new)
    else:
        total = new.attribute(f"__sum{place}", str(sum_state_type(argument.type)))
    extrema = tuple(
        Extremum(
            function,
            new.attribute(f"__{function}{place}", argument.type),
            new.attribute(f"__gained_{function}{place}", argument.type),
            new.attribute(f"__lost_{function}{place}", argument.type),
        )
        for function in functions
        if function in EXTREMA
    )
    return ArgumentState(argument, present, total, extrema, doubles)


def _double_sum(place: int, new: Numbering) -> DoubleSum:
    limbs = tuple(
        new.attribute(f"__sum{place}_{number}", "bigint") for number in range(len(WEIGHTS))
    )
    return DoubleSum(
        limbs,
        new.attribute(f"__outside{place}", "bigint"),
        new.attribute(f"__wide{place}", "double"),
        new.attribute(f"__moved{place}", "bigint"),
    )


def counted_argument(call: AggregateCall) -> Expression:
    """The argument with the FILTER clause folded in: a row filtered out is a null argument."""
    if call.filter is None:
        return call.arguments[0]
    value = call.arguments[0] if call.arguments else integer(1)
    return either(call.filter, value, null(value.type))


def check_self_maintainable(call: AggregateCall) -> None:
    """Raise NoRule for a call that no states of ours keep."""
    if call.function in EXTREMA:
        return
    if call.distinct:
        raise NoRule(
            Reason(
                "DISTINCT_AGGREGATE",
                aggregate_text(call),
                "a distinct aggregate needs the count of every value, which is not kept yet",
                "materialise SELECT DISTINCT below, and aggregate that view",
            )
        )
    if call.function in OR_NULL.values():
        raise NoRule(
            Reason(
                "NULL_ON_OVERFLOW",
                aggregate_text(call),
                f"without ANSI mode a sum of {call.arguments[0].type} that overflows is NULL, and"
                " nothing tells what is left when values are taken away from it",
                "set spark.sql.ansi.enabled, or cast the argument to DECIMAL with 28 digits at most",
            )
        )
    if call.function not in DISTRIBUTIVE or len(call.arguments) > 1:
        raise NoRule(
            Reason(
                "AGGREGATE_NOT_DISTRIBUTIVE",
                aggregate_text(call),
                f"{call.function} cannot be computed from its old value and a delta alone",
                "give the view groups, of which only the touched ones are computed again",
            )
        )
    if call.function == "count" or call.sums_doubles:
        return
    if sum_state_type(call.arguments[0].type) is None:
        raise NoRule(_without_state(call))


def _without_state(call: AggregateCall) -> Reason:
    return Reason(
        "SUM_WITHOUT_STATE",
        aggregate_text(call),
        f"a sum of {call.arguments[0].type} may need every digit that Spark has, and more on the way",
        "give the view groups, of which only the touched ones are computed again",
    )
