"""Changes to several tables as one transaction, over a format that commits one table at a time.

The rows are staged first, then an intent file names every table and its part: from that moment
the transaction happens. Each part is then written by a commit that carries the transaction's
identity and the next number of the table. Whoever finds an intent writes the parts that no commit
has, and removes it, before pinning versions; so a refresh never sees half a transaction, and of two
who complete it at once the number lets one through. [B07] Definition 1.15.

A transaction that a table refuses is taken back: its intent becomes an undo, and tables that have
parts of it are restored, by the next one who comes if need be.

The identity is the fence of the lease under which the transaction was made, so that a process that
wakes up late touches only what is its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from freshview.errors import (
    ConcurrentWrite,
    InvalidChanges,
    StaleCommit,
    TransactionUnfinished,
    WarehouseCorrupt,
    WriteFailed,
    first_line,
)
from freshview.faults import point
from freshview.runtime.file_writes import link_whole, writing
from freshview.runtime.lease import Lease, lease
from freshview.runtime.retries import attempts
from freshview.storage import spark_changes
from freshview.storage.choose import Tables
from freshview.storage.consolidate import consolidated, duplicate_count
from freshview.storage.interface import Commit, Rows

APPLICATION = "freshview:apply"
Step = Mapping[str, Any]
NEVER = "[]"
WAIT_S = 600.0
"""As long as a large transaction may take."""
_INTENT, _UNDO = ".intent.json", ".undo.json"


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
        self._tables = tables
        self._path = path

    def apply(self, changes: Mapping[str, TableChanges]) -> dict[str, int]:
        """Change the tables together; returns the version of each."""
        checked = {name: self._checked(name, change) for name, change in changes.items()}
        with self.whole() as held:
            identity, intent, lost = _identity(held.fence), self._intent(held.fence), False
            try:
                steps = [
                    step
                    for name, rows in checked.items()
                    for step in self._staged(identity, name, tuple(changes[name].key), rows)
                ]
                point("transaction.staged")
                _intend(held, intent, steps)
            except Exception:
                for staged in self._folder.glob(f"{identity}.*.parquet"):
                    staged.unlink(missing_ok=True)
                raise
            point("transaction.intended")
            try:
                self._complete(intent, steps)
            except Exception as error:
                lost = held.is_lost() or not intent.exists()
                if not lost:
                    self._take_back(intent, steps, error)
        if lost:
            # Whoever has the lease now completes the transaction: it was not ours to take back.
            self.recover()
        return {name: self._tables.latest(self._path(name)) for name in changes}

    def recover(self, wait_s: float = WAIT_S) -> None:
        """Complete what interrupted processes have begun."""
        if self._intents():
            with self.whole(wait_s):
                pass

    @contextmanager
    def whole(self, wait_s: float = WAIT_S) -> Iterator[Lease]:
        """While this is held, no transaction is half done."""
        with lease(self._folder / "lease", wait_s=wait_s) as held:
            for sleeper in held.sleepers():
                link_whole(self._intent(sleeper), NEVER)
                held.forget(sleeper)
            for intent in self._intents():
                self._recover(intent)
            yield held

    def _intent(self, fence: int) -> Path:
        """The intent of whoever has the lease with this fence.

        One that says never stands for a holder that was paused: it cannot intend anything later.
        """
        return self._folder / f"{_identity(fence)}{_INTENT}"

    def _intents(self) -> list[Path]:
        """Those that are to be completed or taken back."""
        found = [file for end in (_INTENT, _UNDO) for file in self._folder.glob(f"*{end}")]
        return sorted(file for file in found if _size(file) != len(NEVER))

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
        self, identity: str, name: str, key: tuple[str, ...], rows: Mapping[str, pa.Table]
    ) -> Iterator[dict[str, Any]]:
        """The commits of one table, their rows on disk: those by key first, then insertions."""
        path = self._path(name)
        after, before = self._number(path), self._tables.latest(path)
        files = {kind: f"{identity}.{name}.{kind}.parquet" for kind in rows}
        for kind, some in rows.items():
            with writing(self._folder / files[kind]):
                pq.write_table(some, self._folder / files[kind])
        for part, kinds in (("by key", ("update", "delete")), ("insert", ("insert",))):
            present = {kind: files[kind] for kind in kinds if kind in rows}
            if present:
                yield {
                    "transaction": identity,
                    "table": name,
                    "part": part,
                    "path": path,
                    "after": after,
                    "before": before,
                    "key": key,
                    "files": present,
                }

    def _complete(self, intent: Path, steps: Sequence[Step]) -> None:
        """Write what the intent names and is not written yet, then forget the intent."""
        for step in steps:
            self._write(step)
            point("transaction.table_written")
        self._forget(intent, steps)
        point("transaction.complete")

    def _forget(self, intent: Path, steps: Sequence[Step]) -> None:
        intent.unlink(missing_ok=True)
        for step in steps:
            for file in step["files"].values():
                (self._folder / file).unlink(missing_ok=True)

    def _recover(self, file: Path) -> None:
        """End a transaction that was interrupted: complete it, or go on taking it back."""
        try:
            steps = _read(file)
        except FileNotFoundError:
            return  # its own process, thought to be dead, has just ended it
        undoing = file.name.endswith(_UNDO)
        try:
            (self._undo if undoing else self._complete)(file, steps)
        except Exception as error:
            if file.exists():
                raise _unfinished(steps, first_line(error), file) from error

    def _take_back(self, intent: Path, steps: Sequence[Step], error: Exception) -> NoReturn:
        """End a transaction that a table refuses, such as by a CHECK constraint.

        Tables that were written already are restored, which the views see as no change. If somebody
        else has written to one meanwhile, the intent stays and nothing is taken back.
        """
        if any(latest != upto for _, _, upto, latest in self._written(steps)):
            raise _unfinished(steps, first_line(error), intent) from error
        undo = intent.with_name(intent.name.replace(_INTENT, _UNDO))
        intent.replace(undo)
        point("transaction.undoing")
        try:
            self._undo(undo, steps)
        except Exception as problem:
            raise _unfinished(steps, first_line(problem), undo) from error
        if isinstance(error, WriteFailed):
            raise error
        names = ", ".join(dict.fromkeys(step["table"] for step in steps))
        raise InvalidChanges(table=names, reason=first_line(error)) from error

    def _undo(self, undo: Path, steps: Sequence[Step]) -> None:
        """Restore the tables that were written and are not restored yet, then forget it all."""
        for path, before, upto, latest in self._written(steps):
            if latest == upto:
                self._tables.spark.restore(path, before)
                point("transaction.restored")
            elif not _is_nothing(self._tables.changes(path, before, upto + 1)[0]):
                raise ConcurrentWrite(path=path, reason="it was written before it was restored")
        self._forget(undo, steps)

    def _written(self, steps: Sequence[Step]) -> list[tuple[str, int, int, int]]:
        """The tables that have parts of a transaction, with versions: before it, with it, latest."""
        parts = Counter((s["path"], s["before"]) for s in steps if self._is_written(s))
        return [
            (path, before, before + count, self._tables.latest(path))
            for (path, before), count in parts.items()
        ]

    def _is_written(self, step: Step, upto: int | None = None) -> bool:
        """Whether one of the table's commits since the transaction began is this part of it."""
        path = step["path"]
        last = self._number(path) if upto is None else upto
        for number in range(last, step["after"], -1):
            found = self._tables.last_commit(path, APPLICATION, number)
            if found is not None and found[1].metadata == _mark(step):
                return True
        return False

    def _number(self, path: str) -> int:
        return self._tables.number(path, APPLICATION) or 0

    def _write(self, step: Step) -> None:
        """Write one table's part; others may write in between, so more than once.

        The number is read before the commits are looked through, and the write is refused if it is
        no longer the last: so nobody can have written the part between the look and the write.
        """
        for last in attempts():
            number = self._number(step["path"])
            if self._is_written(step, number):
                return
            point("transaction.before_write")
            try:
                self._write_after(step, number)
            except (ConcurrentWrite, StaleCommit):
                if last:
                    raise
            else:
                return

    def _write_after(self, step: Step, number: int) -> None:
        path, key = step["path"], step["key"]
        rows = {kind: pq.read_table(self._folder / file) for kind, file in step["files"].items()}
        commit = Commit(APPLICATION, number + 1, _mark(step))
        if "insert" in rows:
            self._tables.append(path, rows["insert"], commit)
            return
        schema = self._tables.state(path).arrow_schema
        keys = pa.schema([schema.field(column) for column in key])
        updates = rows.get("update", schema.empty_table())
        self._tables.apply(path, key, updates, rows.get("delete", keys.empty_table()), commit)


def _is_nothing(changes: Rows) -> bool:
    """Whether changes cancel each other out."""
    if isinstance(changes, pa.Table):
        return bool(consolidated(changes).num_rows == 0)
    return spark_changes.consolidated(changes).isEmpty()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _identity(fence: int) -> str:
    return f"{fence:012d}"


def _intend(held: Lease, intent: Path, steps: Sequence[Step]) -> None:
    """From now on the transaction happens, unless somebody has taken over meanwhile."""
    held.check()
    point("transaction.checked")
    if not link_whole(intent, json.dumps(steps)):
        raise held.loss()


def _read(intent: Path) -> list[Step]:
    """The steps of an intent. Raises FileNotFoundError when somebody has completed it."""
    try:
        steps = json.loads(intent.read_text(encoding="utf-8"))
        complete = all(
            {"table", "path", "part", "after", "before", "key", "files"} <= {*s} for s in steps
        )
    except (ValueError, TypeError) as problem:
        raise WarehouseCorrupt(file=str(intent), reason=str(problem)) from problem
    if not complete:
        raise WarehouseCorrupt(file=str(intent), reason="it does not hold steps of a transaction")
    return list(steps)


def _mark(step: Step) -> dict[str, object]:
    """What tells the commit of a step from all others of the table."""
    return {
        "transaction": step["transaction"],
        "table": step["table"],
        "part": step["part"],
    }


def _unfinished(steps: Sequence[Step], reason: str, file: Path) -> TransactionUnfinished:
    tables = ", ".join(dict.fromkeys(step["table"] for step in steps))
    ends = "takes it back" if file.name.endswith(_UNDO) else "completes it"
    return TransactionUnfinished(tables=tables, reason=reason, file=str(file), ends=ends)


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
