"""Views that are looked up by keys of types whose equality is not that of their bits, or nested."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from freshview.planner.plan import Limits
from freshview.runtime.report import INCREMENTAL
from freshview.runtime.warehouse import Warehouse, open_warehouse

pytestmark = pytest.mark.spark

FLOAT = "if(id % 3 = 0, double('NaN'), if(id % 3 = 1, -0.0D, 0.0D))"
KEYS = {
    "number": ("double", FLOAT),
    "numbers": ("array<double>", f"array({FLOAT}, null)"),
    "pair": ("struct<x:bigint, y:string>", "named_struct('x', id % 3, 'y', null)"),
}


def insert(spark: SparkSession, table: str, start: int, end: int) -> None:
    values = ", ".join(f"if(id % 7 = 6, null, {value})" for _, value in KEYS.values())
    spark.sql(f"INSERT INTO {table} SELECT id, {values} FROM range({start}, {end})")


def test_groups_and_joins_of_any_type_are_found_by_key(spark: SparkSession, tmp_path: Path) -> None:
    root = open_warehouse(tmp_path, spark).root
    warehouse = Warehouse(root, spark, Limits(whole_view_rows=0))
    table = f"delta.`{tmp_path / 'outside'}`"
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in KEYS.items())
    spark.sql(f"CREATE TABLE {table} (id bigint, {columns}) USING delta")
    insert(spark, table, 0, 20)
    warehouse.register("t", tmp_path / "outside")
    for name in KEYS:
        grouped = f"SELECT {name}, count(*) AS n, sum(id) AS total FROM t GROUP BY {name}"
        warehouse.create_view(f"by_{name}", grouped, policy="STRICT")
    joined = "SELECT a.id AS a, b.id AS b, a.pair FROM t a JOIN t b ON a.pair = b.pair"
    warehouse.create_view("pairs", joined, policy="STRICT")
    for change in (
        f"DELETE FROM {table} WHERE id % 4 = 1",
        f"UPDATE {table} SET id = id + 100 WHERE id < 8",
    ):
        spark.sql(change)
        assert {view.mode for view in warehouse.refresh().views} == {INCREMENTAL}
        for view in warehouse.catalog.views():
            assert warehouse.check(view.name).ok, view.name
