"""Rows of a table by key, or by a range of it, in memory bounded by the answer.

Files, then row groups, that cannot hold a key by their statistics are not read. In the others the
key column is read first, a batch at a time; the other columns only up to the last batch with a hit.
Row groups are shared out over a few threads (pyarrow decodes without the interpreter lock). Keys in
a few narrow ranges go through the query engine instead, which reads single pages (`native_ranges`).
See `docs/decisions/0003-lookups.md` for what was measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import QueryBuilder

from freshview.storage.budget import Budget
from freshview.storage.columns import Column
from freshview.storage.native_files import Footers, LiveFile, file_batches, schema_of, shown
from freshview.storage.native_match import Wanted
from freshview.storage.native_ranges import EngineFailed, ranged_batches, ranges_of
from freshview.storage.plain_arrow import has_views

_THREADS = min(4, os.cpu_count() or 1)
_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="freshview-lookup")


@dataclass(frozen=True)
class Lookup:
    """One lookup over the files of a snapshot."""

    path: str
    store: pafs.FileSystem
    footers: Footers
    columns: Sequence[Column]
    key: Column
    engine: Callable[[], QueryBuilder]
    engine_above_bytes: int
    """Files smaller than this together are read faster without the engine."""

    def run(
        self,
        files: Sequence[LiveFile],
        wanted: Wanted,
        limit: int | None,
        limit_bytes: int | None = None,
    ) -> pa.Table:
        """All rows of these files whose key is wanted."""
        empty = schema_of(self.columns).empty_table()
        able = [live for live in files if self._may_match(live, wanted)]
        if len(wanted) == 0 or not able:
            return empty
        batches = self._ranged(files, able, wanted, Budget(self.path, limit, limit_bytes))
        if batches is None:
            batches = self._scanned(able, wanted, Budget(self.path, limit, limit_bytes))
        return pa.Table.from_batches(batches, empty.schema) if batches else empty

    def _engine_is_right(self, files: Sequence[LiveFile]) -> bool:
        """Whether the query engine reads the columns asked for as Spark does.

        It reads INT96 timestamps wrongly, and knows nothing of the calendar of Spark 2; a file in
        that calendar raises NativeRefused here.
        """
        columns = [*self.columns, self.key]
        if any(_holds(column.arrow_type, pa.types.is_timestamp) for column in columns):
            return False
        if any(_holds(column.arrow_type, pa.types.is_date32) for column in columns):
            for live in files:
                self.footers.has_int96(self.path, self.store, live)
        return True

    def _ranged(
        self, files: Sequence[LiveFile], able: Sequence[LiveFile], keys: Wanted, budget: Budget
    ) -> list[pa.RecordBatch] | None:
        """The rows found through the engine, None where it is not the way."""
        if sum(live.size for live in able) < self.engine_above_bytes:
            return None
        ranges = ranges_of(keys, self.key, files)
        if ranges is None or not self._engine_is_right(able):
            return None
        batches = []
        try:
            for column, rows in ranged_batches(self.engine(), self.columns, self.key, ranges):
                hits = keys.hits(column)
                budget.spend(len(hits))
                if len(hits):
                    batches.append(budget.hold(rows.take(pa.array(hits))))
        except EngineFailed:
            return None
        return batches

    def _scanned(
        self, files: Sequence[LiveFile], wanted: Wanted, budget: Budget
    ) -> list[pa.RecordBatch]:
        work = [(live, group) for live in files for group in self._row_groups(live, wanted)]
        if len(work) <= 1:
            parts = [self._row_group(live, group, wanted, budget) for live, group in work]
        else:
            tasks = [_pool.submit(self._row_group, *item, wanted, budget) for item in work]
            try:
                parts = [task.result() for task in tasks]
            finally:
                for task in tasks:
                    task.cancel()
        return [batch for part in parts for batch in part]

    def _may_match(self, live: LiveFile, keys: Wanted) -> bool:
        """Whether a file can hold a key, by its partition or by the log's statistics."""
        if not self.key.partition:
            return keys.may_lie_within(live.low, live.high, live.nulls)
        value = live.partition[self.key.name]
        return len(keys.hits(pa.repeat(value, 1))) > 0

    def _open(self, live: LiveFile) -> pq.ParquetFile:
        return self.footers.opened(self.path, self.store, live.path, live.size)

    def _row_groups(self, live: LiveFile, keys: Wanted) -> list[int]:
        with self._open(live) as file:
            metadata = file.metadata
            place = _statistics_place(file, self.key)
            return [
                group
                for group in range(metadata.num_row_groups)
                if place is None
                or keys.may_lie_within(*_bounds(metadata.row_group(group).column(place)))
            ]

    def _row_group(
        self, live: LiveFile, group: int, keys: Wanted, budget: Budget
    ) -> list[pa.RecordBatch]:
        with self._open(live) as file:
            hits, values = self._hits(file, live, group, keys, budget)
            if len(hits) == 0:
                return []
            # The key's values are known by now; reading its column again would cost as much.
            others = [column for column in self.columns if column.name != self.key.name]
            found = []
            for start, length, arrays in file_batches(file, others, group):
                low, high = (int(place) for place in np.searchsorted(hits, [start, start + length]))
                if low < high:
                    picked = pa.array(hits[low:high] - start)
                    rows = shown(others, arrays, live.partition, length, picked)
                    whole = self._with_key(rows, values.slice(low, high - low))
                    found.append(budget.hold(whole))
                if high == len(hits):
                    break
            return found

    def _with_key(self, rows: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
        """The columns asked for, in their order, the key's values put in where it is one of them."""
        others = iter(rows.columns)
        arrays = [values if c.name == self.key.name else next(others) for c in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=schema_of(self.columns))

    def _hits(
        self, file: pq.ParquetFile, live: LiveFile, group: int, keys: Wanted, budget: Budget
    ) -> tuple[npt.NDArray[np.int64], pa.Array]:
        """Positions in the row group that match and are not deleted, and their keys."""
        before = sum(file.metadata.row_group(g).num_rows for g in range(group))
        parts, values = [], []
        for start, length, arrays in file_batches(file, [self.key], group):
            if self.key.partition or self.key.physical not in arrays:
                column = shown([self.key], arrays, live.partition, length, None).column(0)
            else:
                column = arrays[self.key.physical]
            hits = keys.hits(column)
            if live.kept is not None and len(hits):
                hits = hits[_kept(live.kept, hits + start + before)]
            if len(hits) == 0:
                continue
            budget.spend(len(hits))
            parts.append(hits + start)
            plain = self.key.from_file(column) if has_views(column.type) else column
            values.append(self.key.from_file(plain.take(pa.array(hits))))
        if not parts:
            return np.empty(0, np.int64), pa.nulls(0, self.key.arrow_type)
        return np.concatenate(parts), pa.concat_arrays(values)


def _kept(mask: npt.NDArray[np.bool_], rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    kept = np.ones(len(rows), bool)
    inside = rows < len(mask)
    kept[inside] = mask[rows[inside]]
    return kept


def _statistics_place(file: pq.ParquetFile, key: Column) -> int | None:
    """The column chunk whose statistics bound the key's bit patterns, if there is one.

    Only where the stored integer *is* the pattern: integers, dates, and timestamps in microseconds.
    """
    held = file.schema_arrow
    index = held.get_field_index(key.physical)
    if key.partition or index < 0:
        return None
    kind = held.field(index).type
    types = pa.types
    exact = (
        (types.is_integer(kind) and types.is_signed_integer(kind))
        or types.is_date32(kind)
        or (types.is_timestamp(kind) and kind.unit == "us")
    )
    if not exact:
        return None
    for place in range(file.metadata.num_columns):
        described = file.metadata.schema.column(place)
        if described.path == key.physical and described.max_repetition_level == 0:
            return place if described.physical_type in ("INT32", "INT64") else None
    return None


def _bounds(chunk: pq.ColumnChunkMetaData) -> tuple[int | None, int | None, int | None]:
    statistics = chunk.statistics
    if statistics is None:
        return (None, None, None)
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return (None, None, nulls)
    return (int(statistics.min_raw), int(statistics.max_raw), nulls)


def _holds(kind: pa.DataType, is_kind: Callable[[pa.DataType], bool]) -> bool:
    """Whether a type is, or holds, a kind of type."""
    return is_kind(kind) or any(_holds(kind.field(i).type, is_kind) for i in range(kind.num_fields))
