"""Changes to several tables as one transaction, over a format that commits one table at a time.

The rows are staged first, then an intent file names every table and the number its commit will
have: from that moment the transaction happens. Each table is then written with that number, which
makes writing it again harmless, and the intent is removed. Whoever finds an intent completes it
before pinning versions, so a refresh never sees half a transaction. [B07] Definition 1.15.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from freshview.errors import InvalidChanges
from freshview.runtime.catalog import write_atomically
from freshview.runtime.lease import lease
from freshview.storage.choose import Tables
from freshview.storage.interface import Commit

APPLICATION = "freshview:apply"


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes to one table. ``insert`` adds rows; ``update`` and ``delete`` go by ``key``.

    Rows are a ``pyarrow.Table``, a pandas or Spark DataFrame, or a list of dictionaries. ``update``
    has whole rows: the row with that key becomes it, or it is added. ``delete`` needs the key only.
    """

    insert: Any = None
    update: Any = None
    delete: Any = None
    key: Sequence[str] = ()


class Transactions:
    """Applies transactions and completes those that were interrupted."""

    def __init__(self, root: Path, tables: Tables, path: Callable[[str], str]) -> None:
        self._folder = root / "_freshview" / "transactions"
        self._intent = self._folder / "intent.json"
        self._tables = tables
        self._path = path

    def apply(self, changes: Mapping[str, TableChanges]) -> dict[str, int]:
        """Change the tables together; returns the version of each."""
        checked = {name: self._checked(name, change) for name, change in changes.items()}
        with self.whole():
            steps = [
                step
                for name, rows in checked.items()
                for step in self._staged(name, tuple(changes[name].key), rows)
            ]
            write_atomically(self._intent, json.dumps(steps))
            self._complete()
            return {name: self._tables.latest(self._path(name)) for name in changes}

    @contextmanager
    def whole(self) -> Iterator[None]:
        """While this is held, no transaction is half done."""
        with lease(self._folder / "lock"):
            if self._intent.exists():
                self._complete()
            yield

    def _checked(self, name: str, change: TableChanges) -> dict[str, pa.Table]:
        """The rows of each kind of change in the table's types, or an error before any write."""
        schema = self._tables.state(self._path(name)).arrow_schema
        if not change.key and (change.update is not None or change.delete is not None):
            raise InvalidChanges(table=name, reason="update and delete need a key")
        missing = [column for column in change.key if column not in schema.names]
        if missing:
            raise InvalidChanges(table=name, reason=f"it has no column {', '.join(missing)}")
        key_schema = pa.schema([schema.field(column) for column in change.key])
        rows = {
            "insert": _rows(name, change.insert, schema),
            "update": _rows(name, change.update, schema),
            "delete": _rows(name, change.delete, key_schema),
        }
        present = {kind: some for kind, some in rows.items() if some is not None}
        if not present:
            raise InvalidChanges(table=name, reason="there is nothing to insert, update or delete")
        return present

    def _staged(
        self, name: str, key: tuple[str, ...], rows: Mapping[str, pa.Table]
    ) -> Iterator[dict[str, Any]]:
        """The commits of one table, numbered, their rows on disk: by key first, then insertions."""
        path = self._path(name)
        number = self._tables.number(path, APPLICATION) or 0
        for kind, some in rows.items():
            pq.write_table(some, self._file(name, kind))
        for kinds in (("update", "delete"), ("insert",)):
            present = [kind for kind in kinds if kind in rows]
            if present:
                number += 1
                yield {"table": name, "path": path, "number": number, "key": key, "kinds": present}

    def _complete(self) -> None:
        """Write what the intent names and is not written yet, then forget the intent."""
        steps = json.loads(self._intent.read_text())
        for step in steps:
            self._write(step)
        self._intent.unlink()
        for step in steps:
            for kind in step["kinds"]:
                self._file(step["table"], kind).unlink(missing_ok=True)

    def _write(self, step: Mapping[str, Any]) -> None:
        path, number, key = step["path"], step["number"], step["key"]
        done = self._tables.number(path, APPLICATION) or 0
        if done >= number:
            return
        rows = {kind: pq.read_table(self._file(step["table"], kind)) for kind in step["kinds"]}
        commit = Commit(APPLICATION, number)
        if "insert" in rows:
            self._tables.append(path, rows["insert"], commit)
            return
        schema = self._tables.state(path).arrow_schema
        keys = pa.schema([schema.field(column) for column in key])
        updates = rows.get("update", schema.empty_table())
        self._tables.apply(path, key, updates, rows.get("delete", keys.empty_table()), commit)

    def _file(self, name: str, kind: str) -> Path:
        return self._folder / f"{name}.{kind}.parquet"


def _rows(table: str, rows: Any, schema: pa.Schema) -> pa.Table | None:
    """The rows as Arrow in the table's columns and types."""
    if rows is None:
        return None
    if isinstance(rows, DataFrame):
        rows = rows.toArrow()
    elif isinstance(rows, pd.DataFrame):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    try:
        if not isinstance(rows, pa.Table):
            unknown = {column for row in rows for column in row} - set(schema.names)
            if unknown:
                raise InvalidChanges(table=table, reason=f"it has no column {sorted(unknown)}")
            return pa.Table.from_pylist(list(rows), schema)
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, TypeError, AttributeError) as error:
        raise InvalidChanges(table=table, reason=str(error)) from error
