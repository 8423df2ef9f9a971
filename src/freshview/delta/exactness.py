"""Which aggregates give the same value whatever the order in which their rows are met.

A group that is computed again must come out as it did before, to the last bit: what cancels out is
told by equality, and a view is compared with its recompute. Sums of doubles are exact, and functions
of the sequence of rows (STDDEV, FIRST, COLLECT_LIST, …) get the rows of a group in one order: that of
their arguments (``planner/row_order.py``). What is left are arguments that have no order.
"""

from __future__ import annotations

import re

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import references
from freshview.algebra.render import aggregate_text
from freshview.algebra.schema import Attribute
from freshview.reasons import NoRule, Reason

_UNORDERED = re.compile(
    r"\bmap<|\b(variant|geometry|geography|interval(?! (day|hour|minute|second|year|month)))\b(?!:)"
)
"""Types that Spark does not compare, alone or inside of others; not the names of fields."""


def check_order(call: AggregateCall) -> None:
    """Raise NoRule for a function of the sequence of rows whose rows cannot be put in order."""
    if not call.depends_on_order:
        return
    unordered = next((a for a in order_of(call) if not is_orderable(a.type)), None)
    if unordered is not None:
        raise NoRule(
            Reason(
                "NO_ORDER_OF_ROWS",
                aggregate_text(call),
                f"its value depends on the order of the rows, and values of {unordered.type} have none",
                "aggregate map_entries(x), to_json(x) or another value that can be compared",
            )
        )


def order_of(call: AggregateCall) -> tuple[Attribute, ...]:
    """The attributes that a call reads, in the order of its arguments."""
    parts = call.arguments if call.filter is None else (*call.arguments, call.filter)
    read = (a for part in parts for a in sorted(references(part), key=lambda a: a.id))
    return tuple(dict.fromkeys(read))


def is_orderable(type: str) -> bool:
    """Whether Spark compares values of a type."""
    return _UNORDERED.search(type) is None
