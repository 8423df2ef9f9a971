"""The catalog of a warehouse: which tables are registered, which views are defined and how.

One JSON file, replaced as a whole under a lock, so that a reader sees the old or the new catalog
and a crash leaves one of them. Definitions are SQL text or the name of a Python function.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from freshview.errors import (
    InvalidName,
    NameTaken,
    UnknownName,
    ViewInUse,
    WarehouseMissing,
    WarehouseTooNew,
)
from freshview.faults import point
from freshview.runtime.lease import lease

FORMAT = 1
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Policy(Enum):
    """What a refresh may do.

    AUTO takes the cheaper way, INCREMENTAL recomputes only if it must, STRICT raises an error in
    its place, FULL always recomputes.
    """

    AUTO = "AUTO"
    INCREMENTAL = "INCREMENTAL"
    STRICT = "STRICT"
    FULL = "FULL"


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A Delta table that views may read. The path is absolute, or relative to the warehouse."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view: its definition, what it reads, and what its backing table holds.

    ``counted``: a stored row stands for ``__count`` rows. ``settings`` are those of the session that
    defined it and decide what the query means (ANSI, time zone); so do ``source_columns``, the
    columns that its sources had then.
    """

    name: str
    id: str
    path: str
    sources: tuple[str, ...]
    columns: tuple[str, ...]
    counted: bool
    technique: str
    policy: Policy = Policy.AUTO
    sql: str | None = None
    function: str | None = None
    comment: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    source_columns: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def application(self) -> str:
        """The transaction identifier of this view's commits."""
        return f"freshview:{self.id}"


Entry = TableEntry | ViewEntry


class Catalog:
    """The entries by name, and the file they live in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "_freshview" / "catalog.json"
        self._entries: dict[str, Entry] = {}
        self._stamp: tuple[int, int] | None = None

    @classmethod
    def create(cls, root: Path) -> Catalog:
        """An empty catalog in a new or existing folder; an existing catalog stays."""
        catalog = cls(root)
        if not catalog.file.exists():
            catalog.file.parent.mkdir(parents=True, exist_ok=True)
            with catalog._changing(new=True):
                pass
        catalog.load()
        return catalog

    def load(self) -> None:
        """Read the file if it changed since it was last read."""
        try:
            status = self.file.stat()
        except FileNotFoundError:
            raise WarehouseMissing(path=str(self.root)) from None
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        stored = json.loads(self.file.read_text())
        if stored["format"] > FORMAT:
            raise WarehouseTooNew(path=str(self.root), found=stored["format"], known=FORMAT)
        self._entries = {entry["name"]: _entry(entry) for entry in stored["entries"]}
        self._stamp = stamp

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def get(self, name: str) -> Entry:
        if name not in self._entries:
            known = ", ".join(sorted(self._entries)) or "nothing yet"
            raise UnknownName(name=name, known=known)
        return self._entries[name]

    def view(self, name: str) -> ViewEntry:
        entry = self.get(name)
        if not isinstance(entry, ViewEntry):
            known = ", ".join(sorted(view.name for view in self.views())) or "none yet"
            raise UnknownName(name=name, known=f"the views {known}")
        return entry

    def views(self) -> tuple[ViewEntry, ...]:
        return tuple(entry for entry in self if isinstance(entry, ViewEntry))

    def tables(self) -> tuple[TableEntry, ...]:
        return tuple(entry for entry in self if isinstance(entry, TableEntry))

    def path(self, entry: Entry) -> str:
        """Where the entry's Delta table is."""
        path = Path(entry.path)
        return str(path if path.is_absolute() else self.root / path)

    def readers(self, name: str) -> tuple[str, ...]:
        """The views that read a table or view directly."""
        return tuple(view.name for view in self.views() if name in view.sources)

    def add(self, entry: Entry) -> None:
        with self._changing():
            check_name(entry.name)
            self.check_free(entry.name)
            self._entries[entry.name] = entry

    def check_free(self, name: str) -> None:
        """Names differ by more than case, because Spark's do."""
        if any(known.lower() == name.lower() for known in self._entries):
            raise NameTaken(name=name)

    def check_unread(self, name: str) -> None:
        """No view reads it."""
        readers = self.readers(name)
        if readers:
            raise ViewInUse(name=name, readers=", ".join(readers))

    def replace(self, old: ViewEntry, new: ViewEntry) -> None:
        """Put another view of the same name in place of one that nobody reads."""
        with self._changing():
            self.check_unread(old.name)
            self._entries[new.name] = new

    def set_policy(self, name: str, policy: Policy) -> None:
        with self._changing():
            self._entries[name] = replace(self.view(name), policy=policy)

    def remove(self, name: str) -> None:
        with self._changing():
            self.check_unread(name)
            del self._entries[name]

    @contextmanager
    def _changing(self, *, new: bool = False) -> Iterator[None]:
        with lease(self.file.parent / "leases" / "catalog") as held:
            if self.file.exists() or not new:
                self.load()
            yield
            point("catalog.before_replace")
            held.check()
            entries = [_stored(entry) for entry in self._entries.values()]
            write_atomically(
                self.file, json.dumps({"format": FORMAT, "entries": entries}, indent=1)
            )
            self._stamp = None
        self.load()


def check_name(name: str) -> None:
    """Names are plain identifiers: they become file names and SQL names."""
    if not _NAME.fullmatch(name):
        raise InvalidName(name=name)


def write_atomically(file: Path, text: str) -> None:
    """The file has the old or the new content, whatever happens, and the new one is on disk."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with temporary.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)


def _stored(entry: Entry) -> dict[str, Any]:
    kind = "view" if isinstance(entry, ViewEntry) else "table"
    stored = {"kind": kind, **asdict(entry)}
    if isinstance(entry, ViewEntry):
        stored["policy"] = entry.policy.value
    return stored


def _entry(stored: dict[str, Any]) -> Entry:
    fields = {key: value for key, value in stored.items() if key != "kind"}
    if stored["kind"] == "table":
        return TableEntry(**fields)
    fields["policy"] = Policy(fields["policy"])
    for name in ("sources", "columns"):
        fields[name] = tuple(fields[name])
    columns = fields["source_columns"]
    fields["source_columns"] = {name: tuple(names) for name, names in columns.items()}
    return ViewEntry(**fields)
