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

Its files begin with the fence of the lease under which it was made, so that a process that wakes up
late touches only what is its own; its identity in commits is random, since tables may be shared with
other warehouses.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from freshview.errors import (
    ConcurrentWrite,
    InvalidChanges,
    SchemaMismatch,
    StaleCommit,
    TransactionUnfinished,
    UnknownName,
    WarehouseCorrupt,
    first_line,
)
from freshview.faults import point
from freshview.runtime.file_writes import link_whole, writing, written_through
from freshview.runtime.lease import Lease, lease
from freshview.runtime.retries import attempts
from freshview.runtime.table_changes import Checked, TableChanges, checked, refusals
from freshview.storage.choose import Tables, serves
from freshview.storage.interface import Commit
from freshview.storage.native_rules import Operation

APPLICATION = "freshview:apply"
Step = Mapping[str, Any]
NEVER = "[]"
WAIT_S = 600.0
"""As long as a large transaction may take."""
_INTENT = ".intent.json"


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
        if not changes:
            return {}
        fitting = {
            name: checked(name, change, self._schema(name)) for name, change in changes.items()
        }
        with self.whole() as held:
            self._check_finished(changes)
            staged, lost = _numbered(held.fence), False
            try:
                steps = self._steps(staged, fitting)
                point("transaction.staged")
                if len(steps) == 1:
                    self._write_alone(held, steps[0])
                else:
                    self._try(steps)
                    _intend(held, self._intent(held.fence), steps)
            finally:
                if self._intent(held.fence) not in self._intents():
                    self._unstage(staged)
            if len(steps) > 1:
                lost = self._happen(held, steps)
        if lost:
            # Whoever has the lease now completes the transaction.
            with self.whole():
                self._check_finished(changes)
        return {name: self._tables.latest(self._path(name)) for name in changes}

    def _check_finished(self, names: Iterable[str]) -> None:
        for name in names:
            if self._path(name) in self.unfinished:
                raise self.unfinished[self._path(name)]

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
        return self._folder / f"{_numbered(fence)}{_INTENT}"

    def _intents(self) -> list[Path]:
        """Those that are to be completed."""
        found = sorted(self._folder.glob(f"*{_INTENT}"))
        return [file for file in found if _size(file) != len(NEVER)]

    def _steps(self, staged: str, fitting: Mapping[str, Checked]) -> list[Step]:
        """The commits of a transaction, their rows on disk: those by key first, then insertions."""
        identity = uuid.uuid4().hex
        steps: list[Step] = []
        for name, change in fitting.items():
            files = {kind: f"{staged}.{name}.{kind}.parquet" for kind in change.rows}
            for kind, rows in change.rows.items():
                file = self._folder / files[kind]
                with refusals(name), writing(file), written_through(file) as out:
                    pq.write_table(rows, out)
            path = self._path(name)
            after = self._number(path)
            for part, kinds in (("by key", ("update", "delete")), ("insert", ("insert",))):
                present = {kind: files[kind] for kind in kinds if kind in change.rows}
                if present:
                    steps.append(
                        {
                            "transaction": identity,
                            "table": name,
                            "part": part,
                            "path": path,
                            "after": after,
                            "key": change.key,
                            "files": present,
                        }
                    )
        return [{**step, "of": len(steps)} for step in steps]

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
            self._complete(intent, [{**step, "path": self._path(step["table"])} for step in steps])
        except Exception as error:
            if intent.exists():
                problem = _unfinished(steps, first_line(error), intent)
                for step in steps:
                    with suppress(UnknownName):
                        self.unfinished[self._path(step["table"])] = problem

    def _write_alone(self, held: Lease, step: Step) -> None:
        """A transaction of one commit needs no intent and no trial: refused, it leaves nothing.

        The lease is asked after the number is read, so one that slept finds the number taken.
        """
        with refusals(step["table"]):
            self._write(step, held.check)

    def _try(self, steps: Sequence[Step]) -> None:
        """Write the parts of tables that Spark has to write to clones of these first.

        Those are the tables with rules of their own, which may refuse rows that fit the columns.
        """
        for path in dict.fromkeys(step["path"] for step in steps):
            if serves(self._tables.state(path), Operation.WRITE) is None:
                continue
            parts = [step for step in steps if step["path"] == path]
            trial = self._folder / f"{parts[0]['transaction']}.{parts[0]['table']}.trial"
            try:
                with refusals(parts[0]["table"]):
                    self._tables.spark.clone(path, str(trial))
                    for part in parts:
                        self._write_to(str(trial), part, None)
            except SchemaMismatch as error:
                raise InvalidChanges(table=parts[0]["table"], reason=error.why) from error
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

    def _schema(self, name: str) -> pa.Schema:
        return self._tables.state(self._path(name)).arrow_schema

    def _number(self, path: str) -> int:
        return self._tables.number(path, APPLICATION) or 0

    def _write(self, step: Step, check: Callable[[], None] = lambda: None) -> None:
        """Write one table's part; others may write in between, so more than once.

        The number is read before the commits are looked through, and the write is refused if it is
        no longer the last: so nobody can have written the part between the look and the write. A
        write that fails once its commit is there, at a checkpoint for instance, is a write.
        """
        for last in attempts():
            number = self._number(step["path"])
            if self._is_written(step, number):
                return
            check()
            point("transaction.before_write")
            try:
                self._write_after(step, number)
            except Exception as error:
                if self._is_written(step):
                    return
                if last or not isinstance(error, ConcurrentWrite | StaleCommit):
                    raise
            else:
                return

    def _write_after(self, step: Step, number: int) -> None:
        self._write_to(step["path"], step, Commit(APPLICATION, number + 1, _mark(step)))

    def _write_to(self, path: str, step: Step, commit: Commit | None) -> None:
        schema = self._tables.state(path).arrow_schema
        try:
            self._write_rows(path, schema, step, commit)
        except SchemaMismatch as error:
            if self._tables.state(path).arrow_schema == schema:
                raise
            raise ConcurrentWrite(path=path, reason="its columns have changed") from error

    def _write_rows(self, path: str, schema: pa.Schema, step: Step, commit: Commit | None) -> None:
        rows = {}
        for kind, file in step["files"].items():
            held = pq.read_table(self._folder / file)
            rows[kind] = held if kind == "delete" else _widened(held, schema)
        if "insert" in rows:
            self._tables.append(path, rows["insert"], commit)
            return
        keys = pa.schema([schema.field(column) for column in step["key"]])
        updates, deletes = rows.get("update"), rows.get("delete")
        self._tables.apply(
            path,
            step["key"],
            schema.empty_table() if updates is None else updates,
            keys.empty_table() if deletes is None else deletes,
            commit,
        )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _numbered(fence: int) -> str:
    """How the files of a transaction begin."""
    return f"{fence:012d}"


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Staged rows with the columns that the table has got since, which are NULL in them."""
    if set(rows.column_names) - set(schema.names):
        return rows  # a column is gone, and the table is to say so
    for field in schema:
        if field.name not in rows.column_names and field.nullable:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select([name for name in schema.names if name in rows.column_names])


def _intend(held: Lease, intent: Path, steps: Sequence[Step]) -> None:
    """From now on the transaction happens, unless somebody has taken over meanwhile."""
    held.check()
    point("transaction.checked")
    # Without paths: a warehouse that was moved or copied must complete it in its own tables.
    lasting = [{name: step[name] for name in step if name != "path"} for step in steps]
    if not link_whole(intent, json.dumps(lasting)):
        raise held.loss()


def _read(intent: Path) -> list[Step]:
    """The steps of an intent. Raises FileNotFoundError when somebody has completed it."""
    try:
        steps = json.loads(intent.read_text(encoding="utf-8"))
        needed = {"transaction", "table", "part", "of", "after", "key", "files"}
        complete = all(needed <= {*step} for step in steps)
    except (ValueError, TypeError) as problem:
        raise WarehouseCorrupt(file=str(intent), reason=str(problem)) from problem
    if not complete:
        raise WarehouseCorrupt(file=str(intent), reason="it does not hold steps of a transaction")
    return list(steps)


def _mark(step: Step) -> dict[str, object]:
    """What tells the commit of a step from all others of the table."""
    return {name: step[name] for name in ("transaction", "table", "part", "of")}


def _unfinished(steps: Sequence[Step], reason: str, file: Path) -> TransactionUnfinished:
    tables = ", ".join(dict.fromkeys(step["table"] for step in steps))
    return TransactionUnfinished(tables=tables, reason=reason, file=str(file))
