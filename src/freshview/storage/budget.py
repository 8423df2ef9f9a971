"""How many rows, and how large, an answer may become in this process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from freshview.errors import TooManyBytes, TooManyRows

Held = TypeVar("Held", pa.RecordBatch, pa.Table)


@dataclass
class Budget:
    """Counts rows over all threads and stops the reading once they are too many or too large."""

    path: str
    limit: int | None = None
    limit_bytes: int | None = None
    found: int = 0
    held: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, count: int) -> None:
        with self.lock:
            self.found += count
            if self.limit is not None and self.found > self.limit:
                raise TooManyRows(path=self.path, limit=self.limit)

    def hold(self, rows: Held) -> Held:
        """The rows, once it is sure that they fit."""
        with self.lock:
            self.held += rows.nbytes
            if self.limit_bytes is not None and self.held > self.limit_bytes:
                raise TooManyBytes(path=self.path, limit=self.limit_bytes)
        return rows
