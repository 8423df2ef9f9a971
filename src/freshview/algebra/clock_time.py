"""The values of a clock: which row it holds at which moment, and how that is told to people.

The version of a clock is the number of days or microseconds since 1970 that its value stands for, so
two versions are compared as those of a table are.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from freshview.algebra.clock import DAY, LOCAL, clock_parts

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{1,2}))?(?::(\d{2}))?")


def version_at(table: str, moment: datetime) -> int:
    """The version of a clock at a moment."""
    function, zone = clock_parts(table)
    if function == DAY:
        assert zone is not None
        return (moment.astimezone(zone_of(zone)).date() - EPOCH.date()).days
    return (moment - EPOCH) // _MICROSECOND


def clock_value(table: str, version: int) -> date | datetime:
    """What a clock says in one of its versions: a day, a moment in UTC, or a local time."""
    function, zone = clock_parts(table)
    if function == DAY:
        return EPOCH.date() + timedelta(days=version)
    moment = EPOCH + version * _MICROSECOND
    if function == LOCAL:
        assert zone is not None
        return moment.astimezone(zone_of(zone)).replace(tzinfo=None)
    return moment


def internal_value(table: str, version: int) -> int:
    """The integer by which Spark keeps a clock's value: days, or microseconds, since 1970."""
    value = clock_value(table, version)
    return microseconds(value) if isinstance(value, datetime) else version


def microseconds(value: datetime) -> int:
    """The microseconds since 1970 of a moment in UTC or of a local time."""
    return (value.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND


def shown_clock(table: str, version: int) -> str:
    """A version of a clock as people write it."""
    return clock_value(table, version).isoformat()


def zone_of(name: str) -> tzinfo:
    """The time zone of a name as Spark takes it. Raises ValueError if Python does not know it."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups()
        span = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        return timezone(-span if sign == "-" else span)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as unknown:
        raise ValueError(f"{name} is no time zone that Python knows") from unknown
