"""What can not be kept current at all: a value that is not a function of the tables' contents."""

from __future__ import annotations

from freshview.algebra.clock import clock_parts, is_clock
from freshview.algebra.clock_time import zone_of
from freshview.algebra.expressions import Opaque, is_deterministic
from freshview.algebra.relations import Aggregate, Relation, Window
from freshview.algebra.render import aggregate_text, expression_text, window_text
from freshview.algebra.traverse import expressions, tables, walk
from freshview.frontend.expressions import CLOCK_CAST
from freshview.reasons import Reason

CLOCK = frozenset({"CurrentTime", "CurrentBatchTimestamp", "CurrentTimeZone", CLOCK_CAST})
"""Functions of the clock that are not read as a table; the others are (`algebra/clock.py`)."""

SESSION = frozenset({"CurrentUser", "CurrentDatabase", "CurrentCatalog", "SparkVersion"})
"""Functions of who asks."""

_VERSION = "getSparkVersion"
"""The method that Spark's rules put in the place of ``version()``."""

PLACE = frozenset(
    {"InputFileName", "InputFileBlockStart", "InputFileBlockLength", "SparkPartitionID"}
    | {"MonotonicallyIncreasingID", "monotonically_increasing_id"}
)
"""Functions of where a row happens to be stored or computed."""


def refusals(relation: Relation) -> tuple[Reason, ...]:
    """Why a definition cannot be a materialized view; empty if it can."""
    opaque = (part for part in expressions(relation) if isinstance(part, Opaque))
    found = [_refusal(part) for part in opaque]
    for node in walk(relation):
        if isinstance(node, Aggregate):
            found += [
                _not_deterministic(aggregate_text(output.call))
                for output in node.aggregates
                if not output.call.deterministic
            ]
        if isinstance(node, Window):
            found += [
                _not_deterministic(window_text(output.call))
                for output in node.outputs
                if not output.call.deterministic
            ]
    return tuple(dict.fromkeys(reason for reason in found if reason is not None))


def _refusal(part: Opaque) -> Reason | None:
    name = part.text.partition("(")[0]
    subject = expression_text(part)
    if name in CLOCK:
        return _clock(subject)
    if name in SESSION or _VERSION in part.text:
        return Reason(
            "DEPENDS_ON_SESSION",
            subject,
            "its value depends on who refreshes",
            "put the value into the query as a constant",
        )
    if name in PLACE:
        return Reason(
            "DEPENDS_ON_STORAGE",
            subject,
            "its value depends on where a row is stored or computed, and rows move",
            "use a column that identifies the row",
        )
    if not part.deterministic and all(is_deterministic(a) for a in part.arguments):
        return _not_deterministic(subject)
    return None


def _clock(subject: str) -> Reason:
    return Reason(
        "DEPENDS_ON_CLOCK",
        subject,
        "its value changes without any table changing, so no refresh could tell that it did",
        "filter by current_date(), now() or localtimestamp(), which are kept as moving windows",
    )


def clock_refusals(relation: Relation) -> tuple[Reason, ...]:
    """Why the clock cannot be where a rewritten definition still has it; empty if it is nowhere.

    In a filter it is read as a table by then (`rewrite/read_clock.py`), and a column that nobody reads
    is gone.
    """
    found = [
        _outside(part.text)
        for part in expressions(relation)
        if isinstance(part, Opaque) and is_clock(part.text)
    ]
    zones = (clock_parts(table)[1] for table in tables(relation) if is_clock(table))
    found += [_zone(zone) for zone in zones if zone is not None and not _is_known(zone)]
    return tuple(dict.fromkeys(found))


def _outside(table: str) -> Reason:
    function, _ = clock_parts(table)
    return Reason(
        "CLOCK_OUTSIDE_FILTER",
        function,
        "every row that shows it would be another one at each refresh, though no table has changed",
        f"use {function} in WHERE, HAVING or ON only, and compute with it where the view is read",
    )


def _zone(zone: str) -> Reason:
    return Reason(
        "UNKNOWN_TIME_ZONE",
        zone,
        "the day begins by the session's time zone, and Python's zone database has none of this name",
        "set spark.sql.session.timeZone to a region such as Europe/Berlin, or to an offset",
    )


def _is_known(zone: str) -> bool:
    try:
        zone_of(zone)
    except ValueError:
        return False
    return True


def _not_deterministic(subject: str) -> Reason:
    return Reason(
        "NOT_DETERMINISTIC",
        subject,
        "two evaluations over the same rows differ, so there is no value to keep",
        "compute it once and store it in a table",
    )
