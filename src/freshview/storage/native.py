"""Storage in the driver: `deltalake` for the log and all writing, pyarrow for reading files.

For what is small. Nothing here computes a value: a merge only sets what it is given, because the
library's arithmetic wraps silently where Spark raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, TypeVar, cast

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from freshview.errors import (
    ConcurrentWrite,
    HistoryLost,
    NativeRefused,
    SchemaMismatch,
    TableExists,
    first_line,
)
from freshview.storage.columns import columns_of, comparable_columns
from freshview.storage.commit_files import (
    LogCommit,
    commit_lines,
    commits,
    filesystem,
    find_commit,
    identity_of,
    lies_outside,
    read_commit,
)
from freshview.storage.features import DELETION_VECTORS, FILES_OUTSIDE, TIMESTAMP, features_of
from freshview.storage.interface import COUNT, Commit, Rows, TableState, check_number
from freshview.storage.native_changes import (
    ChangedFiles,
    ChangeReader,
    changed_files,
    read_changes,
)
from freshview.storage.native_files import (
    Footers,
    file_batches,
    kept_rows,
    live_files,
    schema_of,
    shown,
)
from freshview.storage.native_handles import Handles, local_folder, stamp
from freshview.storage.native_lookup import Lookup
from freshview.storage.native_match import Wanted, keys_for, ranges_for
from freshview.storage.native_ranges import engine_for
from freshview.storage.native_rules import INT96, Operation, refusal
from freshview.storage.native_write import (
    commit_properties,
    fitting,
    merge,
    merge_source,
    writer_properties,
)
from freshview.storage.plain_arrow import nullable_schema, plain_schema, to_arrow
from freshview.storage.plain_files import hold_rows_as_they_stand, readable_files
from freshview.storage.write_errors import native_writes

_FACTS_KEPT = 256
_Key = tuple[object, ...]
_Fact = TypeVar("_Fact")


class NativeStorage:
    """The native implementation of `Storage`."""

    name = "native"

    def __init__(
        self, options: Mapping[str, str] | None = None, *, engine_above_bytes: int = 4 << 20
    ) -> None:
        self._engine_above_bytes = engine_above_bytes
        self._options = dict(options) if options else None
        self._handles = Handles(options)
        self._footers = Footers()
        self._states: dict[_Key, TableState] = {}
        self._identities: dict[_Key, str] = {}
        self._guard = Lock()

    def exists(self, path: str) -> bool:
        """See `Storage.exists`."""
        return self._handles.exists(path)

    def latest(self, path: str) -> int:
        """See `Storage.latest`. About half a millisecond on a table already open."""
        with self._handles.newest(path) as table:
            return table.version()

    def state(self, path: str, version: int | None = None) -> TableState:
        """See `Storage.state`."""
        if version is None:
            with self._handles.newest(path) as table:
                return self._state(path, table)
        with self._handles.at(path, version) as table:
            return self._state(path, table)

    def read(self, path: str, version: int, columns: Sequence[str] | None = None) -> pa.Table:
        """See `Storage.read`."""
        with self._handles.at(path, version) as table:
            state = self._served(path, table, Operation.READ)
            files, store = live_files(table, state), filesystem(path, table)
        wanted = columns_of(state, columns)
        batches = []
        try:
            for live in files:
                with self._footers.opened(path, store, live.path, live.size) as file:
                    first = 0
                    for group in range(file.metadata.num_row_groups):
                        for start, length, arrays in file_batches(file, wanted, group):
                            picked = live.picked(first + start, length)
                            batches.append(shown(wanted, arrays, live.partition, length, picked))
                        first += file.metadata.row_group(group).num_rows
        except FileNotFoundError as problem:
            raise _vacuumed(path, version, problem) from problem
        schema = schema_of(wanted)
        return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()

    def plain_files(self, path: str, version: int) -> tuple[str, ...] | None:
        """The data files of a version where they hold its rows as they stand, else None."""
        folder = local_folder(path)
        with self._handles.at(path, version) as table:
            state = self._state(path, table)
            if folder is None or not hold_rows_as_they_stand(state):
                return None
            return readable_files(folder, [live.path for live in live_files(table, state)])

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
        if after > upto:
            backwards = self.changes(path, upto, after, columns, limit, limit_bytes)
            place = backwards.column_names.index(COUNT)
            negated = pa.compute.negate(backwards.column(COUNT))
            return backwards.set_column(place, pa.field(COUNT, pa.int64()), negated)
        reader, found = self._range(path, after, upto, columns)
        reader = replace(reader, limit=limit, limit_bytes=limit_bytes)
        return read_changes(reader, found, after, upto)

    def measure_changes(self, path: str, after: int, upto: int) -> ChangedFiles:
        """What `changes` would read, from the log alone: the chooser's measure."""
        _, found = self._range(path, min(after, upto), max(after, upto), [])
        return changed_files(found)

    def _range(
        self, path: str, after: int, upto: int, columns: Sequence[str] | None
    ) -> tuple[ChangeReader, list[LogCommit]]:
        """The reader and commits of a range, once it is sure that its ends can be compared."""
        with self._handles.at(path, upto) as table:
            new, store = self._served(path, table, Operation.CHANGES), filesystem(path, table)
        with self._handles.at(path, after) as table:
            old = self._served(path, table, Operation.CHANGES)
        wanted = comparable_columns(old, new, columns)
        reader = ChangeReader(path, store, self._footers, wanted)
        return reader, list(commits(path, store, after, upto))

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
        """See `Local.lookup`. NativeRefused for nested keys and keys of another kind."""

        def wanted(kind: pa.DataType) -> Wanted:
            return keys_for(keys, kind)

        return self._found(path, version, columns, key, wanted, limit, limit_bytes)

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
        """See `Local.between`. NativeRefused for types that have another order than their bits."""

        def wanted(kind: pa.DataType) -> Wanted:
            return ranges_for(lows, highs, kind)

        return self._found(path, version, columns, key, wanted, limit, limit_bytes)

    def _found(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        wanted: Callable[[pa.DataType], Wanted],
        limit: int | None,
        limit_bytes: int | None,
    ) -> pa.Table:
        with self._handles.at(path, version) as table:
            state = self._served(path, table, Operation.LOOKUP)
            (by,) = columns_of(state, [key])
            files, store = live_files(table, state, by), filesystem(path, table)

        def engine() -> QueryBuilder:
            with self._handles.at(path, version) as again:
                return engine_for(again)

        above = self._engine_above_bytes
        picked = columns_of(state, columns)
        search = Lookup(path, store, self._footers, picked, by, engine, above)
        try:
            return search.run(files, wanted(by.arrow_type), limit, limit_bytes)
        except ValueError as problem:
            raise NativeRefused(path=path, operation="lookup", reason=str(problem)) from problem
        except FileNotFoundError as problem:
            raise _vacuumed(path, version, problem) from problem

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
        if self.exists(path):
            raise TableExists(path=path)
        self._handles.forget(path)
        settings = dict(properties or {})
        _check_creation(path, rows_or_schema, partition_by, settings)
        try:
            with native_writes(path):
                if isinstance(rows_or_schema, pa.Schema):
                    DeltaTable.create(
                        path,
                        cast("Any", nullable_schema(rows_or_schema)),
                        partition_by=list(partition_by),
                        configuration=settings,
                        storage_options=self._options,
                        commit_properties=commit_properties(commit),
                        raise_if_key_not_exists=False,
                    )
                else:
                    rows = to_arrow(rows_or_schema)
                    write_deltalake(
                        path,
                        rows.cast(nullable_schema(rows.schema)),
                        writer_properties=writer_properties(nullable_schema(rows.schema)),
                        partition_by=list(partition_by) or None,
                        configuration=settings,
                        storage_options=self._options,
                        commit_properties=commit_properties(commit),
                    )
        except DeltaError as problem:
            if self.exists(path):  # another process was faster
                raise TableExists(path=path) from problem
            raise
        return self.latest(path)

    def overwrite(
        self, path: str, rows: Rows, commit: Commit | None, *, new_schema: bool = False
    ) -> int:
        """See `Storage.overwrite`."""
        given = to_arrow(rows)
        if not new_schema:
            return self._insert(path, given, "overwrite", commit)
        schema = nullable_schema(given.schema)
        _check_creation(path, schema, (), {})

        def write(table: DeltaTable) -> None:
            write_deltalake(
                table,
                given.cast(schema),
                mode="overwrite",
                schema_mode="overwrite",
                writer_properties=writer_properties(schema),
                commit_properties=commit_properties(commit),
            )

        return self._write(path, commit, write)

    def append(self, path: str, rows: Rows | None, commit: Commit | None) -> int:
        """See `Storage.append`."""
        return self._insert(path, None if rows is None else to_arrow(rows), "append", commit)

    def _insert(self, path: str, rows: pa.Table | None, mode: Any, commit: Commit | None) -> int:
        def write(table: DeltaTable) -> None:
            schema = self._state(path, table).arrow_schema
            given = schema.empty_table() if rows is None else fitting(path, rows, schema)
            write_deltalake(
                table,
                given,
                mode=mode,
                writer_properties=writer_properties(schema),
                commit_properties=commit_properties(commit),
            )

        return self._write(path, commit, write)

    def apply(
        self,
        path: str,
        key: Sequence[str],
        upserts: Rows,
        deletes: Rows,
        commit: Commit | None,
    ) -> int:
        """See `Storage.apply`. Files with a touched row are rewritten whole."""
        setting, removing = to_arrow(upserts), to_arrow(deletes)

        def write(table: DeltaTable) -> None:
            schema = self._state(path, table).arrow_schema
            source = merge_source(path, schema, key, setting, removing)
            before = table.version()
            if source.num_rows:
                merge(table, schema, key, source, commit)
            if table.version() == before:
                # A merge without effect makes no commit, and this one has to be recorded.
                empty = schema.empty_table()
                write_deltalake(
                    table, empty, mode="append", commit_properties=commit_properties(commit)
                )

        return self._write(path, commit, write, rewrites=True)

    def number(self, path: str, application: str) -> int | None:
        """See `Storage.number`."""
        with self._handles.newest(path) as table:
            found: int | None = table.transaction_version(application)
        return found

    def identity(self, path: str, version: int) -> str:
        """See `Storage.identity`. Read once: the file of a first commit can be large."""
        seen = stamp(path, version)
        known = self._identities.get((path, version, seen))
        if known is not None:
            return known
        with self._handles.newest(path) as table:
            store = filesystem(path, table)
        try:
            known = identity_of(commit_lines(store, version))
        except FileNotFoundError:
            return ""
        if seen is not None and stamp(path, version) == seen:  # else it was replaced meanwhile
            self._keep(self._identities, (path, version, seen), known)
        return known

    def last_commit(
        self, path: str, application: str, number: int | None = None
    ) -> tuple[int, Commit] | None:
        """See `Storage.last_commit`."""
        with self._handles.newest(path) as table:
            last = table.transaction_version(application)
            newest, store = table.version(), filesystem(path, table)
        if last is None or last < (number or 0):
            return None
        wanted = last if number is None else number
        return find_commit(path, partial(read_commit, store), newest, application, wanted)

    def _write(
        self,
        path: str,
        commit: Commit | None,
        write: Callable[[DeltaTable], None],
        *,
        rewrites: bool = False,
    ) -> int:
        """Compare the transaction on the very handle that then writes.

        The library itself does not refuse a number it has seen; but of two handles at one version
        only the first can commit a transaction, so comparing on this handle leaves no gap.
        """
        with self._handles.newest(path) as table:
            state = self._served(path, table, Operation.WRITE)
            if rewrites and TIMESTAMP in state.features:
                self._refuse_int96(path, table, state)
            if commit is not None:
                check_number(path, commit, table.transaction_version(commit.application))
            try:
                with native_writes(path):
                    write(table)
            except CommitFailedError as problem:
                raise ConcurrentWrite(path=path, reason=str(problem)) from problem
            return table.version()

    def _served(self, path: str, table: DeltaTable, operation: Operation) -> TableState:
        """The state of a table that can be served. Raises NativeRefused with the reason code."""
        state = self._state(path, table)
        reason = refusal(state.features, operation)
        if reason is not None:
            raise NativeRefused(path=path, operation=operation.value, reason=reason)
        return state

    def _refuse_int96(self, path: str, table: DeltaTable, state: TableState) -> None:
        files, store = live_files(table, state), filesystem(path, table)
        if any(self._footers.has_int96(path, store, live) for live in files):
            raise NativeRefused(path=path, operation="write", reason=INT96)

    def _state(self, path: str, table: DeltaTable) -> TableState:
        metadata, version = table.metadata(), table.version()
        key = (path, str(metadata.id), version, stamp(path, version))
        known = self._states.get(key)
        if known is None:
            known = _described(path, table)
            self._keep(self._states, key, known)
        return known

    def _keep(self, kept: dict[_Key, _Fact], key: _Key, fact: _Fact) -> None:
        """Remember a fact about a version; the oldest ones go."""
        with self._guard:
            while len(kept) >= _FACTS_KEPT:
                kept.pop(next(iter(kept)))
            kept[key] = fact


def _check_creation(
    path: str,
    rows_or_schema: Rows | pa.Schema,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
) -> None:
    """Refuse, before anything is written, a table that could not be written natively."""
    given = (
        rows_or_schema if isinstance(rows_or_schema, pa.Schema) else to_arrow(rows_or_schema).schema
    )
    try:
        schema_json = Schema.from_arrow(cast("Any", nullable_schema(given))).to_json()
    except Exception as problem:  # the library has no class of its own for this
        raise SchemaMismatch(path=path, reason=first_line(problem)) from problem
    features = features_of(schema_json, properties, partition_by, ())
    reason = refusal(features, Operation.WRITE)
    if reason is not None:
        raise NativeRefused(path=path, operation="create", reason=reason)


def _described(path: str, table: DeltaTable) -> TableState:
    metadata, protocol = table.metadata(), table.protocol()
    schema_json = table.schema().to_json()
    listed = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    features = features_of(schema_json, metadata.configuration, metadata.partition_columns, listed)
    actions = pa.table(table.get_add_actions())
    if any(map(lies_outside, actions.column("path").to_pylist())):
        features |= {FILES_OUTSIDE}
    counts = actions.column("num_records") if "num_records" in actions.column_names else None
    rows = None
    if actions.num_rows == 0:
        rows = 0
    elif counts is not None and counts.null_count == 0:
        rows = pa.compute.sum(counts).as_py()
        if DELETION_VECTORS in features:
            rows -= sum(int((~mask).sum()) for mask in kept_rows(table).values())
    return TableState(
        path,
        table.version(),
        str(metadata.id),
        schema_json,
        plain_schema(pa.schema(cast("Any", table.schema().to_arrow()))),
        rows,
        actions.num_rows,
        pa.compute.sum(actions.column("size_bytes")).as_py() or 0,
        tuple(metadata.partition_columns),
        features,
        dict(metadata.configuration),
    )


def _vacuumed(path: str, version: int, problem: Exception) -> HistoryLost:
    reason = f"a data file of version {version} is gone, probably vacuumed: {problem}"
    return HistoryLost(path=path, after=version, upto=version, reason=reason)
