"""Lookups of keys that lie in a few narrow ranges, through the native query engine.

Spark writes files with one row group of millions of rows, which no row group statistics can
narrow. The parquet page index can, to about 20,000 rows, but pyarrow does not use it and the
engine inside `deltalake` does, for comparisons (not for more than 20 values in an IN list). So when
the keys are few, or many but close together, the engine reads just the pages of their ranges, and
the exact comparison is made here as in every lookup. 10 keys in 6M rows cost 20 ms of processor
time instead of 460.

The engine is not asked where it could be wrong or large: timestamps (INT96), types whose order or
text form needs care, keys spread over the table (it would hold whole row groups).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from freshview.storage.columns import Column
from freshview.storage.native_files import LiveFile, schema_of
from freshview.storage.native_match import Keys, Wanted

_RANGES_MAX = 16
_COVERED_MAX = 0.01
"""The ranges may cover this part of the span of the table's keys."""

_SAFE = 1 << 62
_TABLE = "t"

Range = tuple[int, int]


class EngineFailed(Exception):
    """The engine could not answer; reading the files without it will, or says why not."""


def ranges_of(wanted: Wanted, key: Column, files: Sequence[LiveFile]) -> list[Range] | None:
    """A few narrow ranges that hold all that is wanted, or None when the engine should not be asked."""
    kind = key.arrow_type
    if not (pa.types.is_signed_integer(kind) or pa.types.is_date32(kind)):
        return None
    if isinstance(wanted, Keys):
        return _around(wanted, files)
    ends = [(int(low), int(high)) for low, high in zip(wanted.lows, wanted.highs, strict=True)]
    safe = all(low > -_SAFE and high < _SAFE for low, high in ends)
    return ends if safe and len(ends) <= _RANGES_MAX and _are_narrow(ends, files) else None


def _around(keys: Keys, files: Sequence[LiveFile]) -> list[Range] | None:
    if keys.with_null:
        return None
    values = keys.sorted_bits
    if values is None or len(values) == 0 or values[0] < -_SAFE or values[-1] > _SAFE:
        return None
    if len(values) <= _RANGES_MAX:
        return [(int(value), int(value)) for value in values]
    gaps = np.diff(values)
    cuts = np.sort(np.argpartition(gaps, len(gaps) - (_RANGES_MAX - 1))[-(_RANGES_MAX - 1) :])
    starts = [0, *(int(cut) + 1 for cut in cuts)]
    ends = [*(int(cut) for cut in cuts), len(values) - 1]
    ranges = [(int(values[s]), int(values[e])) for s, e in zip(starts, ends, strict=True)]
    return ranges if _are_narrow(ranges, files) else None


def _are_narrow(ranges: Sequence[Range], files: Sequence[LiveFile]) -> bool:
    """Whether the ranges cover so little of the table's keys that reading its pages pays."""
    lows = [live.low for live in files]
    highs = [live.high for live in files]
    known_lows = [low for low in lows if low is not None]
    known_highs = [high for high in highs if high is not None]
    if not known_lows or len(known_lows) < len(files) or len(known_highs) < len(files):
        return False
    span = max(known_highs) - min(known_lows) + 1
    covered = sum(high - low + 1 for low, high in ranges)
    return covered <= span * _COVERED_MAX


def engine_for(table: DeltaTable) -> QueryBuilder:
    """An engine that holds the table's snapshot of this moment."""
    return QueryBuilder().register(_TABLE, table)


def ranged_batches(
    engine: QueryBuilder, columns: Sequence[Column], key: Column, ranges: Sequence[Range]
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """Batches of rows in the ranges: the key column, and the columns asked for."""
    selected = ", ".join(f"{_quoted(c.name)} as c{i}" for i, c in enumerate([*columns, key]))
    within = " or ".join(_condition(key, *bounds) for bounds in ranges)
    text = f"select {selected} from {_TABLE} where {within}"  # noqa: S608 - only numbers and quoted names
    for found in _executed(engine, text):
        batch = pa.record_batch(cast("Any", found))
        arrays = [
            column.from_engine(batch.column(index)) for index, column in enumerate([*columns, key])
        ]
        rows = pa.RecordBatch.from_arrays(arrays[:-1], schema=schema_of(columns))
        yield arrays[-1], rows


def _executed(engine: QueryBuilder, text: str) -> Iterator[object]:
    try:
        yield from engine.execute(text)
    except Exception as problem:
        # The engine raises plain Exception for everything, a vacuumed file among it.
        raise EngineFailed(str(problem)) from problem


def _condition(key: Column, low: int, high: int) -> str:
    name = _quoted(key.name)
    if low == high:
        return f"{name} = {_literal(key, low)}"
    return f"({name} >= {_literal(key, low)} and {name} <= {_literal(key, high)})"


def _literal(key: Column, value: int) -> str:
    return f"arrow_cast({value}, 'Date32')" if pa.types.is_date32(key.arrow_type) else str(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
