"""Ranges of days and moments as ranges of the column that is cast to them.

A day, the moment at which it begins and a local time differ by the offset of a time zone, which is less
than a day in every zone and at every date. So a day more at each end holds every value whose cast lies
in a range, without asking for the zone; the predicate decides about what else comes along.
"""

from __future__ import annotations

import pyarrow as pa

from freshview.runtime.clock import ARROW_TYPES

_DAY = 86_400_000_000
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def column_ranges(kind: str, lows: pa.Array, highs: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The ends of ranges for a column of Spark's type ``kind``: as they are, or in that type and wider."""
    target = ARROW_TYPES.get(kind)
    if target is None or _are_alike(target, lows.type):
        return lows, highs
    begins = [first - _DAY for first, _ in _microseconds(lows)]
    ends = [last + _DAY for _, last in _microseconds(highs)]
    return _in_type(begins, target), _in_type(ends, target)


def _are_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether both are days, both moments, or both local times."""
    if not (pa.types.is_timestamp(one) and pa.types.is_timestamp(other)):
        return bool(one == other)
    return (one.tz is None) == (other.tz is None)


def _microseconds(values: pa.Array) -> list[tuple[int, int]]:
    """The first and the last microsecond of each value."""
    if pa.types.is_date32(values.type):
        days = values.cast(pa.int32()).to_pylist()
        return [(day * _DAY, (day + 1) * _DAY - 1) for day in days]
    moments = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64()).to_pylist()
    return [(moment, moment) for moment in moments]


def _in_type(moments: list[int], target: pa.DataType) -> pa.Array:
    if pa.types.is_date32(target):
        return pa.array([moment // _DAY for moment in moments], pa.int32()).cast(target)
    held = [min(max(moment, _LEAST), _GREATEST) for moment in moments]
    return pa.array(held, pa.int64()).cast(target)
