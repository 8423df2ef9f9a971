"""Which aggregates give the same value whatever the order in which their rows are met.

A group that is computed again must come out as it did before, to the last bit: what cancels out is
told by equality, and a view is compared with its recompute. Sums of doubles are exact, and functions
of the sequence of rows (STDDEV, FIRST, COLLECT_LIST, …) get the rows of a group in one order: that of
their arguments (``planner/row_order.py``). What is left are arguments that have no order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import references
from freshview.algebra.relations import Aggregate, Limit, Relation, Window
from freshview.algebra.render import aggregate_text
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import walk
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


def check_groups(group: Iterable[Attribute]) -> None:
    """Raise NoRule for a group that no join finds again: Spark groups maps, and does not compare them."""
    for attribute in group:
        if not is_comparable(attribute.type):
            raise NoRule(
                Reason(
                    "UNGROUPABLE_COLUMN",
                    f"{attribute.name} of type {attribute.type}",
                    "the rows of a group are found by it, and Spark cannot compare values of this type",
                    "group by sort_array(map_entries(m)) of a MAP, to_json(v) of a VARIANT",
                )
            )


def has_own_values(relation: Relation) -> bool:
    """Whether a view holds values that Spark computes otherwise, or not always in the same way.

    So it is where rows that tie in an order have to be taken one after the other.
    Spark adds up smaller integers than BIGINT exactly until the sum of a group is 2⁵³.
    """
    for node in walk(relation):
        match node:
            case Limit() | Window(ties=(_, *_)):
                return True
            case Aggregate(_, _, aggregates) if any(_has_own_value(o.call) for o in aggregates):
                return True
    return False


def _has_own_value(call: AggregateCall) -> bool:
    averages = call.averages_integers and call.arguments[0].type == "bigint"
    return call.depends_on_order or call.sums_doubles or averages


def order_of(call: AggregateCall) -> tuple[Attribute, ...]:
    """The attributes that a call reads, in the order of its arguments."""
    parts = call.arguments if call.filter is None else (*call.arguments, call.filter)
    read = (a for part in parts for a in sorted(references(part), key=lambda a: a.id))
    return tuple(dict.fromkeys(read))


def is_comparable(type: str) -> bool:
    """Whether Spark's joins and counts of equal rows take values of a type."""
    return "map<" not in type and "variant" not in type


def is_orderable(type: str) -> bool:
    """Whether Spark compares values of a type."""
    return _UNORDERED.search(type) is None
