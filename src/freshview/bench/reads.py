"""Rows that a refresh reads of each table, counted where storage hands them out.

The refresh itself reports one sum over all tables, and in it no rows of lookups that stay in Spark.
Here a plan of Spark's over a table counts as all of its rows, because Spark reads all of its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from freshview.runtime.warehouse import Warehouse
from freshview.storage.interface import TableState

_READING = ("lookup", "read", "read_files")


@dataclass(slots=True)
class Read:
    """What was read of a table, and how often Spark did it, each time all of the table."""

    rows: int = 0
    scans: int = 0


class Reads:
    """Counts what the storage of a warehouse reads, from here on."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._catalog = warehouse.catalog
        self._tables = warehouse.parts.tables
        self._found: dict[str, Read] = {}
        for storage in (self._tables.native, self._tables.spark):
            for name in _READING:
                if hasattr(storage, name):
                    setattr(storage, name, self._counted(getattr(storage, name)))

    def start(self) -> None:
        """Forget what was read so far."""
        self._found.clear()

    def of(self, names: Iterable[str]) -> dict[str, Read]:
        """What was read of these tables and views since the start."""
        return {
            name: replace(self._found.get(self._catalog.path(self._catalog.get(name)), Read()))
            for name in names
        }

    def _counted(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def counted(of: str | TableState, *args: Any, **options: Any) -> Any:
            answer = read(of, *args, **options)
            path = of if isinstance(of, str) else of.path
            found = self._found.setdefault(path, Read())
            if isinstance(answer, pa.Table):
                found.rows += answer.num_rows
            else:
                state = self._tables.state(path, args[0]) if isinstance(of, str) else of
                found.rows += state.rows or 0
                found.scans += 1
            return answer

        return counted
