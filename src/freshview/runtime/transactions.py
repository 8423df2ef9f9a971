"""Changes to several tables as one transaction, over a format that commits one table at a time.

The rows are staged first, then an intent file names every table and the number its commit will
have: from that moment the transaction happens. Each table is then written with that number, which
makes writing it again harmless, and the intent is removed. Whoever finds an intent completes it
before pinning versions, so a refresh never sees half a transaction. [B07] Definition 1.15.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from freshview.errors import InvalidChanges, TransactionUnfinished, first_line
from freshview.runtime.catalog import write_atomically
from freshview.runtime.lease import lease
from freshview.storage.choose import Tables
from freshview.storage.consolidate import duplicate_count
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
            before = {name: self._tables.latest(self._path(name)) for name in changes}
            write_atomically(self._intent, json.dumps(steps))
            try:
                self._complete()
            except Exception as error:
                names, reason = ", ".join(changes), first_line(error)
                if not self._undone(steps, before):
                    raise self._unfinished(names, reason) from error
                raise InvalidChanges(table=names, reason=reason) from error
            return {name: self._tables.latest(self._path(name)) for name in changes}

    @contextmanager
    def whole(self) -> Iterator[None]:
        """While this is held, no transaction is half done."""
        with lease(self._folder / "lease"):
            if self._intent.exists():
                self._recover()
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
        _check_keys(name, change.key, [present[k] for k in ("update", "delete") if k in present])
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
        self._forget(steps)

    def _forget(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self._intent.unlink()
        for step in steps:
            for kind in step["kinds"]:
                self._file(step["table"], kind).unlink(missing_ok=True)

    def _recover(self) -> None:
        """Complete a transaction that was interrupted."""
        try:
            self._complete()
        except Exception as error:
            tables = {step["table"] for step in json.loads(self._intent.read_text())}
            raise self._unfinished(", ".join(sorted(tables)), first_line(error)) from error

    def _unfinished(self, tables: str, reason: str) -> TransactionUnfinished:
        return TransactionUnfinished(tables=tables, reason=reason, file=str(self._intent))

    def _undone(self, steps: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> bool:
        """Take back a transaction that a table refuses, such as by a CHECK constraint.

        A table that was written already is restored, which the views see as no change. If somebody
        else has written to it meanwhile, the intent stays and nothing is taken back.
        """
        written = Counter(step["table"] for step in steps if self._is_written(step))
        for name, commits in written.items():
            if self._tables.latest(self._path(name)) != before[name] + commits:
                return False
        for name in written:
            self._tables.spark.restore(self._path(name), before[name])
        self._forget(steps)
        return True

    def _is_written(self, step: Mapping[str, Any]) -> bool:
        return (self._tables.number(step["path"], APPLICATION) or 0) >= int(step["number"])

    def _write(self, step: Mapping[str, Any]) -> None:
        path, number, key = step["path"], step["number"], step["key"]
        if self._is_written(step):
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


def _check_keys(table: str, key: Sequence[str], changes: Sequence[pa.Table]) -> None:
    """A row is updated or deleted once in a transaction; twice would have no order."""
    if not changes:
        return
    keys = pa.concat_tables([rows.select(list(key)) for rows in changes])
    repeated = duplicate_count(keys, key)
    if repeated:
        reason = f"{repeated} of its updates and deletes have a key that another one has"
        raise InvalidChanges(table=table, reason=reason)


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
