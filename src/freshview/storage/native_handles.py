"""Open native tables, kept open.

Opening a table costs 2 to 30 ms (it replays the log), asking an open one whether it is current
costs half a millisecond; a refresh that finds nothing to do is made of little else. So the newest
handle of each path stays open and is advanced in place, and a few time-travelled ones are kept.

A path can be dropped and made again as another table. A handle therefore remembers the identity
(inode, time, size) of the commit file it stands on, and is thrown away when that file is another
one. For remote stores there is no cheap identity, and a replaced table is noticed by its id only
where versions are compared (`changes`).

The native library has threads of its own, which a fork does not copy: in a forked process it would
panic, and the locks here might never open. So the first process to use it is the only one.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError

from freshview.errors import (
    ForkedProcess,
    HistoryLost,
    NativeRefused,
    TableMissing,
    TableUnreadable,
    first_line,
)

_Stamp = tuple[int, int, int]
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_users: list[int] = []
"""The process that was the first to use the native library: this one, or one it was forked from."""


def check_process() -> None:
    """Refuse a process that was forked from one that has used the native library."""
    if not _users:
        _users.append(os.getpid())
    if _users[0] != os.getpid():
        raise ForkedProcess(process=os.getpid(), parent=_users[0])


@contextmanager
def _without_panics(path: str) -> Iterator[None]:
    """A panic of the native library is no end of the program: Spark can try, or the view fails."""
    try:
        yield
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        if "Forked process" in str(problem):
            raise ForkedProcess(process=os.getpid(), parent=os.getppid()) from problem
        reason = f"it panicked: {first_line(problem)}"
        raise NativeRefused(path=path, operation="use", reason=reason) from problem


def local_folder(path: str) -> str | None:
    """The folder of a table on this machine, None for a table elsewhere."""
    if path.startswith("file:"):
        return unquote(urlsplit(path).path)
    return None if "://" in path else path


class _Handle:
    """An open table, and the stamp of the commit that it stands on."""

    def __init__(self, path: str, table: DeltaTable) -> None:
        self.path, self.table = path, table
        self.version = table.version()
        self.stamp = stamp(path, self.version)

    def is_current(self) -> bool:
        """Whether the commit that it stands on is there yet, and the same one."""
        if self.stamp is None and local_folder(self.path) is not None:
            return False  # the file was gone by the time of its stamp, cleaned up or replaced
        return self.stamp == stamp(self.path, self.version)

    def has_followed(self) -> bool:
        """Take the stamp of where the table is by now; False if it was replaced on the way.

        The new stamp is taken first: if the commit from before is still there after that, both are
        of one table.
        """
        known, before = self.stamp, self.version
        self.version = self.table.version()
        self.stamp = stamp(self.path, self.version)
        return known == stamp(self.path, before)


class Handles:
    """The open tables of one storage. Safe for threads: a handle is used under its path's lock."""

    def __init__(self, options: Mapping[str, str] | None = None, kept: int = 32) -> None:
        self._options = dict(options) if options else None
        self._kept = kept
        self._newest: dict[str, _Handle] = {}
        self._pinned: OrderedDict[tuple[str, int], _Handle] = OrderedDict()
        self._locks: dict[str, threading.RLock] = {}
        self._guard = threading.Lock()

    def exists(self, path: str) -> bool:
        """Whether a Delta table is at the path."""
        check_process()
        folder = local_folder(path)
        if folder is not None and not Path(folder).is_dir():
            return False
        return bool(DeltaTable.is_deltatable(path, self._options))

    @contextmanager
    def newest(self, path: str) -> Iterator[DeltaTable]:
        """The table at its newest version, locked: the handle to compare on and to write with.

        After an error inside the block the handle is dropped, since a failed write can leave it
        between two versions.
        """
        with self._lock(path), _without_panics(path):
            handle = self._advanced(path)
            try:
                yield handle.table
            except BaseException:
                self._newest.pop(path, None)
                raise
            if not handle.has_followed():
                self._newest.pop(path, None)

    @contextmanager
    def at(self, path: str, version: int) -> Iterator[DeltaTable]:
        """The table at a version, locked. Registering it with a query copies its snapshot."""
        with self._lock(path), _without_panics(path):
            newest = self._newest.get(path)
            if newest and newest.table.version() == version and newest.is_current():
                yield newest.table
            else:
                yield self._travelled(path, version).table

    def forget(self, path: str) -> None:
        """Close all handles of a path."""
        with self._lock(path):
            self._newest.pop(path, None)
            for key in [key for key in self._pinned if key[0] == path]:
                del self._pinned[key]

    def _lock(self, path: str) -> threading.RLock:
        check_process()
        with self._guard:
            return self._locks.setdefault(path, threading.RLock())

    def _advanced(self, path: str) -> _Handle:
        handle = self._newest.get(path)
        if handle is not None and handle.is_current():
            with suppress(DeltaError):
                handle.table.update_incremental()
                if handle.has_followed():
                    return handle
        self.forget(path)
        handle = self._newest[path] = _Handle(path, self._opened(path, None))
        return handle

    def _travelled(self, path: str, version: int) -> _Handle:
        key = (path, version)
        handle = self._pinned.get(key)
        if handle is None or not handle.is_current():
            handle = _Handle(path, self._opened(path, version))
        with self._guard:
            self._pinned[key] = handle
            self._pinned.move_to_end(key)
            while len(self._pinned) > self._kept:
                self._pinned.popitem(last=False)
        return handle

    def _opened(self, path: str, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(path, version=version, storage_options=self._options)
        except DeltaProtocolError as problem:
            raise NativeRefused(path=path, operation="open", reason=str(problem)) from problem
        except (TableNotFoundError, DeltaError) as problem:
            if version is not None and self.exists(path):
                reason = f"version {version} cannot be opened: {problem}"
                raise HistoryLost(
                    path=path, after=version, upto=version, reason=reason
                ) from problem
            if isinstance(problem, TableNotFoundError) or not self.exists(path):
                raise TableMissing(path=path, reason=_why_missing(path, problem)) from problem
            raise TableUnreadable(path=path, reason=first_line(problem)) from problem
        except OSError as problem:
            raise TableMissing(path=path, reason=_why_missing(path, problem)) from problem


def _why_missing(path: str, problem: Exception) -> str:
    """What is there in place of a table, where it can be seen; else what the library said."""
    folder = local_folder(path)
    if folder is None or Path(folder, "_delta_log").is_dir():
        return _COLOURS.sub("", " ".join(str(problem).split()))
    if Path(folder).is_file():
        return "it is a file, and a Delta table is a folder"
    if not Path(folder).is_dir():
        return "there is no such folder"
    if not any(Path(folder).iterdir()):
        return "the folder is empty"
    return "the folder has no _delta_log, so whatever is in it is not a Delta table"


def stamp(path: str, version: int) -> _Stamp | None:
    """What tells a commit's file from another one with its name; None where it cannot be seen."""
    folder = local_folder(path)
    if folder is None:
        return None
    try:
        return file_stamp(Path(folder, "_delta_log", f"{version:020}.json"))
    except OSError:
        return None


def file_stamp(file: Path) -> _Stamp:
    """What tells a file on this machine from another one with its name. Raises OSError."""
    found = file.stat()
    return (found.st_ino, found.st_mtime_ns, found.st_size)
