"""The states of a catalog, read from its files alone, and what one may do to the one before it.

A change adds an entry, takes one out or puts another in its place, and writes the next number; no
state is ever removed. A view that is taken out was dropped or was lost, which files alone cannot tell,
as a drop that is killed leaves the folder: whoever knows what was dropped says which views to expect.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from soak.findings import CATALOG, Finding

Entries = Mapping[str, Mapping[str, Any]]


class CatalogStates:
    """All states of the catalog of a warehouse, by number."""

    def __init__(self, root: Path) -> None:
        files = sorted((root / "_freshview" / "catalog").glob("*.json"))
        self.states: dict[int, Entries] = {
            int(file.stem): {e["name"]: e for e in json.loads(file.read_text())["entries"]}
            for file in files
        }

    @property
    def newest(self) -> Entries:
        return self.states[max(self.states)]

    @cached_property
    def views(self) -> list[str]:
        """The views of the newest state that have all they read."""
        whole: dict[str, bool] = {}

        def is_whole(name: str) -> bool:
            if name not in whole:
                whole[name] = False  # until it is known; a view that reads itself has not all
                entry = self.newest.get(name)
                whole[name] = entry is not None and all(map(is_whole, entry.get("sources", ())))
            return whole[name]

        return [name for name, e in self.newest.items() if e["kind"] == "view" and is_whole(name)]

    def places(self, view: str) -> dict[str, str]:
        """The folder of each view that ever had this name, by its identity, oldest first."""
        entries = (state[view] for state in self.states.values() if view in state)
        return {entry["id"]: entry["path"] for entry in entries if entry["kind"] == "view"}

    def check(self, expected: Collection[str] = ()) -> Iterator[Finding]:
        """``expected`` are views that were made and not dropped."""
        for name in expected:
            if self.newest.get(name, {}).get("kind") != "view":
                yield Finding(CATALOG, name, f"is not in state {max(self.states)}, nor was dropped")
        missing = set(range(1, max(self.states))) - self.states.keys()
        for number in sorted(missing):
            yield Finding(CATALOG, f"state {number}", "is not there, and later ones are")
        used: set[str] = set()
        for number, entries in self.states.items():
            yield from _read(f"state {number}", entries)
            if number - 1 in self.states:
                yield from _change(f"state {number}", self.states[number - 1], entries, used)
            used |= {entry["id"] for entry in entries.values() if entry["kind"] == "view"}


def _read(where: str, entries: Entries) -> Iterator[Finding]:
    """What a view reads is in the same state."""
    for name, entry in entries.items():
        for source in entry.get("sources", ()):
            if source not in entries:
                yield Finding(CATALOG, where, f"{name} reads {source}, which is not in it")


def _change(where: str, before: Entries, after: Entries, used: set[str]) -> Iterator[Finding]:
    """One entry differs, in a way in which entries do."""
    names = [n for n in {**before, **after} if before.get(n) != after.get(n)]
    if len(names) > 1:
        yield Finding(CATALOG, where, f"{', '.join(sorted(names))} changed at once")
    for name in names:
        problem = _problem(before.get(name, {}), after.get(name, {}), used)
        if problem is not None:
            yield Finding(CATALOG, where, f"{name} {problem}")


def _problem(old: Mapping[str, Any], new: Mapping[str, Any], used: set[str]) -> str | None:
    """What is wrong with this change of an entry; nothing stands for no entry."""
    if old and "table" in (old["kind"], new.get("kind")):
        return f"was a {old['kind']}, and nobody takes out a table or puts one in its place"
    if old and new and old["id"] == new["id"]:
        same = {**old, "policy": new["policy"]} == new
        return None if same else "is defined otherwise, and has its old identity"
    if new and new["kind"] == "view" and new["id"] in used:
        return "has the identity of an earlier view"
    return None
