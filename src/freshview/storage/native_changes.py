"""What changed between two versions, read from the files that changed.

Per commit of the range: where it wrote change-feed files, those are its whole change; otherwise its
change is the rows of the files it added minus those it removed. A file is identified by path *and*
deletion vector, files that come and go within the range cancel before anything is read, and for a
file that only got another vector just the rows that differ are taken. Commits that only move rows
(OPTIMIZE) say so and are skipped.

The native library's own `load_cdf` is not used: it is wrong on some histories with deletion vectors,
and fails on column mapping, timestamp partitions and partition values with `/ = % :`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from freshview.errors import HistoryLost, NativeRefused
from freshview.storage.budget import Budget
from freshview.storage.columns import Column, partition_value
from freshview.storage.commit_files import DataFile, LogCommit, lies_outside
from freshview.storage.consolidate import consolidated
from freshview.storage.deletion_vectors import UnreadableVector, deleted_rows
from freshview.storage.interface import COUNT
from freshview.storage.native_files import Footers, file_batches, schema_of, shown
from freshview.storage.native_rules import FILES_OUTSIDE

_KIND = "_change_type"
_SIGN = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """What has to be read to know the changes of a version range."""

    feed: tuple[DataFile, ...]
    net: tuple[tuple[DataFile, int], ...]
    """Files with their net count: +1 for one that is there now, -1 for one that no longer is."""

    @property
    def files(self) -> int:
        """How many files have to be opened."""
        return len(self.feed) + len(self.by_path())

    @property
    def rows(self) -> int | None:
        """About how many rows have to be taken; None when a file does not say.

        Of a file that only got another deletion vector just the rows that differ are taken.
        """
        total = 0
        for file in self.feed:
            if file.rows is None:
                return None
            total += file.rows
        for versions in self.by_path().values():
            rows = next((file.rows for file, _ in versions if file.rows is not None), None)
            if rows is None:
                return None
            total += taken(rows, versions)
        return total

    @property
    def bytes(self) -> int:
        """How large the files are together."""
        net = sum(versions[0][0].size for versions in self.by_path().values())
        return net + sum(file.size for file in self.feed)

    def by_path(self) -> Mapping[str, list[tuple[DataFile, int]]]:
        """The net files, those that differ only in their vector together."""
        by_path: dict[str, list[tuple[DataFile, int]]] = defaultdict(list)
        for file, count in self.net:
            by_path[file.path].append((file, count))
        return by_path


def taken(rows: int, versions: Sequence[tuple[DataFile, int]]) -> int:
    """How many of a file's rows have to be taken; of several versions of it, at least how many."""
    gone = [(file.vector.cardinality if file.vector else 0, count) for file, count in versions]
    return abs(sum((rows - deleted) * count for deleted, count in gone))


def changed_files(commits: Sequence[LogCommit], use_feed: bool = True) -> ChangedFiles:
    """The files to read for these commits.

    `use_feed=False` nets all commits by their files alone: more to read, but it needs no file that
    was both added and removed within the range, and those may be vacuumed.
    """
    feed: list[DataFile] = []
    counts: dict[object, int] = defaultdict(int)
    known: dict[object, DataFile] = {}
    for commit in commits:
        if use_feed and commit.feed:
            feed.extend(commit.feed)
            continue
        for files, sign in ((commit.added, 1), (commit.removed, -1)):
            for file in files:
                counts[file.identity] += sign
                if file.identity not in known or file.complete:
                    known[file.identity] = file
    net = tuple((known[identity], count) for identity, count in counts.items() if count)
    return ChangedFiles(tuple(feed), net)


@dataclass(frozen=True)
class ChangeReader:
    """Reads changed files of one table into a delta."""

    path: str
    store: pafs.FileSystem
    footers: Footers
    columns: Sequence[Column]
    limit: int | None = None
    limit_bytes: int | None = None

    def read(self, changed: ChangedFiles) -> pa.Table:
        """The delta, consolidated. Raises FileNotFoundError when a file is gone.

        The log does not always say how many rows a file has; and a file says how large it is, not how
        large its rows are. So both are counted here: TooManyRows, TooManyBytes.
        """
        budget = Budget(self.path, self.limit, self.limit_bytes)
        found = chain(
            self._feed(changed.feed, budget), self._net(changed.by_path().values(), budget)
        )
        batches = [budget.hold(batch) for batch in found]
        schema = schema_of(self.columns).append(pa.field(COUNT, pa.int64()))
        table = pa.Table.from_batches(batches, schema) if batches else schema.empty_table()
        return consolidated(table)

    def _feed(self, files: Sequence[DataFile], budget: Budget) -> Iterator[pa.RecordBatch]:
        kind = Column(_KIND, _KIND, "string", pa.string(), False)
        for file in files:
            with self._open(file) as opened:
                budget.spend(opened.metadata.num_rows)
                for group in range(opened.metadata.num_row_groups):
                    for _, length, arrays in file_batches(opened, [*self.columns, kind], group):
                        signs = [_SIGN[name] for name in kind.from_file(arrays[_KIND]).to_pylist()]
                        rows = shown(self.columns, arrays, self._partition(file), length, None)
                        yield _counted(rows, np.asarray(signs, np.int64))

    def _net(
        self, files: Iterable[Sequence[tuple[DataFile, int]]], budget: Budget
    ) -> Iterator[pa.RecordBatch]:
        for versions in files:
            with self._open(versions[0][0]) as opened:
                rows = opened.metadata.num_rows
                budget.spend(taken(rows, versions))
                weights = self._weights(rows, versions)
                yield from self._weighted(opened, versions[0][0], weights)

    def _weights(
        self, rows: int, versions: Sequence[tuple[DataFile, int]]
    ) -> npt.NDArray[np.int64]:
        """How often each row of a file was added (or, negative, removed)."""
        weights = np.full(rows, sum(count for _, count in versions), np.int64)
        for file, count in versions:
            if file.vector is not None:
                try:
                    gone = deleted_rows(file.vector, self.store)
                except UnreadableVector as problem:
                    raise NativeRefused(
                        path=self.path, operation="changes", reason=f"deletion vector: {problem}"
                    ) from problem
                weights[gone] -= count
        return weights

    def _weighted(
        self, opened: pq.ParquetFile, file: DataFile, weights: npt.NDArray[np.int64]
    ) -> Iterator[pa.RecordBatch]:
        partition = self._partition(file)
        first = 0
        for group in range(opened.metadata.num_row_groups):
            rows = opened.metadata.row_group(group).num_rows
            here = weights[first : first + rows]
            first += rows
            if not here.any():
                continue
            for start, length, arrays in file_batches(opened, self.columns, group):
                counts = here[start : start + length]
                picked = np.flatnonzero(counts)
                if len(picked):
                    found = shown(self.columns, arrays, partition, length, pa.array(picked))
                    yield _counted(found, counts[picked])

    def _open(self, file: DataFile) -> pq.ParquetFile:
        if lies_outside(file.path):
            raise NativeRefused(path=self.path, operation="changes", reason=FILES_OUTSIDE)
        return self.footers.opened(self.path, self.store, file.path, file.size)

    def _partition(self, file: DataFile) -> Mapping[str, pa.Scalar]:
        wanted = [column for column in self.columns if column.partition]
        if wanted and not file.complete:
            reason = f"the log does not tell the partition of {file.path}"
            raise NativeRefused(path=self.path, operation="changes", reason=reason)
        # Spark leaves a NULL partition out of the values of a removed file.
        stored = dict(file.partition)
        return {
            column.name: partition_value(stored.get(column.physical), column.arrow_type)
            for column in wanted
        }


def _counted(rows: pa.RecordBatch, counts: npt.NDArray[np.int64]) -> pa.RecordBatch:
    schema = rows.schema.append(pa.field(COUNT, pa.int64()))
    return pa.RecordBatch.from_arrays([*rows.columns, pa.array(counts)], schema=schema)


def read_changes(
    reader: ChangeReader, commits: Sequence[LogCommit], after: int, upto: int
) -> pa.Table:
    """The delta of these commits, by feed where there is one, by files alone when that fails.

    Raises HistoryLost when neither way has all its files.
    """
    if any(commit.feed for commit in commits):
        try:
            return reader.read(changed_files(commits))
        except (FileNotFoundError, pa.ArrowInvalid, KeyError):
            # A vacuumed intermediate file, or one written under another schema in between.
            pass
    try:
        return reader.read(changed_files(commits, use_feed=False))
    except FileNotFoundError as problem:
        reason = f"a data file is gone, probably vacuumed: {problem}"
        raise HistoryLost(path=reader.path, after=after, upto=upto, reason=reason) from problem
