"""Aggregate functions and the laws that decide how they are maintained."""

from __future__ import annotations

from dataclasses import dataclass, field

from freshview.algebra.expressions import Expression
from freshview.algebra.schema import INTEGRAL_TYPES, decimal_type

DISTRIBUTIVE = frozenset({"count", "sum", "avg"})
"""Kept from sums and counts of a delta alone; avg is algebraic, sum over count."""

OR_NULL = {"sum": "sum_or_null", "avg": "avg_or_null"}
"""Sums of decimals that are NULL when they overflow, as they do without ANSI mode."""

SUMMED = frozenset({"sum", "avg"})
EXTREMA = frozenset({"min", "max"})
"""Kept from a delta alone as long as the extremum itself is not deleted."""

STATE_DIGITS_MAX = 33
"""Of decimals with more digits a few values are enough for a change of their sum to overflow, though the sum
does not; with 33 it takes a hundred thousand of the largest ones."""

DOUBLES = frozenset({"float", "double"})
"""Types whose sums are rounded when they are added up one by one."""

WITHOUT_ORDER = DISTRIBUTIVE | EXTREMA | {
    "single_value", "wide_sum", "count_if", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor",
    "percentile", "percentile_cont", "percentile_disc", "median", "approx_count_distinct",
    "bitmap_construct_agg", "bitmap_or_agg", "bitmap_and_agg",
}  # fmt: skip
"""Functions of the bag of values: whole numbers, extrema, counts per value, bits that are set.

Sums and averages are among them because they are computed without rounding (``exact_sums``). Any other
function is taken for one of the sequence of rows, and gets them in one order.
"""

PYTHONS = "pythonudaf"
"""What Spark calls each aggregate function that is written in Python."""


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """``function(DISTINCT arguments) FILTER (WHERE filter)``; ``count`` of no argument counts rows.

    ``single_value`` is the value of a scalar subquery: null over no row, an error over several.
    ``wide_sum`` of the pieces of a double and its rest is the exact sum, null if there is no rest.
    Any other function is Spark's and known by its ``template`` only.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: str
    distinct: bool = False
    filter: Expression | None = None
    deterministic: bool = True
    template: object = field(default=None, compare=False, repr=False)

    @property
    def counts_rows(self) -> bool:
        return self.function == "count" and not self.arguments and self.filter is None

    @property
    def sums_doubles(self) -> bool:
        return self.function in SUMMED and self.arguments[0].type in DOUBLES

    @property
    def averages_integers(self) -> bool:
        return self.function == "avg" and self.arguments[0].type in INTEGRAL_TYPES

    @property
    def depends_on_order(self) -> bool:
        """Whether another order of the same rows may give another value."""
        return self.function not in WITHOUT_ORDER


def sum_state_type(argument_type: str) -> str | None:
    """The type in which a running sum is kept exactly, or None if no exact one is known.

    Integers are summed as DECIMAL(38,0), which no sum of 64-bit integers can leave. A decimal keeps
    its scale; above scale 6 one digit is given up, because Spark's ``+`` on two DECIMAL(38,s) would
    round away a decimal place to make room for the carry.
    """
    if argument_type in INTEGRAL_TYPES:
        return "decimal(38,0)"
    decimal = decimal_type(argument_type)
    if decimal is None:
        return None
    precision, scale = decimal
    if scale <= 6:
        return f"decimal(38,{scale})"
    return f"decimal(37,{scale})" if precision <= 28 else None


def can_overflow(argument_type: str) -> bool:
    """Whether so few values can have a sum of 39 digits that a change of a sum may have it, too."""
    decimal = decimal_type(argument_type)
    return decimal is not None and decimal[0] > STATE_DIGITS_MAX


def multiplies_exactly(argument_type: str) -> bool:
    """Whether count × value fits Spark's decimals without rounding; if not, rows are repeated."""
    if argument_type in INTEGRAL_TYPES:
        return True
    decimal = decimal_type(argument_type)
    return decimal is not None and (decimal[0] <= 18 or (decimal[1] == 0 and decimal[0] <= 19))
