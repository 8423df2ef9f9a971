"""The history of a warehouse, read from its files alone: tables, views, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from soak.catalog_states import CatalogStates
from soak.delta_history import LogEntry, LogIncomplete, history
from soak.findings import MIXED, Finding

Versions = Mapping[str, set[tuple[int, str]]]


class WarehouseHistory:
    """The commits of every table and view of a warehouse whose refreshers have stopped."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalog = CatalogStates(root)
        self.entries, self.views = self.catalog.newest, self.catalog.views
        self._histories: dict[str, list[LogEntry]] = {}
        self._gone: dict[str, set[str]] = {}
        self._earlier: dict[str, list[list[LogEntry]]] = {}

    def path(self, name: str) -> Path:
        return self.root / str(self.entries[name]["path"])

    def history(self, name: str) -> list[LogEntry]:
        if name not in self._histories:
            self._histories[name] = history(self.path(name))
        return self._histories[name]

    def has(self, name: str, version: int, table: str) -> bool:
        """Whether a table or view has a version, and it is of this table."""
        commits = self.history(name) if name in self.entries else []
        return _is_there(commits, version, table)

    def is_commit(self, name: str, version: int, identity: str) -> bool:
        """Whether the commit of a version that is there has this identity."""
        return self.history(name)[version].identity == identity

    def had(self, view: str, version: int, table: str) -> bool:
        """Whether an earlier view of this name can have had a version of a table.

        Its folder may be there yet, because it was dropped by a process that was killed. Otherwise
        nothing tells what it held; but each view that had the name accounts for one table, and
        for no more.
        """
        if view not in self._earlier:
            places = self.catalog.places(view)
            places.pop(self.entries.get(view, {}).get("id", ""), None)
            self._earlier[view] = [self._left(*place) for place in places.items()]
        present = self.history(view) if view in self.entries else []
        for commits in (present, *self._earlier[view]):
            if any(commit.table == table for commit in commits):
                return _is_there(commits, version, table)
        gone = self._gone.setdefault(view, set())
        if len(gone) < self._earlier[view].count([]):
            gone.add(table)
        return table in gone

    def _left(self, identity: str, place: str) -> list[LogEntry]:
        """What is left of the table of an earlier view; nothing, if another one is in its place."""
        try:
            commits = history(self.root / place)
        except LogIncomplete:
            return []
        made = {commit.named["application"] for commit in commits if commit.named is not None}
        return commits if f"freshview:{identity}" in made else []

    def is_left(self, sources: Mapping[str, tuple[int, str]]) -> bool:
        """Whether all these versions can still be read."""
        return all(self.has(name, *version) for name, version in sources.items())

    def base(self, name: str, version: int) -> dict[str, set[tuple[int, str]]]:
        """The base versions that a version of a table or view rests on, by every way down.

        As far as that can be told: a view that is gone had some that nobody knows.
        """
        commits = self.history(name)
        if self.entries[name]["kind"] == "table":
            return {name: {(version, commits[version].table)}}
        found: dict[str, set[tuple[int, str]]] = {}
        named = (s for c in reversed(commits[: version + 1]) if (s := c.sources) is not None)
        for source, (at, table) in next(named, {}).items():
            below = {source: {(at, table)}}
            if self.entries.get(source, {}).get("kind") == "view":
                below = self.base(source, at) if self.has(source, at, table) else {}
            for base, versions in below.items():
                found.setdefault(base, set()).update(versions)
        return found


def disagreements(where: str, base: Versions) -> Iterator[Finding]:
    """Tables of which more than one version is there."""
    for name, versions in base.items():
        if len(versions) > 1:
            yield Finding(MIXED, where, f"{name} at {sorted(v for v, _ in versions)}")


def _is_there(commits: list[LogEntry], version: int, table: str) -> bool:
    return 0 <= version < len(commits) and commits[version].table == table
