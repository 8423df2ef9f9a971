"""The refresh log: one row per refreshed view, in a Delta table that anyone can query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException

from freshview.errors import FreshviewError, OutOfMemory, SparkFailed, SparkGone, TableExists
from freshview.planner.cost import LastRecompute
from freshview.runtime.report import FAILED, FULL, ViewReport
from freshview.storage.native import NativeStorage

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", tz="UTC")),
        ("refresh", pa.string()),
        ("view", pa.string()),
        ("mode", pa.string()),
        ("technique", pa.string()),
        ("reason", pa.string()),
        ("why", pa.string()),
        ("rows_in", pa.int64()),
        ("rows_read", pa.int64()),
        ("rows_out", pa.int64()),
        ("source_rows", pa.int64()),
        ("ms", pa.float64()),
        ("incremental_ms", pa.float64()),
        ("full_ms", pa.float64()),
        ("version", pa.int64()),
        ("stages", pa.string()),
        ("error", pa.string()),
    ]
)


class RefreshLog:
    """Appends to the log and remembers how long recomputes took."""

    def __init__(self, path: str, storage: NativeStorage) -> None:
        self._path = path
        self._storage = storage
        self._last: dict[str, LastRecompute] | None = None

    def append(
        self,
        refresh: str,
        reports: Sequence[ViewReport],
        source_rows: Mapping[str, int],
        error: str | None = None,
    ) -> None:
        now = datetime.now(UTC)
        rows = [
            {
                "time": now,
                "refresh": refresh,
                "view": r.view,
                "mode": r.mode,
                "technique": r.technique,
                "reason": r.reason,
                "why": r.why,
                "rows_in": r.rows_in,
                "rows_read": r.rows_read,
                "rows_out": r.rows_out,
                "source_rows": source_rows.get(r.view),
                "ms": r.ms,
                "incremental_ms": r.incremental_ms,
                "full_ms": r.full_ms,
                "version": r.version,
                "stages": json.dumps(dict(r.stages_ms)),
                "error": error,
            }
            for r in reports
        ]
        table = pa.Table.from_pylist(rows, SCHEMA)
        if not self._storage.exists(self._path):
            with suppress(TableExists):  # another process was faster
                self._storage.create(self._path, SCHEMA)
        self._storage.append(self._path, table, None)
        last = self.recomputes()
        for report in reports:
            if report.mode == FULL:
                last[report.view] = LastRecompute(report.ms, source_rows.get(report.view, 0))

    def recomputes(self) -> dict[str, LastRecompute]:
        """The last recompute of each view."""
        if self._last is None:
            self._last = {}
            if self._storage.exists(self._path):
                columns = ["time", "view", "mode", "ms", "source_rows"]
                rows = self.read(columns)
                full = rows.filter(pc.equal(rows["mode"], FULL)).sort_by("time")
                for row in full.to_pylist():
                    self._last[row["view"]] = LastRecompute(row["ms"], row["source_rows"] or 0)
        return self._last

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The log's rows; none before the first refresh."""
        if not self._storage.exists(self._path):
            return SCHEMA.empty_table().select(list(columns or SCHEMA.names))
        return self._storage.read(self._path, self._storage.latest(self._path), columns)


def failure(view: str, technique: str, error: Exception) -> ViewReport:
    """The row of a view that could not be refreshed."""
    return ViewReport(view, FAILED, technique, -1, reason=_code(error), why=_without_values(error))


def _without_values(error: Exception) -> str:
    """Why, for the log that others read: texts of Spark's are left out, since they quote rows."""
    of_spark = (SparkFailed, SparkGone, OutOfMemory)
    if isinstance(error, FreshviewError) and not isinstance(error, of_spark):
        return str(error)
    return f"{_code(error)}; whoever ran the refresh has got the whole error"


def _code(error: Exception) -> str:
    """The code of an error of ours, the condition of one of Spark's."""
    if isinstance(error, PySparkException):
        return error.getCondition() or type(error).__name__
    return error.code if isinstance(error, FreshviewError) else type(error).__name__
