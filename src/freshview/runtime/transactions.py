"""Changes to several tables as one transaction, over a format that commits one table at a time.

One commit is a transaction by itself. For more of them the rows are staged first, then an intent file
names every table and its part: from that moment the transaction happens. Each part is then written by
a commit that carries the transaction's identity and the next number of the table. Whoever finds an
intent writes the parts that no commit has, and removes it, before pinning versions; so a refresh never
sees half a transaction, and of two who complete it at once the number lets one through. [B07]
Definition 1.15.

From its intent on a transaction is only ever completed. So what a table would refuse by a rule of its
own, such as a CHECK constraint, is found before: such parts are tried on a shallow clone of the table.
If something else stops it, such as a full disk, the next one who comes goes on with it, and until then
only its own tables stand still.

The identity is the fence of the lease under which the transaction was made, so that a process that
wakes up late touches only what is its own.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from freshview.errors import (
    ConcurrentWrite,
    FreshviewError,
    InvalidChanges,
    StaleCommit,
    TransactionUnfinished,
    WarehouseCorrupt,
    first_line,
)
from freshview.faults import point
from freshview.runtime.file_writes import link_whole, writing
from freshview.runtime.lease import Lease, lease
from freshview.runtime.retries import attempts
from freshview.storage.choose import Tables
from freshview.storage.consolidate import duplicate_count
from freshview.storage.interface import Commit
from freshview.storage.native_rules import RULES

APPLICATION = "freshview:apply"
Step = Mapping[str, Any]
NEVER = "[]"
WAIT_S = 600.0
"""As long as a large transaction may take."""
_INTENT = ".intent.json"


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
        self.unfinished: dict[str, TransactionUnfinished] = {}
        """The tables, by path, of transactions that cannot be completed now; while `whole` is held."""

    def apply(self, changes: Mapping[str, TableChanges]) -> dict[str, int]:
        """Change the tables together; returns the version of each."""
        checked = {name: self._checked(name, change) for name, change in changes.items()}
        with self.whole() as held:
            for name in changes:
                if self._path(name) in self.unfinished:
                    raise self.unfinished[self._path(name)]
            identity, lost = _identity(held.fence), False
            try:
                steps = [
                    step
                    for name, rows in checked.items()
                    for step in self._staged(identity, name, tuple(changes[name].key), rows)
                ]
                point("transaction.staged")
                if len(steps) == 1:
                    self._write_alone(steps[0])
                else:
                    self._try(steps)
                    _intend(held, self._intent(held.fence), steps)
            finally:
                if self._intent(held.fence) not in self._intents():
                    self._unstage(identity)
            if len(steps) > 1:
                lost = self._happen(held, steps)
        if lost:
            # Whoever has the lease now completes the transaction.
            self.recover()
        return {name: self._tables.latest(self._path(name)) for name in changes}

    def _happen(self, held: Lease, steps: Sequence[Step]) -> bool:
        """Complete the transaction that has just been intended; True if the lease is lost."""
        intent = self._intent(held.fence)
        point("transaction.intended")
        try:
            self._complete(intent, steps)
        except Exception as error:
            if held.is_lost() or not intent.exists():
                return True
            raise _unfinished(steps, first_line(error), intent) from error
        return False

    def recover(self, wait_s: float = WAIT_S) -> None:
        """Complete what interrupted processes have begun."""
        if self._intents():
            with self.whole(wait_s):
                pass

    @contextmanager
    def whole(self, wait_s: float = WAIT_S) -> Iterator[Lease]:
        """While this is held, no transaction is half done, except those that are `unfinished`."""
        with lease(self._folder / "lease", wait_s=wait_s) as held:
            for sleeper in held.sleepers():
                link_whole(self._intent(sleeper), NEVER)
                held.forget(sleeper)
            self.unfinished = {}
            for intent in self._intents():
                self._recover(intent)
            yield held

    def _intent(self, fence: int) -> Path:
        """The intent of whoever has the lease with this fence.

        One that says never stands for a holder that was paused: it cannot intend anything later.
        """
        return self._folder / f"{_identity(fence)}{_INTENT}"

    def _intents(self) -> list[Path]:
        """Those that are to be completed."""
        found = sorted(self._folder.glob(f"*{_INTENT}"))
        return [file for file in found if _size(file) != len(NEVER)]

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
        after = self._number(path)
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
                    "key": key,
                    "files": present,
                }

    def _complete(self, intent: Path, steps: Sequence[Step]) -> None:
        """Write what the intent names and is not written yet, then forget the intent."""
        for step in steps:
            self._write(step)
            point("transaction.table_written")
        intent.unlink(missing_ok=True)
        self._unstage(intent.name.split(".")[0])
        point("transaction.complete")

    def _unstage(self, identity: str) -> None:
        for staged in self._folder.glob(f"{identity}.*.parquet"):
            staged.unlink(missing_ok=True)

    def _recover(self, intent: Path) -> None:
        """Complete a transaction that was interrupted, or note that it cannot be."""
        try:
            steps = _read(intent)
        except FileNotFoundError:
            return  # its own process, thought to be dead, has just completed it
        try:
            self._complete(intent, steps)
        except Exception as error:
            if intent.exists():
                problem = _unfinished(steps, first_line(error), intent)
                self.unfinished |= {step["path"]: problem for step in steps}

    def _write_alone(self, step: Step) -> None:
        """A transaction of one commit needs no intent and no trial: refused, it leaves nothing."""
        with _refusals(step["table"]):
            self._write(step)

    def _try(self, steps: Sequence[Step]) -> None:
        """Write the parts of tables that have rules of their own to clones of these first."""
        for path in dict.fromkeys(step["path"] for step in steps):
            if not self._tables.state(path).features & RULES:
                continue
            parts = [step for step in steps if step["path"] == path]
            trial = self._folder / f"{parts[0]['transaction']}.{parts[0]['table']}.trial"
            try:
                with _refusals(parts[0]["table"]):
                    self._tables.spark.clone(path, str(trial))
                    for part in parts:
                        self._write_to(str(trial), part, None)
            finally:
                shutil.rmtree(trial, ignore_errors=True)

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
        self._write_to(step["path"], step, Commit(APPLICATION, number + 1, _mark(step)))

    def _write_to(self, path: str, step: Step, commit: Commit | None) -> None:
        rows = {kind: pq.read_table(self._folder / file) for kind, file in step["files"].items()}
        if "insert" in rows:
            self._tables.append(path, rows["insert"], commit)
            return
        schema = self._tables.state(path).arrow_schema
        keys = pa.schema([schema.field(column) for column in step["key"]])
        updates, deletes = rows.get("update"), rows.get("delete")
        self._tables.apply(
            path,
            step["key"],
            schema.empty_table() if updates is None else updates,
            keys.empty_table() if deletes is None else deletes,
            commit,
        )


@contextmanager
def _refusals(table: str) -> Iterator[None]:
    """What a table refuses in the block as an error in the changes."""
    try:
        yield
    except FreshviewError:
        raise
    except Exception as error:
        raise InvalidChanges(table=table, reason=first_line(error)) from error


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
        complete = all({"table", "path", "part", "after", "key", "files"} <= {*s} for s in steps)
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
    return TransactionUnfinished(tables=tables, reason=reason, file=str(file))


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
