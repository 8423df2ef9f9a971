"""What is stored of an aggregate so that a change table can refresh it, and how values follow.

For a group: ``__rows``, the number of its rows; for each aggregated argument the number of its
non-null values and, if it is summed, their exact sum. COUNT, SUM and AVG are read off these, so a
null never has to tell an empty group from a group of nulls.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.aggregates import (
    DISTRIBUTIVE,
    OR_NULL,
    AggregateCall,
    multiplies_exactly,
    sum_state_type,
)
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
from freshview.reasons import NoRule, Reason

ROWS_NAME = "__rows"


@dataclass(frozen=True, slots=True)
class ArgumentState:
    """The states of one aggregated argument: how many non-null values, and their sum if needed."""

    argument: Expression
    present: Attribute
    total: Attribute | None

    @property
    def multiplies(self) -> bool:
        """Whether count × value is exact, so that rows need not be repeated."""
        return self.total is None or multiplies_exactly(self.argument.type)


@dataclass(frozen=True, slots=True)
class AggregateStates:
    """All states of one aggregate node, and which argument each call reads."""

    rows: Attribute
    arguments: tuple[ArgumentState, ...]

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        states = [self.rows]
        for argument in self.arguments:
            states.append(argument.present)
            if argument.total is not None:
                states.append(argument.total)
        return tuple(states)

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
        assert state.total is not None
        empty = equal(present, integer(0))
        if call.function == "sum":
            return either(empty, null(call.type), cast(Column(state.total), call.type))
        average = Call("average", (Column(state.total), present), call.type)
        return either(empty, null(call.type), average)


def aggregate_states(node: Aggregate, new: Numbering) -> AggregateStates:
    """The states that keep this aggregate, or NoRule naming the call that has none."""
    wanted: dict[Expression, bool] = {}
    for output in node.aggregates:
        call = output.call
        _check(call)
        if not call.counts_rows:
            argument = counted_argument(call)
            wanted[argument] = wanted.get(argument, False) or call.function != "count"
    rows = new.attribute(ROWS_NAME, "bigint", nullable=False)
    arguments = tuple(
        ArgumentState(
            argument,
            new.attribute(f"__present{place}", "bigint", nullable=False),
            new.attribute(f"__sum{place}", str(sum_state_type(argument.type))) if summed else None,
        )
        for place, (argument, summed) in enumerate(wanted.items(), start=1)
    )
    return AggregateStates(rows, arguments)


def counted_argument(call: AggregateCall) -> Expression:
    """The argument with the FILTER clause folded in: a row filtered out is a null argument."""
    if call.filter is None:
        return call.arguments[0]
    value = call.arguments[0] if call.arguments else integer(1)
    return either(call.filter, value, null(value.type))


def _check(call: AggregateCall) -> None:
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
                "use COUNT, SUM or AVG, or accept the full recompute",
            )
        )
    if call.function == "avg" and call.arguments[0].type == "bigint":
        raise NoRule(
            Reason(
                "INEXACT_AVERAGE",
                aggregate_text(call),
                "Spark adds BIGINT up as DOUBLE, so that above 2⁵³ its average depends on the order"
                " of the rows and no exact sum gives the same",
                "average CAST(x AS DECIMAL(19,0)), which is exact, or CAST(x AS INT)",
            )
        )
    if call.function != "count" and sum_state_type(call.arguments[0].type) is None:
        raise NoRule(
            Reason(
                "INEXACT_SUM",
                aggregate_text(call),
                f"a running sum of {call.arguments[0].type} is not exact: what was added and"
                " deleted again would leave rounding errors behind",
                "cast the argument to DECIMAL",
            )
        )
