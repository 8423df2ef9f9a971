"""The processes of a soak: ``python -m soak.actors ROLE FOLDER SEED [PLACE]``.

Each works until the file ``stop`` is in the folder, and kills itself at a place (`dying.py`). What
it did goes, line by line, to ``ROLE.jsonl`` there.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from freshview import faults
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from soak.attached import attached_session
from soak.bank import ENTRIES, HALVES, OWNERS, TOTAL, VISITS
from soak.dying import stopping_at

Note = Callable[..., None]


def transfer(warehouse: Warehouse, dice: random.Random, note: Note) -> Iterator[None]:
    """Moves money by freshview's transactions, and undoes some of its own moves later."""
    mine: list[str] = []
    while True:
        identity = f"{dice.getrandbits(64):016x}"
        amount = Decimal(dice.randint(1, 9999)) / 100
        owner, sign = dice.choice(OWNERS), dice.choice((1, -1))
        changes = {
            name: TableChanges(
                insert=pa.Table.from_pylist(
                    [{"id": identity, "owner": owner, "amount": amount * way}], ENTRIES
                )
            )
            for name, way in (("checking", sign), ("savings", -sign))
        }
        note(begun=identity)
        warehouse.apply(changes)
        note(done=identity)
        mine.append(identity)
        if len(mine) > 5:
            gone = mine.pop(dice.randrange(len(mine)))
            note(undoing=gone)
            undo = TableChanges(delete=[{"id": gone}], key=["id"])
            warehouse.apply(dict.fromkeys(("checking", "savings"), undo))
            note(undone=gone)
        time.sleep(dice.uniform(0, 0.4))
        yield


def visit(warehouse: Warehouse, dice: random.Random, note: Note) -> Iterator[None]:
    """Writes visits with another library and without freshview."""
    path = str(warehouse.root / "tables" / "visits")
    while True:
        rows = [
            {"id": dice.getrandbits(40), "owner": dice.choice(OWNERS), "kind": dice.choice("abc")}
            for _ in range(dice.randint(1, 4))
        ]
        table = pa.Table.from_pylist(rows, VISITS)
        try:
            if dice.random() < 0.7:
                write_deltalake(path, table, mode="append", schema_mode="merge")
            elif dice.random() < 0.5:
                DeltaTable(path).delete(f"id % {dice.randint(2, 9)} = 0 AND kind = 'a'")
            else:
                DeltaTable(path).update(
                    predicate=f"id % {dice.randint(2, 9)} = 1", updates={"kind": "'b'"}
                )
        except CommitFailedError:
            continue
        note(written=len(rows))
        time.sleep(dice.uniform(0, 0.5))
        yield


def reshape(warehouse: Warehouse, dice: random.Random, note: Note) -> Iterator[None]:
    """Writes by Spark's SQL: moves money within a table, optimizes, and changes the schemas."""
    spark: SparkSession = warehouse.spark
    tables = {n: f"delta.`{warehouse.root}/tables/{n}`" for n in ("checking", "savings", "visits")}
    while True:
        table, number = tables[dice.choice(("checking", "savings"))], dice.getrandbits(30)
        one, two = (f"'start {owner}'" for owner in dice.sample(OWNERS, 2))
        statement = dice.choices(
            [
                f"""UPDATE {table} SET amount = amount + CASE id WHEN {one} THEN 5 ELSE -5 END
                    WHERE id IN ({one}, {two})""",
                f"OPTIMIZE {tables[dice.choice(list(tables))]}",
                f"OPTIMIZE {tables['visits']} ZORDER BY (owner)",
                f"ALTER TABLE {tables[dice.choice(list(tables))]} ADD COLUMN (extra{number} INT)",
                f"ALTER TABLE {tables['visits']} ALTER COLUMN {dice.choice(VISITS.names)} FIRST",
                f"ALTER TABLE {table} ALTER COLUMN amount COMMENT 'in euros, {number}'",
                f"UPDATE {tables['visits']} SET kind = 'none' WHERE id % 5 = {number % 5}",
                f"DELETE FROM {tables['visits']} WHERE id % 3 = {number % 3} AND kind = 'none'",
            ],
            [6, 2, 1, 2, 1, 1, 3, 3],
        )[0]
        try:
            spark.sql(statement).collect()
        except PySparkException as error:
            if "concurrent" not in str(error).lower():
                raise
            continue
        note(ran=statement.split()[0])
        time.sleep(dice.uniform(0, 1.0))
        yield


def refresh(warehouse: Warehouse, dice: random.Random, note: Note) -> Iterator[None]:
    """Refreshes everything, now and then one view."""
    while True:
        names = () if dice.random() < 0.8 else (dice.choice(["wealth", "by_kind", "bank"]),)
        report = warehouse.refresh(*names)
        modes = [view.mode for view in report.views]
        note(modes=modes, reasons=[view.reason for view in report.views if view.reason])
        time.sleep(dice.uniform(0, 0.3))
        yield


def read(warehouse: Warehouse, dice: random.Random, note: Note) -> Iterator[None]:
    """Adds up the money in two views of one epoch."""
    while True:
        epoch = warehouse.epoch(*HALVES)
        sums = [
            warehouse.read(name, epoch=epoch).selectExpr("sum(total)").collect()[0][0]
            for name in dice.sample(HALVES, 2)
        ]
        note(epoch=epoch, total=str(sum(sums)), right=sum(sums) == TOTAL)
        time.sleep(dice.uniform(0, 0.3))
        yield


ROLES = {
    "transfer": transfer,
    "visit": visit,
    "reshape": reshape,
    "refresh": refresh,
    "read": read,
}
WITHOUT_SPARK = frozenset({"transfer", "visit"})


def noting(file: Path, note: Mapping[str, object]) -> None:
    """One whole line at once, so that a kill leaves no half of it."""
    line = json.dumps({"time": time.time(), "pid": os.getpid(), **note}) + "\n"
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def main() -> None:
    role, place, seed, *fate = sys.argv[1:]
    folder = Path(place)
    spark = None if role.split("-")[0] in WITHOUT_SPARK else attached_session()
    warehouse = open_warehouse(folder / "warehouse", spark, create=False)
    if fate:
        faults.install(stopping_at(fate[0]))
    file = folder / f"{role}.jsonl"
    work = ROLES[role.split("-")[0]](
        warehouse, random.Random(f"{role} {seed}"), lambda **note: noting(file, note)
    )
    for _ in work:
        if (folder / "stop").exists():
            return


if __name__ == "__main__":
    main()
