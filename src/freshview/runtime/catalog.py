"""The catalog of a warehouse: which tables are registered, which views are defined and how.

Each state of it is a JSON file with the next number, linked into place whole (`numbered_files.py`):
a reader sees the old or the new catalog, a crash leaves one of them, and of two who change it at
once the second finds its number taken and begins again from the newer state. States stay for ever,
because a number that is gone could be taken again by a process that wakes up late. Definitions are SQL
text or the name of a Python function.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from freshview.errors import (
    Busy,
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
from freshview.runtime.numbered_files import NumberedFiles
from freshview.runtime.retries import attempts
from freshview.storage.places import check_place

FORMAT = 2
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

    ``counted``: a stored row stands for ``__count`` rows. ``wanted`` is the technique that was asked
    for, or "auto". ``settings`` are those of the session that
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
    wanted: str = "auto"

    @property
    def application(self) -> str:
        """The transaction identifier of this view's commits."""
        return f"freshview:{self.id}"


Entry = TableEntry | ViewEntry


def new_place(view: str) -> tuple[str, str]:
    """The identity of a view, and its folder, both never used before.

    Numbers of commits begin anew with it, so nobody can take the new table for an earlier one.
    """
    identity = uuid.uuid4().hex
    return identity, f"views/{view}-{identity[:8]}"


class Catalog:
    """The entries by name, and the files they live in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "_freshview"
        self.marker = self.folder / "catalog.json"
        """Format 1 kept everything in this one file; now it tells an older freshview to stop."""
        self._states = NumberedFiles(self.folder / "catalog")
        self._entries: dict[str, Entry] = {}
        self._number = 0

    @classmethod
    def create(cls, root: Path) -> Catalog:
        """An empty catalog in a new or existing folder; an existing catalog stays."""
        check_place(str(root))
        catalog = cls(root)
        if not catalog.exists():
            with writing(root):
                catalog.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(catalog.marker, _text({}))
        catalog.load()
        return catalog

    def exists(self) -> bool:
        return self.marker.exists()

    def load(self) -> None:
        """Read the newest state, if it is not the one that is known."""
        if self._number == 0:
            self._check_marker()
        newest = max(self._states.numbers(), default=0)
        if newest == 0:
            self._upgrade()
        elif newest != self._number:
            text = self._states.read(newest) or ""
            self._entries = self._parsed(text, self._states.file(newest))
            self._number = newest

    def _upgrade(self) -> None:
        """Make the one file of format 1, or of a warehouse that was just begun, the first state.

        The marker changes first, so that an older freshview writes no more to what is copied. A
        crash before that leaves format 1, a crash after it is made up for by whoever comes next.
        """
        text = self._check_marker()
        entries = self._parsed(text, self.marker)
        if json.loads(text)["format"] < FORMAT:
            point("catalog.before_upgrade")
            write_atomically(self.marker, _text(entries))
        point("catalog.upgrading")
        self._states.write(1, _text(entries))
        self.load()

    def _check_marker(self) -> str:
        """The file that makes the folder a warehouse, if this version knows its format."""
        check_place(str(self.root))
        try:
            text = self.marker.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            raise WarehouseMissing(path=str(self.root)) from None
        self._content(text, self.marker)
        return text

    def _content(self, text: str, file: Path) -> dict[str, Any]:
        """What a file holds, if this version knows its format."""
        try:
            stored = json.loads(text)
            found = int(stored["format"])
        except (ValueError, KeyError, TypeError) as problem:
            raise _corrupt(file, problem) from problem
        if found > FORMAT:
            raise WarehouseTooNew(path=str(self.root), found=found, known=FORMAT)
        return dict(stored)

    def _parsed(self, text: str, file: Path) -> dict[str, Entry]:
        """The entries in a file, each of a shape that can be trusted."""
        stored = self._content(text, file)
        try:
            entries = [_entry(each) for each in stored["entries"]]
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise _corrupt(file, problem) from problem
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

    def path(self, entry: Entry) -> str:
        """Where the entry's Delta table is."""
        if "://" in entry.path:
            return entry.path
        path = Path(entry.path)
        return str(path if path.is_absolute() else self.root / path)

    def readers(self, name: str) -> tuple[str, ...]:
        """The views that read a table or view directly."""
        return tuple(view.name for view in self.views() if name in view.sources)

    def add(self, entry: Entry) -> None:
        """Put in an entry whose name is free and whose sources are there."""
        check_name(entry.name)

        def change() -> None:
            self.check_free(entry.name)
            self._put(entry)

        self._change(change)

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

        def change() -> None:
            if self.view(old.name).id != old.id:
                raise NameTaken(name=old.name)
            self.check_unread(old.name)
            self._put(new)

        self._change(change)

    def renew(self, old: ViewEntry, new: ViewEntry) -> None:
        """Give a view another table of its own, whoever reads it."""

        def change() -> None:
            if self.view(old.name).id != old.id:
                raise NameTaken(name=old.name)
            self._put(new)

        self._change(change)

    def set_policy(self, name: str, policy: Policy) -> None:
        def change() -> None:
            self._entries[name] = replace(self.view(name), policy=policy)

        self._change(change)

    def set_technique(self, name: str, wanted: str, technique: str) -> None:
        def change() -> None:
            self._entries[name] = replace(self.view(name), wanted=wanted, technique=technique)

        self._change(change)

    def remove(self, name: str) -> None:
        """Take out a table or view that nobody reads."""

        def change() -> None:
            self.get(name)
            self.check_unread(name)
            del self._entries[name]

        self._change(change)

    def _put(self, entry: Entry) -> None:
        for source in entry.sources if isinstance(entry, ViewEntry) else ():
            self.get(source)
        self._entries[entry.name] = entry

    def _change(self, change: Callable[[], None]) -> None:
        """Change the newest state and write the next one, again if another process was faster."""
        for last in attempts():
            self.load()
            try:
                change()
                point("catalog.before_write")
                written = self._states.write(self._number + 1, _text(self._entries))
            finally:
                self._number = 0
                self.load()
            if written:
                return
            if last:
                raise Busy(file=str(self._states.folder), seconds=0)


def check_name(name: str) -> None:
    """Names are plain identifiers: they become file names and SQL names."""
    try:
        fits = _NAME.fullmatch(name)
    except TypeError:
        fits = None
    if fits is None:
        raise InvalidName(name=name)


def _text(entries: dict[str, Entry]) -> str:
    stored = [_stored(entry) for entry in entries.values()]
    return json.dumps({"format": FORMAT, "entries": stored}, indent=1)


def _corrupt(file: Path, problem: Exception) -> WarehouseCorrupt:
    return WarehouseCorrupt(file=str(file), reason=f"{type(problem).__name__}: {problem}")


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
