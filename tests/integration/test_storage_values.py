"""Values and writers that a storage library gets wrong, from writer to view."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

import freshview as fv
from freshview.runtime.refresh import Refresher
from freshview.runtime.report import ADVANCED, FULL, INCREMENTAL, UNCHANGED
from freshview.runtime.warehouse import Warehouse
from freshview.storage.choose import Limits

pytestmark = pytest.mark.spark

VECTORS = "'delta.enableChangeDataFeed'='true', 'delta.enableDeletionVectors'='true'"
INT96 = "spark.sql.parquet.outputTimestampType"


def values(warehouse: fv.Warehouse, view: str) -> set[tuple[object, ...]]:
    return {tuple(row) for row in warehouse.read(view).collect()}


def test_timestamps_before_1677_survive_their_neighbours(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A native merge would copy such INT96 values wrongly out of the file that it rewrites."""
    warehouse = fv.open(tmp_path / "w", spark)
    before = spark.conf.get(INT96)
    spark.conf.set(INT96, "INT96")
    try:
        spark.sql(
            "SELECT id AS k, timestamp'0001-01-01 00:00:00Z' + make_dt_interval(0, int(id)) AS at "
            "FROM range(0, 4, 1, 1)"
        ).write.format("delta").save(str(tmp_path / "t"))
    finally:
        spark.conf.set(INT96, str(before))
    warehouse.register("t", tmp_path / "t")
    query = "SELECT at, count(*) AS n, sum(k) AS s FROM t GROUP BY at"
    warehouse.create_view("v", query, policy="STRICT")
    changed = pa.table({"k": [3], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    warehouse.apply({"t": fv.TableChanges(update=changed, delete=[{"k": 1}], key=["k"])})
    assert warehouse.refresh()["v"].mode == INCREMENTAL
    years = warehouse.read("v").selectExpr("year(at)", "hour(at)", "s").collect()
    assert {tuple(row) for row in years} == {(1, 0, 0), (1, 2, 2), (1970, 0, 3)}
    assert warehouse.check("v").ok


def test_rows_deleted_before_the_rest_are_deleted_once(spark: SparkSession, tmp_path: Path) -> None:
    """The native change feed gives the three rows of the deletion vector instead of the others."""
    warehouse, t = fv.open(tmp_path / "w", spark), f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {t} (k bigint) USING delta TBLPROPERTIES ({VECTORS})")
    spark.sql(f"INSERT INTO {t} SELECT /*+ coalesce(1) */ id FROM range(10)")
    warehouse.register("t", tmp_path / "t")
    warehouse.create_view("v", "SELECT sum(k) AS s, count(*) AS n FROM t", policy="STRICT")
    spark.sql(f"DELETE FROM {t} WHERE k < 3")
    warehouse.refresh()
    assert values(warehouse, "v") == {(42, 7)}
    spark.sql(f"DELETE FROM {t} WHERE k >= 0")
    report = warehouse.refresh()["v"]
    assert (report.mode, report.rows_in) == (INCREMENTAL, 7)
    assert values(warehouse, "v") == {(None, 0)}
    assert warehouse.check("v").ok


def test_a_number_is_not_applied_twice(spark: SparkSession, tmp_path: Path) -> None:
    """The native library would commit the same transaction number again, and add rows twice."""
    warehouse = fv.open(tmp_path, spark)
    warehouse.create_table("t", pa.table({"k": [1, 1]}))
    warehouse.create_view("v", "SELECT k, count(*) AS n FROM t GROUP BY k", policy="STRICT")
    entry = warehouse.catalog.view("v")
    stale = warehouse._refresher.consumed(entry)
    warehouse.apply({"t": fv.TableChanges(insert=[{"k": 1}])})
    warehouse.refresh()
    consumed, answers = Refresher.consumed, [stale] * 3

    def outdated(refresher: Refresher, view: object) -> object:
        return answers.pop() if answers else consumed(refresher, entry)

    late = fv.open(tmp_path, spark)
    with patch.object(Refresher, "consumed", outdated):
        assert late.refresh()["v"].mode == UNCHANGED
    assert not answers
    assert values(late, "v") == {(1, 3)}
    assert late.parts.tables.number(late.catalog.path(entry), entry.application) == 2


def test_a_change_without_effect_is_consumed(spark: SparkSession, tmp_path: Path) -> None:
    """A native merge that changes nothing makes no commit, and the change would stay pending."""
    warehouse = fv.open(tmp_path, spark)
    warehouse.create_table("t", pa.table({"g": [1, 1], "v": [10, 20], "w": [0, 0]}))
    warehouse.create_view("v", "SELECT g, sum(v) AS s FROM t GROUP BY g", policy="STRICT")
    moved = pa.table({"g": [1, 1], "v": [15, 15], "w": [1, 2]})
    warehouse.apply({"t": fv.TableChanges(insert=moved, delete=[{"w": 0}], key=["w"])})
    assert warehouse.refresh()["v"].mode == INCREMENTAL
    assert warehouse.refresh()["v"].mode == UNCHANGED
    DeltaTable(str(tmp_path / "tables" / "t")).delete("g = 77")
    write_deltalake(str(tmp_path / "tables" / "t"), moved.slice(0, 0), mode="append")
    assert warehouse.refresh()["v"].mode == ADVANCED
    assert warehouse.refresh()["v"].mode == UNCHANGED
    assert values(warehouse, "v") == {(1, 30)}


@pytest.mark.parametrize("keys", [100_000, 100_001])
def test_a_hundred_thousand_keys_in_one_lookup(
    keys: int, spark: SparkSession, tmp_path: Path
) -> None:
    """As a list of values they would end the process; one more goes to Spark."""
    warehouse = fv.open(tmp_path, spark)
    spread = pc.multiply(pa.array(range(keys)), 7)
    warehouse.create_table("dims", pa.table({"k": spread, "g": pc.bit_wise_and(spread, 3)}))
    warehouse.create_table("facts", pa.schema([("k", pa.int64())]))
    query = "SELECT g, count(*) AS n, sum(k) AS s FROM facts JOIN dims USING (k) GROUP BY g"
    warehouse.create_view("v", query, policy="STRICT")
    warehouse.apply({"facts": fv.TableChanges(insert=pa.table({"k": spread}))})
    report = warehouse.refresh()["v"]
    assert (report.mode, report.rows_in) == (INCREMENTAL, keys)
    assert sum(row.n for row in warehouse.read("v").collect()) == keys
    assert warehouse.check("v").ok


@pytest.mark.parametrize(
    ("kind", "most"),
    [(pa.int64(), 2**63 - 1), (pa.decimal128(38, 0), Decimal("9" * 38))],
    ids=["bigint", "decimal"],
)
def test_a_sum_that_overflows_is_an_error(
    kind: pa.DataType, most: object, spark: SparkSession, tmp_path: Path
) -> None:
    """The native library's own addition would wrap, or store a digit too many."""

    def rows(key: int, value: object) -> pa.Table:
        return pa.table({"k": [key], "v": pa.array([value], kind)})

    warehouse = fv.open(tmp_path, spark)
    warehouse.create_table("t", rows(1, most))
    warehouse.create_view("v", "SELECT sum(v) AS s, count(*) AS n FROM t")
    warehouse.apply({"t": fv.TableChanges(insert=rows(2, 1))})
    with pytest.raises(ArithmeticException, match=r"overflow|OUT_OF_RANGE"):
        warehouse.refresh(policy="INCREMENTAL")
    assert values(warehouse, "v") == {(most, 1)}
    warehouse.apply({"t": fv.TableChanges(delete=[{"k": 1}], insert=rows(3, 2), key=["k"])})
    assert warehouse.refresh(policy="INCREMENTAL")["v"].mode in (INCREMENTAL, FULL)
    assert values(warehouse, "v") == {(3, 2)}
    assert warehouse.check("v").ok


@pytest.mark.parametrize(
    ("kind", "most", "technique"),
    [
        (pa.int64(), 2**63 - 1, "change table"),  # and around, as Spark does
        (pa.decimal128(38, 0), Decimal("9" * 38), "group recompute"),
        (pa.decimal128(28, 0), Decimal("9" * 28), "change table"),
    ],
    ids=["bigint", "decimal 38", "decimal 28"],
)
def test_a_sum_that_overflows_without_ansi(
    kind: pa.DataType, most: object, technique: str, spark: SparkSession, tmp_path: Path
) -> None:
    """A sum of decimals is NULL then, and nothing tells what is left of it afterwards."""

    def rows(key: int, value: object) -> pa.Table:
        return pa.table({"k": [key], "v": pa.array([value], kind)})

    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        warehouse = fv.open(tmp_path, spark)
        warehouse.create_table("t", rows(1, most))
        query = "SELECT sum(v) AS s, count(v) FILTER (WHERE k > 1) AS n FROM t"
        warehouse.create_view("v", query, policy="INCREMENTAL")
        warehouse.create_view("a", "SELECT avg(CAST(v AS DECIMAL(38))) AS a FROM t")
        for change in (
            fv.TableChanges(insert=rows(2, 1)),
            fv.TableChanges(delete=[{"k": 1}], key=["k"]),
            fv.TableChanges(insert=rows(3, most)),
        ):
            warehouse.apply({"t": change})
            report = warehouse.refresh()["v"]
            assert (report.mode, report.technique) == (INCREMENTAL, technique)
            assert warehouse.check("v").ok
            assert warehouse.check("a").ok
        assert (values(warehouse, "v") == {(None, 2)}) == (technique == "group recompute")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("limits", [Limits(), Limits(write_rows=0)], ids=["native", "spark"])
def test_null_keys_in_several_columns(limits: Limits, spark: SparkSession, tmp_path: Path) -> None:
    """Unparenthesised, the native comparison of two such keys is read as something else."""
    fv.open(tmp_path, spark)
    warehouse = Warehouse(tmp_path, spark, storage_limits=limits)
    pairs = pa.table({"a": [1, None, None, 1], "b": ["x", "x", None, None], "v": [1, 2, 3, 4]})
    warehouse.create_table("t", pairs)
    query = "SELECT a, b, sum(v) AS s FROM t GROUP BY a, b"
    warehouse.create_view("v", query, policy="STRICT")
    warehouse.apply({"t": fv.TableChanges(insert=pairs, delete=[{"v": 4}], key=["v"])})
    assert warehouse.refresh()["v"].mode == INCREMENTAL
    assert values(warehouse, "v") == {(1, "x", 2), (None, "x", 4), (None, None, 6), (1, None, 4)}
    warehouse.apply({"t": fv.TableChanges(delete=[{"v": 3}, {"v": 4}], key=["v"])})
    assert warehouse.refresh()["v"].mode == INCREMENTAL
    assert values(warehouse, "v") == {(1, "x", 2), (None, "x", 4)}


def test_spark_applies_beside_quick_native_commits(spark: SparkSession, tmp_path: Path) -> None:
    """Others append to the base table and compact the view while Spark merges into it."""
    fv.open(tmp_path, spark)
    warehouse = Warehouse(tmp_path, spark, storage_limits=Limits(write_rows=0))
    warehouse.create_table("t", pa.table({"k": list(range(5))}))
    query = "SELECT k % 5 AS g, count(*) AS n, sum(k) AS s FROM t GROUP BY 1"
    warehouse.create_view("v", query, policy="STRICT")
    path = warehouse.catalog.path(warehouse.catalog.view("v"))
    table, stop, commits = str(tmp_path / "tables" / "t"), threading.Event(), []

    def others() -> None:
        while not stop.is_set() and len(commits) < 200:
            write_deltalake(table, pa.table({"k": [len(commits)]}), mode="append")
            DeltaTable(path).optimize.compact()
            commits.append(None)

    busy = threading.Thread(target=others)
    busy.start()
    try:
        modes = {warehouse.refresh()["v"].mode for _ in range(3)}
    finally:
        stop.set()
        busy.join()
    assert INCREMENTAL in modes
    warehouse.refresh()
    total = warehouse.read("v").selectExpr("sum(n)").collect()[0][0]
    assert total == 5 + len(commits)
    assert warehouse.check("v").ok
