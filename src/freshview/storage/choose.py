"""Which storage serves an operation: native for what is small and faithful, Spark for the rest.

`serves` says from a table's features whether native can; `Tables` adds sizes and is what the
runtime uses. Spark is asked for through a callable and only when it is needed, so a refresh that
finds nothing to do starts none. Every answer comes with a record of who gave it and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import pyarrow as pa

from freshview.errors import FreshviewError, NativeRefused, TooManyBytes, TooManyRows
from freshview.storage.interface import Commit, Rows, Storage, TableState
from freshview.storage.native_changes import ChangedFiles
from freshview.storage.native_rules import Operation, refusal

By = Literal["native", "spark"]
Answer = TypeVar("Answer")
Above = dict[type[FreshviewError], str]
"""The reason to ask Spark when an answer is too large in rows or in bytes."""

TOO_MANY_CHANGED_ROWS = "TOO_MANY_CHANGED_ROWS"
TOO_MANY_CHANGED_BYTES = "TOO_MANY_CHANGED_BYTES"
TOO_MANY_KEYS = "TOO_MANY_KEYS"
TOO_MANY_ROWS_FOUND = "TOO_MANY_ROWS_FOUND"
TOO_MANY_BYTES_FOUND = "TOO_MANY_BYTES_FOUND"
TABLE_TOO_LARGE = "TABLE_TOO_LARGE"
TOO_MANY_ROWS_TO_WRITE = "TOO_MANY_ROWS_TO_WRITE"
ROWS_ARE_IN_SPARK = "ROWS_ARE_IN_SPARK"


class Local(Storage, Protocol):
    """The storage for what is small: it can also say how much a change would read."""

    def measure_changes(self, path: str, after: int, upto: int) -> ChangedFiles:
        """What `changes` would read, from the log alone."""
        ...

    def changes(
        self,
        path: str,
        after: int,
        upto: int,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        limit_bytes: int | None = None,
    ) -> pa.Table:
        """See `Storage.changes`. More rows raise TooManyRows, or TooManyBytes if they are larger."""
        ...

    def plain_files(self, path: str, version: int) -> tuple[str, ...] | None:
        """The data files of a version where they hold its rows as they stand, else None."""
        ...

    def lookup(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        keys: pa.Array,
        limit: int | None = None,
        limit_bytes: int | None = None,
    ) -> pa.Table:
        """See `Storage.lookup`. Rows larger than `limit_bytes` together raise TooManyBytes."""
        ...

    def between(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        lows: pa.Array,
        highs: pa.Array,
        limit: int | None = None,
        limit_bytes: int | None = None,
    ) -> pa.Table:
        """See `Storage.between`. Rows larger than `limit_bytes` together raise TooManyBytes."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Up to where the driver does the work itself. Above, Spark does."""

    changes_rows: int = 200_000
    changes_bytes: int = 64 << 20
    lookup_keys: int = 100_000
    lookup_rows: int = 200_000
    lookup_bytes: int = 64 << 20
    read_rows: int = 200_000
    write_rows: int = 200_000
    write_bytes: int = 64 << 20
    merge_table_bytes: int = 512 << 20
    """A native merge rewrites touched files whole and in this process."""
    fetch_source_bytes: int = 256 << 20
    """A view over less than this is evaluated once in vain if it has too many rows to write."""


@dataclass(frozen=True, slots=True)
class Served:
    """Who served an operation, why, and what it took."""

    operation: Operation
    path: str
    by: By
    rows: int | None
    """None where rows stay lazy in Spark."""
    reason: str | None
    """Why not native, as a code; None when native served."""
    files: int | None
    ms: float


def serves(state: TableState, operation: Operation) -> str | None:
    """None when native serves this operation on this table faithfully, else the reason code."""
    return refusal(state.features, operation)


class Wide(Storage, Protocol):
    """The storage for what is large: it can also clone, and read files that it is given."""

    def read_files(
        self, state: TableState, files: Sequence[str], columns: Sequence[str] | None = None
    ) -> Rows:
        """All rows of a version, lazily, from the files that hold them as they stand."""
        ...

    def clone(self, path: str, target: str) -> None:
        """A table of its own with the rows and rules of another, without copying the rows."""
        ...


class Tables:
    """All tables of a warehouse, each operation served by whom it suits."""

    def __init__(
        self, native: Local, spark: Callable[[], Wide], limits: Limits | None = None
    ) -> None:
        self.native = native
        self.limits = limits or Limits()
        self._start_spark = spark
        self._spark: Wide | None = None

    @property
    def spark(self) -> Wide:
        """The Spark storage, started now if it was not."""
        if self._spark is None:
            self._spark = self._start_spark()
        return self._spark

    def exists(self, path: str) -> bool:
        """Whether a table is at the path."""
        return self.native.exists(path)

    def latest(self, path: str) -> int:
        """The newest version."""
        return self._logged(lambda storage: storage.latest(path))

    def state(self, path: str, version: int | None = None) -> TableState:
        """Facts about a version."""
        return self._logged(lambda storage: storage.state(path, version))

    def number(self, path: str, application: str) -> int | None:
        """The number of an application's newest commit."""
        return self._logged(lambda storage: storage.number(path, application))

    def last_commit(
        self, path: str, application: str, number: int | None = None
    ) -> tuple[int, Commit] | None:
        """The newest commit of an application, or the one with a number."""
        return self._logged(lambda storage: storage.last_commit(path, application, number))

    def identity(self, path: str, version: int) -> str:
        """What tells the commit of a version from another one with its number."""
        return self._logged(lambda storage: storage.identity(path, version))

    def _logged(self, ask: Callable[[Storage], Answer]) -> Answer:
        """What the log alone answers: native, unless it cannot even open the table."""
        try:
            return ask(self.native)
        except NativeRefused:
            return ask(self.spark)

    def read(
        self, path: str, version: int, columns: Sequence[str] | None = None
    ) -> tuple[Rows, Served]:
        """All rows of a version."""
        state = self.state(path, version)
        reason = serves(state, Operation.READ)
        if reason is None and not _within(state, self.limits.read_rows, self.limits.changes_bytes):
            reason = TABLE_TOO_LARGE
        return self._answered(
            Operation.READ,
            path,
            reason,
            state.files,
            lambda storage: storage.read(path, version, columns),
        )

    def scan(self, path: str, version: int, columns: Sequence[str] | None = None) -> Rows:
        """All rows of a version, lazily, for Spark to evaluate a view over.

        From the data files themselves where they hold the rows as they stand.
        """
        try:
            files = self.native.plain_files(path, version)
        except NativeRefused:
            files = None
        if files is None:
            return self.spark.read(path, version, columns)
        return self.spark.read_files(self.state(path, version), files, columns)

    def changes(
        self, path: str, after: int, upto: int, columns: Sequence[str] | None = None
    ) -> tuple[Rows, Served]:
        """The delta between two versions."""
        files = None
        reason = serves(self.state(path, upto), Operation.CHANGES)
        if reason is None:
            try:
                measured = self.native.measure_changes(path, after, upto)
                files, reason = measured.files, self._too_large(measured)
            except NativeRefused as refused:
                reason = str(refused.parameters["reason"])
        most = (self.limits.changes_rows, self.limits.changes_bytes)

        def ask(storage: Storage) -> Rows:
            if storage is not self.native:
                return storage.changes(path, after, upto, columns)
            return self.native.changes(path, after, upto, columns, *most)

        above: Above = {TooManyRows: TOO_MANY_CHANGED_ROWS, TooManyBytes: TOO_MANY_CHANGED_BYTES}
        return self._answered(Operation.CHANGES, path, reason, files, ask, above)

    def _too_large(self, measured: ChangedFiles) -> str | None:
        if measured.rows is not None and measured.rows > self.limits.changes_rows:
            return TOO_MANY_CHANGED_ROWS
        if measured.bytes > self.limits.changes_bytes:
            return TOO_MANY_CHANGED_BYTES
        return None

    def lookup(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        keys: pa.Array,
        limit: int | None = None,
    ) -> tuple[Rows, Served]:
        """Rows by key. Without a limit, more rows than native may hold come lazily from Spark."""
        state = self.state(path, version)
        reason = serves(state, Operation.LOOKUP)
        if reason is None and len(keys) > self.limits.lookup_keys:
            reason = TOO_MANY_KEYS
        bound = self.limits.lookup_rows if limit is None else min(limit, self.limits.lookup_rows)

        def ask(storage: Storage) -> Rows:
            if storage is not self.native:
                return storage.lookup(path, version, columns, key, keys, limit)
            most = self.limits.lookup_bytes
            return self.native.lookup(path, version, columns, key, keys, bound, most)

        above: Above = {TooManyBytes: TOO_MANY_BYTES_FOUND}
        if limit is None or limit > bound:
            above[TooManyRows] = TOO_MANY_ROWS_FOUND
        return self._answered(Operation.LOOKUP, path, reason, state.files, ask, above)

    def between(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        lows: pa.Array,
        highs: pa.Array,
    ) -> tuple[Rows, Served]:
        """Rows by ranges of a key. More rows than native may hold come lazily from Spark."""
        state = self.state(path, version)
        most = (self.limits.lookup_rows, self.limits.lookup_bytes)

        def ask(storage: Storage) -> Rows:
            if storage is not self.native:
                return storage.between(path, version, columns, key, lows, highs)
            return self.native.between(path, version, columns, key, lows, highs, *most)

        above: Above = {TooManyBytes: TOO_MANY_BYTES_FOUND, TooManyRows: TOO_MANY_ROWS_FOUND}
        reason = serves(state, Operation.LOOKUP)
        return self._answered(Operation.LOOKUP, path, reason, state.files, ask, above)

    def create(
        self,
        path: str,
        rows_or_schema: Rows | pa.Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        commit: Commit | None = None,
    ) -> tuple[int, Served]:
        """Make a table, natively where the rows are already here."""
        reason = None
        if not isinstance(rows_or_schema, pa.Schema):
            reason = self._unwritable(rows_or_schema)
        return self._answered(
            Operation.WRITE,
            path,
            reason,
            None,
            lambda storage: storage.create(
                path,
                rows_or_schema,
                partition_by=partition_by,
                properties=properties,
                commit=commit,
            ),
        )

    def overwrite(
        self, path: str, rows: Rows, commit: Commit | None, *, new_schema: bool = False
    ) -> tuple[int, Served]:
        """Replace all rows, and with `new_schema` the schema by theirs."""
        reason = serves(self.state(path), Operation.WRITE) or self._unwritable(rows)
        return self._answered(
            Operation.WRITE,
            path,
            reason,
            None,
            lambda s: s.overwrite(path, rows, commit, new_schema=new_schema),
        )

    def append(self, path: str, rows: Rows | None, commit: Commit | None) -> tuple[int, Served]:
        """Add rows, or only record progress."""
        reason = serves(self.state(path), Operation.WRITE)
        if reason is None and rows is not None:
            reason = self._unwritable(rows)
        return self._answered(
            Operation.WRITE, path, reason, None, lambda s: s.append(path, rows, commit)
        )

    def apply(
        self, path: str, key: Sequence[str], upserts: Rows, deletes: Rows, commit: Commit | None
    ) -> tuple[int, Served]:
        """Set and delete rows by key."""
        state = self.state(path)
        reason = serves(state, Operation.WRITE) or self._unwritable(upserts)
        reason = reason or self._unwritable(deletes)
        if reason is None and state.bytes > self.limits.merge_table_bytes:
            reason = TABLE_TOO_LARGE
        return self._answered(
            Operation.WRITE,
            path,
            reason,
            state.files,
            lambda s: s.apply(path, key, upserts, deletes, commit),
        )

    def _unwritable(self, rows: Rows) -> str | None:
        if not isinstance(rows, pa.Table):
            return ROWS_ARE_IN_SPARK
        return TOO_MANY_ROWS_TO_WRITE if rows.num_rows > self.limits.write_rows else None

    def _answered(
        self,
        operation: Operation,
        path: str,
        reason: str | None,
        files: int | None,
        ask: Callable[[Storage], Answer],
        above: Above | None = None,
    ) -> tuple[Answer, Served]:
        """Ask native unless there is a reason not to; a refusal on the way is a reason too.

        So is an answer that is too large, if `above` has a reason for that.
        """
        by: By = "native"
        start = time.perf_counter()
        if reason is None:
            try:
                answer = ask(self.native)
            except NativeRefused as refused:
                reason = str(refused.parameters["reason"])
            except (TooManyRows, TooManyBytes) as larger:
                reason = (above or {}).get(type(larger))
                if reason is None:
                    raise
        if reason is not None:
            by, answer = "spark", ask(self.spark)
        rows = answer.num_rows if isinstance(answer, pa.Table) else None
        ms = (time.perf_counter() - start) * 1000
        return answer, Served(operation, path, by, rows, reason, files, ms)


def _within(state: TableState, rows: int, size: int) -> bool:
    return state.rows <= rows if state.rows is not None else state.bytes <= size
