"""Views that are computed in full: small ones natively, and still what Spark would have made."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.runtime.warehouse import Warehouse
from freshview.storage.choose import Limits as StorageLimits

pytestmark = pytest.mark.spark

NAN = float("nan")
LONG = Decimal("12345678901234567890.1234567891")


def readings() -> pa.Table:
    values = pa.array([1.0, NAN, 2.0], pa.float64())
    exact = pa.array([Decimal(1), LONG, -LONG], pa.decimal128(38, 10))
    return pa.table({"k": [1, 2, 3], "x": values, "d": exact})


def test_rows_that_statistics_would_hide_are_found(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fv.open(tmp_path / "w", spark)
    warehouse.create_table("t", readings())
    warehouse.create_view("v", "SELECT k, x, d FROM t")
    warehouse.create_view("above", "SELECT k FROM v WHERE x > 5")
    warehouse.create_view("long", f"SELECT k FROM v WHERE d >= {LONG}")

    def check(found: set[int], lowest: set[int]) -> None:
        for table in ("t", "v"):
            rows = warehouse.table(table)
            assert {row.k for row in rows.where("x > 5").collect()} == found
            assert {row.k for row in rows.where(f"d >= {LONG}").collect()} == found
            assert {row.k for row in rows.where(f"d <= -{LONG}").collect()} == lowest
        for view in ("v", "above", "long"):
            assert warehouse.check(view).ok
        assert {row.k for row in warehouse.read("above").collect()} == found
        assert {row.k for row in warehouse.read("long").collect()} == found

    check({2}, {3})
    more = readings().set_column(0, "k", pa.array([11, 12, 13]))
    warehouse.apply({"t": fv.TableChanges(insert=more, update=readings(), key=["k"])})
    warehouse.refresh(policy="STRICT")
    check({2, 12}, {3, 13})
    warehouse.apply({"t": fv.TableChanges(delete=[{"k": 2}], key=["k"])})
    warehouse.refresh(policy="STRICT")
    check({12}, {3, 13})


def test_a_recompute_heals_a_view_that_lost_a_file(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fv.open(tmp_path / "w", spark)
    warehouse.create_table(
        "t", pa.table({"k": [1], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    )
    warehouse.create_view("v", "SELECT k, at FROM t")
    path = Path(warehouse.catalog.path(warehouse.catalog.view("v")))
    for file in path.glob("*.parquet"):
        file.unlink()
    again = fv.open(tmp_path / "w", spark)
    assert again.refresh("v", full=True)["v"].served_by == "native"
    assert again.check("v").ok


def test_the_sessions_wishes_for_new_tables_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fv.open(tmp_path / "w", spark)
    warehouse.create_table("t", pa.table({"k": [1]}))
    wish = "spark.databricks.delta.properties.defaults.enableChangeDataFeed"
    spark.conf.set(wish, "true")
    try:
        warehouse.create_view("v", "SELECT k FROM t")
    finally:
        spark.conf.unset(wish)
    state = warehouse.parts.tables.state(warehouse.catalog.path(warehouse.catalog.view("v")))
    assert state.properties["delta.enableChangeDataFeed"] == "true"


def test_what_is_not_small_is_written_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    fv.open(tmp_path / "w", spark)
    few = StorageLimits(write_rows=2, write_bytes=40)
    warehouse = Warehouse(tmp_path / "w", spark, storage_limits=few)
    warehouse.create_table("t", pa.table({"k": [1, 2, 3], "text": ["a", "é" * 11, None]}))
    ways = {
        "few": ("SELECT k FROM t WHERE k < 3", "native"),
        "many": ("SELECT k FROM t", "spark"),
        "wide": ("SELECT text FROM t WHERE k = 2", "spark"),
        "nested": ("SELECT array(k) AS a FROM t WHERE k = 1", "spark"),
    }
    for name, (text, by) in ways.items():
        assert warehouse.create_view(name, text)[name].served_by == by
        assert warehouse.refresh(name, full=True)[name].served_by == by
        assert warehouse.check(name).ok
