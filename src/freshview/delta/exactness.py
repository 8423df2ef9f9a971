"""Which aggregates give the same value whatever the order in which rows are added up.

A group that is computed again must come out as it did before, to the last bit: what cancels out is
told by equality, and a view is compared with its recompute.
"""

from __future__ import annotations

from freshview.algebra.aggregates import SUMMED, AggregateCall
from freshview.algebra.render import aggregate_text
from freshview.reasons import NoRule, Reason

_INEXACT = ("float", "double")
_WHOLE_ROWS = frozenset({"count", "min", "max", "single_value"})


def check_exact(call: AggregateCall) -> None:
    """Raise NoRule for an aggregate whose value depends on the order of the rows."""
    if call.function in _WHOLE_ROWS:
        return
    if call.function in SUMMED:
        _check_sum(call)
        return
    types = (call.type, *(argument.type for argument in call.arguments))
    if any(inexact in type for type in types for inexact in _INEXACT):
        raise NoRule(
            Reason(
                "INEXACT_AGGREGATE",
                aggregate_text(call),
                f"{call.function} computes with rounding, so its last digits depend on the order"
                " of the rows",
                "use SUM, COUNT and AVG of DECIMAL, or accept the full recompute",
            )
        )


def _check_sum(call: AggregateCall) -> None:
    type = call.arguments[0].type
    if call.function == "avg" and type == "bigint":
        raise NoRule(
            Reason(
                "INEXACT_AVERAGE",
                aggregate_text(call),
                "Spark adds BIGINT up as DOUBLE, so that above 2⁵³ its average depends on the order"
                " of the rows and no exact sum gives the same",
                "average CAST(x AS DECIMAL(19,0)), which is exact, or CAST(x AS INT)",
            )
        )
    if any(inexact in type for inexact in _INEXACT):
        raise NoRule(
            Reason(
                "INEXACT_SUM",
                aggregate_text(call),
                f"a sum of {type} is rounded: what was added and deleted again would leave errors"
                " behind, and another order of the rows gives other digits",
                "cast the argument to DECIMAL",
            )
        )
