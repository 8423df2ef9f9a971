"""A table's commits, read from its log files.

The native library gives snapshots; what a commit *did* (which files it added and removed, with
which deletion vectors, whether rows changed at all, what it wrote for the change feed, which
transaction it carried) is only in the commit's JSON file. One file per version, small, and gone
when log cleanup has removed it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from freshview.errors import HistoryLost
from freshview.storage.deletion_vectors import Vector
from freshview.storage.interface import Commit
from freshview.storage.native_handles import local_folder

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows as a commit names it. Its identity is path *and* deletion vector."""

    path: str
    """Relative to the table, decoded."""
    partition: tuple[tuple[str, str | None], ...]
    vector: Vector | None
    size: int
    rows: int | None = None
    """How many rows the file holds, where the log says so."""
    complete: bool = True
    """False where a writer left the partition values out (allowed for removed files)."""

    @property
    def identity(self) -> tuple[str, object]:
        """What tells two files apart."""
        return (self.path, self.vector.identity if self.vector else None)


@dataclass(frozen=True, slots=True)
class LogCommit:
    """What one commit did."""

    version: int
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]
    """Only actions that change data: OPTIMIZE and its like move rows and are left out."""
    feed: tuple[DataFile, ...]
    """Files of the change feed; where there are any, they tell the whole change of the commit."""
    metadata: Mapping[str, Any] | None
    protocol: Mapping[str, Any] | None
    transactions: Mapping[str, int] = field(default_factory=dict)
    user_metadata: str | None = None


def lies_outside(file: str) -> bool:
    """Whether a file is named by its whole address, and not relative to the table's folder."""
    return file.startswith("/") or _ADDRESS.match(file) is not None


def filesystem(path: str, table: DeltaTable) -> pafs.FileSystem:
    """A pyarrow filesystem rooted at the table, on whatever store it lies."""
    folder = local_folder(path)
    if folder is not None:
        return pafs.SubTreeFileSystem(folder, pafs.LocalFileSystem())
    return pafs.PyFileSystem(DeltaStorageHandler.from_table(table._table))  # noqa: SLF001 (its only way)


def commits(path: str, store: pafs.FileSystem, after: int, upto: int) -> Iterator[LogCommit]:
    """The commits after version `after` up to `upto`, oldest first.

    Raises HistoryLost when one of their files is gone.
    """
    for version in range(after + 1, upto + 1):
        try:
            yield read_commit(store, version)
        except FileNotFoundError as problem:
            reason = f"the log file of version {version} is gone"
            raise HistoryLost(path=path, after=after, upto=upto, reason=reason) from problem


def read_commit(store: pafs.FileSystem, version: int) -> LogCommit:
    """One commit. Raises FileNotFoundError when its file is gone."""
    return parsed_commit(version, commit_lines(store, version))


def commit_lines(store: pafs.FileSystem, version: int) -> list[str]:
    """The lines of a commit's file. Raises FileNotFoundError when it is gone."""
    with store.open_input_file(f"_delta_log/{version:020}.json") as file:
        # Not splitlines(): it would also split at U+2028 and its like inside a value.
        return list(file.read().decode("utf-8").split("\n"))


def identity_of(lines: Iterable[str]) -> str:
    """A short text that only a commit with these lines has."""
    text = "\n".join(line for line in lines if line.strip())
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def parsed_commit(version: int, lines: Iterable[str]) -> LogCommit:
    """A commit from the lines of its file, one JSON action each."""
    added: list[DataFile] = []
    removed: list[DataFile] = []
    feed: list[DataFile] = []
    metadata = protocol = text = None
    transactions: dict[str, int] = {}
    for line in lines:
        if not line.strip():
            continue
        for kind, action in json.loads(line).items():
            if kind == "add" and action["dataChange"]:
                added.append(_data_file(action))
            elif kind == "remove" and action["dataChange"]:
                removed.append(_data_file(action))
            elif kind == "cdc":
                feed.append(_data_file(action))
            elif kind == "metaData":
                metadata = action
            elif kind == "protocol":
                protocol = action
            elif kind == "txn":
                transactions[action["appId"]] = int(action["version"])
            elif kind == "commitInfo":
                text = action.get("userMetadata")
    return LogCommit(
        version,
        tuple(added),
        tuple(removed),
        tuple(feed),
        metadata,
        protocol,
        transactions,
        text,
    )


def find_commit(
    path: str, read: Callable[[int], LogCommit], newest: int, application: str, number: int
) -> tuple[int, Commit]:
    """The version and metadata of a transaction that the table is known to hold.

    Walks back from the newest version; a view has one writer, so it is normally the first one read.
    Raises HistoryLost when log cleanup has removed the commit.
    """
    for version in range(newest, -1, -1):
        try:
            commit = read(version)
        except FileNotFoundError as problem:
            reason = f"the log file of version {version} is gone, and with it the metadata of "
            raise HistoryLost(
                path=path,
                after=version,
                upto=newest,
                reason=reason + f"commit {number} of {application}",
            ) from problem
        if commit.transactions.get(application) == number:
            ours = Commit.from_user_metadata(commit.user_metadata)
            if ours is None or ours.application != application:
                ours = Commit(application, number)
            return version, ours
    raise HistoryLost(
        path=path,
        after=0,
        upto=newest,
        reason=f"no log file holds commit {number} of {application}",
    )


def _row_count(statistics: str | None) -> int | None:
    # Statistics can be long, and only one number of them is wanted.
    found = re.search(r'"numRecords"\s*:\s*(\d+)', statistics or "")
    return int(found.group(1)) if found else None


def _data_file(action: Mapping[str, Any]) -> DataFile:
    vector = action.get("deletionVector")
    partition = action.get("partitionValues")
    return DataFile(
        unquote(action["path"]),
        tuple(sorted((partition or {}).items())),
        Vector.of_action(vector) if vector else None,
        int(action.get("size") or 0),
        _row_count(action.get("stats")),
        partition is not None,
    )
