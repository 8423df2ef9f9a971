"""The clock of a warehouse as a source: one row, whose version follows from the moment.

Nothing of it is stored: what a view was refreshed for is in the versions that its commit carries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pyarrow as pa

from freshview.algebra.clock import clock_scan, clock_type, is_clock
from freshview.algebra.clock_time import clock_value, shown_clock, version_at
from freshview.algebra.schema import Numbering
from freshview.errors import InvalidMoment
from freshview.runtime.commit import SourceVersion
from freshview.storage.interface import COUNT, TableState

Clock = Callable[[], object]
"""What time it is: a function that returns a moment with its time zone."""

_IDENTITY = "clock"
ARROW_TYPES = {
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def system_clock() -> datetime:
    return datetime.now(UTC)


def fixed_clock(text: str) -> Clock:
    """A clock that stands still at a moment written as ISO 8601. Raises InvalidMoment."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidMoment(moment=text) from None
    return lambda: moment


def moment_of(clock: Clock) -> datetime:
    """What a clock says. Raises InvalidMoment if that is no moment in a time zone."""
    moment = clock()
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidMoment(moment=moment)
    try:
        moment.astimezone(UTC)
    except OverflowError:  # a moment at the edge of Python's years is outside of them elsewhere
        raise InvalidMoment(moment=moment) from None
    return moment


def pinned_clock(table: str, moment: datetime) -> SourceVersion:
    """A clock at a moment, as a source is pinned."""
    return clock_pin(version_at(table, moment))


def clocks_of(vector: Mapping[str, SourceVersion]) -> tuple[str, ...]:
    """The clocks among the sources of a view."""
    return tuple(name for name in vector if is_clock(name))


def moment_text(vector: Mapping[str, SourceVersion]) -> str | None:
    """The day or moment that a view was refreshed for; None if it reads no clock."""
    told = [shown_clock(name, vector[name].version) for name in clocks_of(vector)]
    return max(told, key=len, default=None)


def clock_pin(version: int) -> SourceVersion:
    """A version of a clock."""
    return SourceVersion(version, _IDENTITY)


def clock_rows(table: str, version: int) -> pa.Table:
    """The one row of a clock in one of its versions."""
    (column,) = clock_scan(table, Numbering(0)).attributes
    kind = ARROW_TYPES[clock_type(table)]
    return pa.table({column.name: pa.array([clock_value(table, version)], kind)})


def clock_changes(table: str, after: int, upto: int) -> pa.Table:
    """The row that goes and the row that comes."""
    both = pa.concat_tables([clock_rows(table, after), clock_rows(table, upto)])
    return both.append_column(COUNT, pa.array([-1, 1], pa.int64()))


def clock_state(table: str, version: int) -> TableState:
    """What is known of a clock as of any table."""
    rows = clock_rows(table, version)
    (name,) = rows.column_names
    field = {"name": name, "type": clock_type(table), "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    return TableState(table, version, _IDENTITY, schema, rows.schema, 1, 0, 0, (), frozenset(), {})
