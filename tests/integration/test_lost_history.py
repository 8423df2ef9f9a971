"""Tables that lose their history, go back in it, or are exchanged for others under their views."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import freshview as fv
from freshview.runtime.report import ADVANCED, FULL, INCREMENTAL

pytestmark = pytest.mark.spark


def rows(*keys: int, add: float = 0) -> pa.Table:
    return pa.table({"k": list(keys), "v": [key / 2 + add for key in keys]})


class Table:
    """A base table outside the warehouse, written by others than freshview."""

    def __init__(self, warehouse: fv.Warehouse, name: str) -> None:
        self.spark, self.name = warehouse.spark, name
        self.path = warehouse.root / "outside" / name
        self.sql = f"delta.`{self.path}`"

    def write(self, given: pa.Table, mode: str = "append") -> None:
        write_deltalake(str(self.path), given, mode=mode)  # type: ignore[call-overload]

    def open(self) -> DeltaTable:
        return DeltaTable(str(self.path))

    def run(self, statement: str) -> None:
        self.spark.sql(statement.format(t=self.sql))


def vacuumed(table: Table) -> None:
    table.open().delete("k = 1")
    table.write(rows(7))
    table.open().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def log_cleaned_up(table: Table) -> None:
    for key in (7, 8):
        table.write(rows(key))
    table.open().create_checkpoint()
    for version in (0, 1, 2):
        (table.path / "_delta_log" / f"{version:020}.json").unlink()


def a_gap_in_the_log(table: Table) -> None:
    for key in (7, 8, 9):
        table.write(rows(key))
    table.open().create_checkpoint()
    (table.path / "_delta_log" / f"{2:020}.json").unlink()


def restored(table: Table) -> None:
    table.open().delete("k = 1")
    table.write(rows(7))
    table.open().restore(1)


def overwritten(table: Table) -> None:
    table.write(rows(2, 2, 8), "overwrite")


def replaced(table: Table) -> None:
    table.run("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 5L AS k, 2.5D AS v")


def made_again(table: Table) -> None:
    """With the version numbers that the old table had, which Spark has seen."""
    table.run("SELECT * FROM {t}")
    shutil.rmtree(table.path)
    table.write(rows(5))
    table.write(rows(5, 6))


def optimized(table: Table) -> None:
    table.run("OPTIMIZE {t} ZORDER BY (k)")


REASONS: dict[Callable[[Table], None], tuple[str, str | None]] = {
    vacuumed: (FULL, "HISTORY_LOST"),
    log_cleaned_up: (FULL, "HISTORY_LOST"),
    a_gap_in_the_log: (FULL, "HISTORY_LOST"),
    restored: (ADVANCED, None),
    overwritten: (INCREMENTAL, None),
    replaced: (FULL, "SOURCE_REPLACED"),
    made_again: (FULL, "SOURCE_REPLACED"),
    optimized: (ADVANCED, None),
}


def test_views_are_right_whatever_became_of_their_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = fv.open(tmp_path / "w", spark)
    tables = {change: Table(warehouse, change.__name__) for change in REASONS}
    for table in tables.values():
        table.write(rows(1, 2))
        table.write(rows(1, 3))
        warehouse.register(table.name, table.path)
        query = f"SELECT k, v, count(*) AS n FROM {table.name} WHERE v > 0 GROUP BY k, v"
        warehouse.create_view(f"of_{table.name}", query, policy="INCREMENTAL")
    for change, table in tables.items():
        change(table)
    report = warehouse.refresh()
    found = {
        change: (report[f"of_{table.name}"].mode, report[f"of_{table.name}"].reason)
        for change, table in tables.items()
    }
    assert found == REASONS
    for table in tables.values():
        assert warehouse.check(f"of_{table.name}").ok, table.name


def test_rows_that_the_bounds_of_others_hide_are_found(spark: SparkSession, tmp_path: Path) -> None:
    """Arrow's writers leave NaN out of the greatest value, and Spark would pass over the file."""
    warehouse = fv.open(tmp_path / "w", spark)
    table = Table(warehouse, "t")
    some = pa.table(
        {
            "k": [1, 2, 3],
            "v": [1.0, float("nan"), 2.0],
            "f": pa.array([float("nan"), 1, 2], pa.float32()),
        }
    )
    table.write(some)
    warehouse.register("t", table.path)
    views = {"big": "SELECT k, v FROM t WHERE v > 5", "low": "SELECT k FROM t WHERE f >= 7.5"}
    for name, query in views.items():
        warehouse.create_view(name, query, policy="STRICT")
    table.write(some.set_column(0, "k", pa.array([4, 5, 6])))
    assert {view.mode for view in warehouse.refresh().views} == {INCREMENTAL}

    def found() -> list[set[int]]:
        return [{row.k for row in warehouse.read(name).collect()} for name in views]

    assert found() == [{2, 5}, {1, 4}]
    assert all(warehouse.check(name).ok for name in views)
    warehouse.refresh(full=True)
    assert found() == [{2, 5}, {1, 4}]


def test_a_shallow_clone_is_a_table_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fv.open(tmp_path / "w", spark)
    origin, clone = Table(warehouse, "origin"), Table(warehouse, "clone")
    origin.write(rows(1, 2, 3))
    clone.run(f"CREATE TABLE {{t}} SHALLOW CLONE {origin.sql}")
    warehouse.register("clone", clone.path)
    query = "SELECT k, sum(k) AS s, count(*) AS n FROM clone GROUP BY k"
    warehouse.create_view("v", query, policy="STRICT")
    changes = fv.TableChanges(insert=rows(9), update=rows(1, add=1), delete=[{"k": 2}], key=["k"])
    warehouse.apply({"clone": changes})
    clone.run("INSERT INTO {t} VALUES (3, 0.0)")
    origin.write(rows(77))
    assert warehouse.refresh()["v"].mode == INCREMENTAL
    found = {tuple(row) for row in warehouse.read("v").collect()}
    assert found == {(1, 1, 1), (3, 6, 2), (9, 9, 1)}
    assert warehouse.check("v").ok
