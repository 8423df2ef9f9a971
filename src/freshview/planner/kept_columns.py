"""What the stored rows of a view can be made of, and what can tell one of them from another."""

from __future__ import annotations

import re
from collections.abc import Iterable

from freshview.algebra.schema import Attribute
from freshview.delta.exactness import check_groups, is_comparable
from freshview.reasons import NoRule, Reason

_NOT_STORED = re.compile(
    r"(?:^|[<:,])(?:interval(?: [a-z ]+)?|time\(\d+\)|string collate \w+"
    r"|(?:geometry|geography)(?:\([^)]*\))?|(?<=.)void)(?=[>,]|$)"
)
"""Types that Delta has no columns of, in the text of a type; a name inside it is followed by a colon."""


def is_storable(attribute: Attribute) -> bool:
    """Whether Delta has columns of this type."""
    return _NOT_STORED.search(attribute.type) is None


def check_counted(columns: Iterable[Attribute]) -> None:
    """The columns of a view whose equal rows are counted. Raises NoRule."""
    for attribute in columns:
        if not is_comparable(attribute.type):
            raise NoRule(
                Reason(
                    "UNGROUPABLE_COLUMN",
                    f"{attribute.name} of type {attribute.type}",
                    "equal rows are counted, and Spark cannot compare values of this type",
                    "show sort_array(map_entries(m)) of a MAP, to_json(v) of a VARIANT",
                )
            )


def check_key(key: Iterable[Attribute]) -> None:
    """The columns by which a stored row is found again. Raises NoRule."""
    key = tuple(key)
    check_groups(key)
    for attribute in key:
        if attribute.type == "void":
            raise NoRule(
                Reason(
                    "COLUMN_WITHOUT_TYPE",
                    f"{attribute.name} of type void",
                    "stored rows are found by it, and Spark's joins on NULL without a type find none",
                    f"give it a type, as in CAST({attribute.name} AS STRING), or leave it out",
                )
            )


def check_hidden(stored: Iterable[Attribute], visible: Iterable[Attribute]) -> None:
    """The columns that a view keeps beside those that it shows. Raises NoRule."""
    shown = set(visible)
    for attribute in stored:
        if attribute not in shown and not is_storable(attribute):
            raise NoRule(
                Reason(
                    "UNSTORABLE_GROUP",
                    f"a group or a state of type {attribute.type}",
                    "it has to be kept with the rows, and Delta has no columns of this type",
                    "group by a value of another type, such as the seconds of an interval",
                )
            )
