"""Epochs: after a refresh, one record says which version of each view belongs together.

An epoch is a JSON file with the next number (`numbered_files.py`). Two refreshers that end at once
write two epochs; each names versions that were committed before it. Time never goes back from one
epoch to the next: a refresher that others have overtaken meanwhile records none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from freshview.errors import WarehouseCorrupt
from freshview.runtime.commit import SourceVersion, parsed_versions, stored_versions
from freshview.runtime.numbered_files import NumberedFiles


@dataclass(frozen=True, slots=True)
class Epoch:
    """The versions of views that agree with each other, and the base versions they show."""

    number: int
    time: str
    views: Mapping[str, SourceVersion]
    tables: Mapping[str, SourceVersion]

    def get(self, name: str) -> SourceVersion | None:
        """The version of a view or table that belongs to this epoch, None if it has none."""
        return self.views.get(name) or self.tables.get(name)


class OldNews(Exception):
    """An epoch that was recorded meanwhile has later versions."""

    def __init__(self, newer: Epoch) -> None:
        super().__init__(f"epoch {newer.number} is newer")
        self.newer = newer


class Epochs:
    """The epochs of a warehouse."""

    def __init__(self, root: Path) -> None:
        self._files = NumberedFiles(root / "_freshview" / "epochs")

    def numbers(self) -> list[int]:
        return self._files.numbers()

    def file(self, number: int) -> Path:
        """Where an epoch is."""
        return self._files.file(number)

    def last_number(self) -> int:
        """The number of the newest epoch, 0 before the first."""
        return max(self.numbers(), default=0)

    def newest(
        self,
        names: Iterable[str] = (),
        is_there: Callable[[str, SourceVersion], bool] = lambda *_: True,
    ) -> Epoch | None:
        """The newest epoch that has all these views and tables, at versions that are there."""
        wanted = set(names)
        for number in reversed(self.numbers()):
            epoch = self.read(number)
            if epoch is None:
                continue
            held = {name: epoch.get(name) for name in wanted}
            if all(version and is_there(name, version) for name, version in held.items()):
                return epoch
        return None

    def read(self, number: int) -> Epoch | None:
        text = self._files.read(number)
        if text is None:
            return None
        try:
            stored = json.loads(text)
            views, tables = (parsed_versions(stored[kind]) for kind in ("views", "tables"))
            return Epoch(number, stored["time"], views, tables)
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise WarehouseCorrupt(file=str(self._files.file(number)), reason=reason) from problem

    def record(
        self,
        views: Mapping[str, SourceVersion],
        tables: Mapping[str, SourceVersion],
        after: int = 0,
    ) -> Epoch:
        """Write the next epoch; if another writer takes the number, the one after it.

        ``after`` is the newest epoch from before these versions were pinned. One that was recorded
        since may be newer: OldNews if a view or table of it is, and then nothing is written.
        """
        known = after
        while True:
            for number in [number for number in self.numbers() if number > known]:
                other = self.read(number)
                mine = {**tables, **views}
                if other is not None and any(_later(other, name, mine[name]) for name in mine):
                    raise OldNews(other)
                known = number
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            stored = {"views": stored_versions(views), "tables": stored_versions(tables)}
            if self._files.write(known + 1, json.dumps({"time": now, **stored})):
                return Epoch(known + 1, now, views, tables)


def _later(epoch: Epoch, name: str, mine: SourceVersion) -> bool:
    """Whether an epoch has a view or table at a later version, or another one of that name."""
    its = epoch.get(name)
    return its is not None and (its.table_id != mine.table_id or its.version > mine.version)
