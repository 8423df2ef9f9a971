"""Storage in plain Python objects, for tests that need neither Delta nor a server.

Held to the same contract suite as the other two. Every version of a table is kept whole; `lose` and
`drop` play the accidents that happen to real tables.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import Schema

from freshview.errors import (
    ColumnMissing,
    DuplicateKey,
    HistoryLost,
    NativeRefused,
    SchemaMismatch,
    TableExists,
    TableMissing,
)
from freshview.storage.budget import Budget
from freshview.storage.columns import comparable_columns
from freshview.storage.commit_files import DataFile
from freshview.storage.consolidate import consolidated, spark_identity
from freshview.storage.features import features_of
from freshview.storage.interface import COUNT, Commit, Rows, TableState, check_number
from freshview.storage.native_changes import ChangedFiles
from freshview.storage.native_match import keys_for, ranges_for
from freshview.storage.plain_arrow import fitted, nullable_schema, to_arrow


@dataclass(frozen=True, slots=True)
class _Version:
    rows: pa.Table
    commit: Commit | None


@dataclass(slots=True)
class _Table:
    partition_by: tuple[str, ...]
    properties: Mapping[str, str]
    identity: str = field(default_factory=lambda: str(uuid.uuid4()))
    versions: list[_Version] = field(default_factory=list)
    first: int = 0
    """The oldest version that is still known."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the newest version."""
        return self.versions[-1].rows.schema


class MemoryStorage:
    """The in-memory implementation of `Storage`."""

    name = "memory"

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._lock = threading.RLock()

    def exists(self, path: str) -> bool:
        """See `Storage.exists`."""
        return path in self._tables

    def latest(self, path: str) -> int:
        """See `Storage.latest`."""
        return len(self._table(path).versions) - 1

    def state(self, path: str, version: int | None = None) -> TableState:
        """See `Storage.state`. A version counts as one file unless it is empty."""
        table = self._table(path)
        version = self.latest(path) if version is None else version
        rows = self._rows(path, version)
        schema_json = Schema.from_arrow(rows.schema).to_json()
        return TableState(
            path,
            version,
            table.identity,
            schema_json,
            rows.schema,
            rows.num_rows,
            int(rows.num_rows > 0),
            rows.nbytes,
            table.partition_by,
            features_of(schema_json, table.properties, table.partition_by, ()),
            dict(table.properties),
        )

    def read(self, path: str, version: int, columns: Sequence[str] | None = None) -> pa.Table:
        """See `Storage.read`."""
        return self._selected(path, self._rows(path, version), columns)

    def changes(
        self,
        path: str,
        after: int,
        upto: int,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        limit_bytes: int | None = None,
    ) -> pa.Table:
        """See `Local.changes`. Consolidated."""
        comparable_columns(self.state(path, after), self.state(path, upto), columns)
        budget, parts = Budget(path, limit, limit_bytes), []
        for version, sign in ((upto, 1), (after, -1)):
            rows = self.read(path, version, columns)
            budget.spend(rows.num_rows)
            budget.hold(rows)
            counts = pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows)
            parts.append(rows.append_column(pa.field(COUNT, pa.int64()), counts))
        return consolidated(pa.concat_tables(parts))

    def plain_files(self, path: str, version: int) -> tuple[str, ...] | None:
        """There are no files to read."""
        self.state(path, version)
        return None

    def measure_changes(self, path: str, after: int, upto: int) -> ChangedFiles:
        """What a storage with files would read: both versions."""
        sizes = [(version, self._rows(path, version)) for version in (after, upto)]
        files = [
            (DataFile(str(version), (), None, rows.nbytes, rows.num_rows), 1)
            for version, rows in sizes
            if after != upto
        ]
        return ChangedFiles((), tuple(files))

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
        """See `Local.lookup`."""
        rows = self._rows(path, version)
        column = self._selected(path, rows, [key]).column(key).combine_chunks()
        try:
            hits = keys_for(keys, column.type).hits(column)
        except ValueError as problem:
            raise NativeRefused(path=path, operation="lookup", reason=str(problem)) from problem
        return self._taken(path, self._selected(path, rows, columns), hits, limit, limit_bytes)

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
        """See `Local.between`."""
        rows = self._rows(path, version)
        column = self._selected(path, rows, [key]).column(key).combine_chunks()
        try:
            hits = ranges_for(lows, highs, column.type).hits(column)
        except ValueError as problem:
            raise NativeRefused(path=path, operation="lookup", reason=str(problem)) from problem
        return self._taken(path, self._selected(path, rows, columns), hits, limit, limit_bytes)

    def _taken(
        self,
        path: str,
        rows: pa.Table,
        places: npt.NDArray[np.int64],
        limit: int | None,
        limit_bytes: int | None,
    ) -> pa.Table:
        """The rows at some places, if they fit."""
        budget = Budget(path, limit, limit_bytes)
        budget.spend(len(places))
        return budget.hold(rows.take(pa.array(places)))

    def create(
        self,
        path: str,
        rows_or_schema: Rows | pa.Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        commit: Commit | None = None,
    ) -> int:
        """See `Storage.create`."""
        with self._lock:
            if path in self._tables:
                raise TableExists(path=path)
            if isinstance(rows_or_schema, pa.Schema):
                rows = rows_or_schema.empty_table()
            else:
                rows = to_arrow(rows_or_schema)
            table = _Table(tuple(partition_by), properties or {})
            table.versions.append(_Version(rows.cast(nullable_schema(rows.schema)), commit))
            self._tables[path] = table
            return 0

    def overwrite(
        self, path: str, rows: Rows, commit: Commit | None, *, new_schema: bool = False
    ) -> int:
        """See `Storage.overwrite`."""
        with self._lock:
            given = to_arrow(rows)
            if new_schema:
                given = given.cast(nullable_schema(given.schema))
            else:
                given = self._fitted(path, given)
            return self._store(path, given, commit)

    def append(self, path: str, rows: Rows | None, commit: Commit | None) -> int:
        """See `Storage.append`."""
        with self._lock:
            held = self._rows(path, self.latest(path))
            if rows is not None:
                held = pa.concat_tables([held, self._fitted(path, to_arrow(rows))])
            return self._store(path, held, commit)

    def apply(
        self,
        path: str,
        key: Sequence[str],
        upserts: Rows,
        deletes: Rows,
        commit: Commit | None,
    ) -> int:
        """See `Storage.apply`."""
        with self._lock:
            held = self._rows(path, self.latest(path))
            setting = self._fitted(path, to_arrow(upserts))
            wanted = pa.schema([held.schema.field(name) for name in key])
            deleting = to_arrow(deletes)
            removing = self._fitted(path, deleting.select(list(key)), wanted) if key else deleting
            touched = _identities(setting, key) + _identities(removing, key)
            repeated = len(touched) - len(set(touched))
            if repeated:
                raise DuplicateKey(path=path, key=", ".join(key), count=repeated)
            gone = set(touched)
            present = _identities(held, key)
            kept = held.filter(pa.array([row not in gone for row in present], pa.bool_()))
            return self._store(path, pa.concat_tables([kept, setting]), commit)

    def number(self, path: str, application: str) -> int | None:
        """See `Storage.number`."""
        numbers = [
            version.commit.number
            for version in self._table(path).versions
            if version.commit is not None and version.commit.application == application
        ]
        return numbers[-1] if numbers else None

    def identity(self, path: str, version: int) -> str:
        """See `Storage.identity`."""
        table = self._table(path)
        return "" if version < table.first else f"{table.identity}-{version}"

    def last_commit(
        self, path: str, application: str, number: int | None = None
    ) -> tuple[int, Commit] | None:
        """See `Storage.last_commit`."""
        table = self._table(path)
        for version in range(len(table.versions) - 1, -1, -1):
            commit = table.versions[version].commit
            if (
                commit is not None
                and commit.application == application
                and number in (None, commit.number)
            ):
                if version < table.first:
                    raise HistoryLost(
                        path=path, after=version, upto=self.latest(path), reason="cleaned"
                    )
                return version, commit
        return None

    def lose(self, path: str, before: int) -> None:
        """Forget all versions before this one, as log cleanup and vacuum do."""
        self._table(path).first = before

    def drop(self, path: str) -> None:
        """Remove the table."""
        del self._tables[path]

    def _table(self, path: str) -> _Table:
        if path not in self._tables:
            raise TableMissing(path=path, reason="nothing was created there")
        return self._tables[path]

    def _rows(self, path: str, version: int) -> pa.Table:
        table = self._table(path)
        if not table.first <= version < len(table.versions):
            known = f"versions {table.first} to {len(table.versions) - 1} are known"
            raise HistoryLost(path=path, after=version, upto=version, reason=known)
        return table.versions[version].rows

    def _selected(self, path: str, rows: pa.Table, columns: Sequence[str] | None) -> pa.Table:
        for name in columns or ():
            if name not in rows.column_names:
                held = ", ".join(rows.column_names)
                raise ColumnMissing(path=path, column=name, columns=held)
        return rows if columns is None else rows.select(list(columns))

    def _fitted(self, path: str, rows: pa.Table, schema: pa.Schema | None = None) -> pa.Table:
        try:
            return fitted(rows, schema or self._table(path).schema)
        except ValueError as problem:
            raise SchemaMismatch(path=path, reason=str(problem)) from problem

    def _store(self, path: str, rows: pa.Table, commit: Commit | None) -> int:
        table = self._table(path)
        if commit is not None:
            check_number(path, commit, self._number(table, commit.application))
        table.versions.append(_Version(rows, commit))
        return len(table.versions) - 1

    def _number(self, table: _Table, application: str) -> int | None:
        for version in reversed(table.versions):
            if version.commit is not None and version.commit.application == application:
                return version.commit.number
        return None


def _identities(rows: pa.Table, key: Sequence[str]) -> list[tuple[object, ...]]:
    """The key of each row, as Spark's `<=>` compares it."""
    columns = [spark_identity(rows.column(name).combine_chunks()).to_pylist() for name in key]
    return list(zip(*columns, strict=True)) if key else [()] * rows.num_rows
