"""Epochs: after a refresh, one record says which version of each view belongs together.

An epoch is a JSON file with the next number, linked into place whole. Two refreshers that end at
once write two epochs; each names versions that were committed before it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from freshview.runtime.file_writes import writing


@dataclass(frozen=True, slots=True)
class Epoch:
    """The versions of views that agree with each other, and the base versions they show."""

    number: int
    time: str
    views: Mapping[str, int]
    tables: Mapping[str, int]


class Epochs:
    """The epochs of a warehouse."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "_freshview" / "epochs"

    def numbers(self) -> list[int]:
        return sorted(int(file.stem) for file in self.folder.glob("*.json"))

    def latest(self) -> Epoch | None:
        numbers = self.numbers()
        return self.read(numbers[-1]) if numbers else None

    def read(self, number: int) -> Epoch | None:
        try:
            stored = json.loads(self._file(number).read_text())
        except FileNotFoundError:
            return None
        return Epoch(number, stored["time"], stored["views"], stored["tables"])

    def record(self, views: Mapping[str, int], tables: Mapping[str, int]) -> Epoch:
        """Write the next epoch; if another writer takes the number, take the one after it."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps({"time": now, "views": dict(views), "tables": dict(tables)})
        temporary = self.folder / f".{os.getpid()}.tmp"
        try:
            with writing(temporary):
                temporary.write_text(text)
            number = (self.numbers() or [0])[-1] + 1
            while True:
                try:
                    os.link(temporary, self._file(number))
                except FileExistsError:
                    number += 1
                else:
                    return Epoch(number, now, views, tables)
        finally:
            temporary.unlink(missing_ok=True)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:012d}.json"
