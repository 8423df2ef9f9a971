"""The catalog of a warehouse: which tables are registered, which views are defined and how.

One JSON file, replaced as a whole under a lock, so that a reader sees the old or the new catalog
and a crash leaves one of them. Definitions are SQL text or the name of a Python function.
"""

from __future__ import annotations

import json
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
    UnknownPolicy,
    ViewInUse,
    WarehouseCorrupt,
    WarehouseMissing,
    WarehouseTooNew,
)
from freshview.faults import point
from freshview.runtime.file_writes import write_atomically, writing
from freshview.runtime.lease import lease
from freshview.storage.places import check_place

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

    @classmethod
    def named(cls, policy: Policy | str) -> Policy:
        """The policy of a name; UnknownPolicy if there is none."""
        try:
            return cls(policy)
        except ValueError:
            known = ", ".join(each.value for each in cls)
            raise UnknownPolicy(policy=policy, known=known) from None


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
        check_place(str(root))
        catalog = cls(root)
        if not catalog.file.exists():
            with writing(root):
                catalog.file.parent.mkdir(parents=True, exist_ok=True)
            with catalog._changing(new=True):
                pass
        catalog.load()
        return catalog

    def load(self) -> None:
        """Read the file if it changed since it was last read."""
        check_place(str(self.root))
        try:
            status = self.file.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise WarehouseMissing(path=str(self.root)) from None
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        self._entries = self._read()
        self._stamp = stamp

    def _read(self) -> dict[str, Entry]:
        """The entries in the file, each of a shape that can be trusted."""
        try:
            stored = json.loads(self.file.read_text(encoding="utf-8"))
            found = int(stored["format"])
            entries = [] if found > FORMAT else [_entry(each) for each in stored["entries"]]
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise WarehouseCorrupt(file=str(self.file), reason=reason) from problem
        if found > FORMAT:
            raise WarehouseTooNew(path=str(self.root), found=found, known=FORMAT)
        return {entry.name: entry for entry in entries}

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

    def replace(self, old: ViewEntry, new: ViewEntry) -> None:
        """Put another view of the same name in place of one that nobody reads."""
        with self._changing():
            readers = self.readers(old.name)
            if readers:
                raise ViewInUse(name=old.name, readers=", ".join(readers))
            self._entries[new.name] = new

    def set_policy(self, name: str, policy: Policy) -> None:
        with self._changing():
            self._entries[name] = replace(self.view(name), policy=policy)

    def remove(self, name: str) -> None:
        with self._changing():
            readers = self.readers(name)
            if readers:
                raise ViewInUse(name=name, readers=", ".join(readers))
            del self._entries[name]

    @contextmanager
    def _changing(self, *, new: bool = False) -> Iterator[None]:
        with lease(self.file.parent / "leases" / "catalog") as held:
            if self.file.exists() or not new:
                self.load()
            self._stamp = None  # whatever fails from here on, the file is read again
            yield
            point("catalog.before_replace")
            held.check()
            entries = [_stored(entry) for entry in self._entries.values()]
            write_atomically(
                self.file, json.dumps({"format": FORMAT, "entries": entries}, indent=1)
            )
        self.load()


def check_name(name: str) -> None:
    """Names are plain identifiers: they become file names and SQL names."""
    if not _NAME.fullmatch(name):
        raise InvalidName(name=name)


def _stored(entry: Entry) -> dict[str, Any]:
    kind = "view" if isinstance(entry, ViewEntry) else "table"
    stored = {"kind": kind, **asdict(entry)}
    if isinstance(entry, ViewEntry):
        stored["policy"] = entry.policy.value
    return stored


def _entry(stored: dict[str, Any]) -> Entry:
    """An entry as it is stored; ValueError, KeyError or TypeError if it is none of ours."""
    fields = {key: value for key, value in stored.items() if key != "kind"}
    if not _NAME.fullmatch(stored["name"]):
        raise ValueError(f"{stored['name']!r} is not a name")
    parts = Path(fields["path"]).parts
    if stored["kind"] == "table":
        return TableEntry(**fields)
    # Dropping a view removes its folder, so the file must not be able to name any other.
    folder, *below = parts
    if stored["kind"] != "view" or folder != "views" or len(below) != 1 or ".." in below:
        raise ValueError(f"{stored['name']} is a {stored['kind']} at {fields['path']}")
    fields["policy"] = Policy(fields["policy"])
    for name in ("sources", "columns"):
        fields[name] = tuple(fields[name])
    columns = fields["source_columns"]
    fields["source_columns"] = {name: tuple(names) for name, names in columns.items()}
    return ViewEntry(**fields)
