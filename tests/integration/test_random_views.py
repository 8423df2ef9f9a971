"""Random views under random batches on Spark and Delta: the view is its recompute, both ways.

Two warehouses read the same tables. In one small things go through the native library, in the other
everything goes through Spark; their views must agree with each other and with the definition.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from freshview.planner.plan import Limits
from freshview.runtime.catalog import Policy
from freshview.runtime.report import FULL, INCREMENTAL
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import Limits as StorageLimits
from freshview.storage.native import NativeStorage
from tests.integration.random_views import (
    FALLBACKS,
    KEYS,
    SCHEMAS,
    THROUGH_SPARK,
    random_row,
    random_rows,
    random_view,
)

pytestmark = pytest.mark.spark

VIEWS = 7
BATCHES = 3
NOTHING_LOCAL = Limits(delta_rows=0, lookup_rows=0, whole_view_rows=0)
NOTHING_NATIVE = StorageLimits(
    changes_rows=0,
    changes_bytes=0,
    lookup_keys=0,
    lookup_rows=0,
    read_rows=0,
    write_rows=0,
    merge_table_bytes=0,
)


def start(root: Path, spark: SparkSession, dice: random.Random) -> tuple[Warehouse, Warehouse]:
    native = open_warehouse(root / "native", spark)
    for name in SCHEMAS:
        native.create_table(name, random_rows(name, dice, 12))
    folder = open_warehouse(root / "spark", spark).root
    by_spark = Warehouse(folder, spark, NOTHING_LOCAL, NOTHING_NATIVE)
    for name in SCHEMAS:
        by_spark.register(name, native.root / "tables" / name)
    return native, by_spark


def change(warehouse: Warehouse, dice: random.Random) -> None:
    """Inserts, deletes and updates of some tables, by several kinds of writers."""
    for name in dice.sample(sorted(SCHEMAS), dice.randrange(1, 4)):
        path = str(warehouse.root / "tables" / name)
        if dice.random() < 0.4:
            condition = dice.choice(
                {"r": ["id < 5", "k IS NULL"], "s": ["h = 1"], "t": ["h = 2"]}[name]
            )
            warehouse.spark.sql(f"DELETE FROM delta.`{path}` WHERE {condition}")
        if dice.random() < 0.4:
            value = {"r": "v = v + 1, k = k - 1", "s": "w = -w", "t": "name = 'x'"}[name]
            warehouse.spark.sql(f"UPDATE delta.`{path}` SET {value} WHERE h IS NOT NULL" if name != "r"
                                else f"UPDATE delta.`{path}` SET {value} WHERE id > 20")  # fmt: skip
        inserted = random_rows(name, dice, dice.randrange(0, 6))
        updated = random_row(name, dice)
        parts = {"insert": inserted} if inserted.num_rows else {}
        if dice.random() < 0.5:
            parts["delete"] = [{key: random_row(name, dice)[key] for key in KEYS[name]}]
        elif not parts or dice.random() < 0.5:
            parts["update"] = [updated]
        warehouse.apply({name: TableChanges(**parts, key=KEYS[name])})


def contents(warehouse: Warehouse, view: str) -> list[str]:
    """The stored rows, hidden columns included."""
    path = warehouse.catalog.path(warehouse.catalog.view(view))
    storage = NativeStorage()
    return sorted(map(repr, storage.read(path, storage.latest(path)).to_pylist()))


def verify(native: Warehouse, by_spark: Warehouse, names: list[str]) -> None:
    for name in names:
        result = native.check(name)
        assert result.ok, (native.catalog.view(name).sql, result)
        assert contents(native, name) == contents(by_spark, name), native.catalog.view(name).sql


@pytest.mark.parametrize("seed", [2])
def test_random_views_stay_equal_to_their_recompute(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    native, by_spark = start(tmp_path, spark, dice)
    names = [f"v{i}" for i in range(VIEWS)]
    for name in names:
        text = random_view(dice)
        for warehouse in (native, by_spark):
            warehouse.create_view(name, text, policy=Policy.STRICT)
    native.create_view("above", "SELECT count(*) AS n FROM v0", policy=Policy.STRICT)
    by_spark.create_view("above", "SELECT count(*) AS n FROM v0", policy=Policy.STRICT)
    names.append("above")
    for _ in range(BATCHES):
        change(native, dice)
        for warehouse, by in ((native, "native"), (by_spark, "spark")):
            reports = warehouse.refresh().views
            assert FULL not in {report.mode for report in reports}
            assert {r.served_by for r in reports if r.mode == INCREMENTAL and r.rows_out} <= {by}
        verify(native, by_spark, names)
    for table in SCHEMAS:
        native.spark.sql(f"DELETE FROM delta.`{native.root / 'tables' / table}`")
    native.refresh()
    by_spark.refresh()
    verify(native, by_spark, names)


def test_other_operators_through_spark_in_all_their_parts(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without the native library; with it every operator is in test_every_pair.py."""
    dice = random.Random(3)
    native, by_spark = start(tmp_path, spark, dice)
    for place, text in enumerate(THROUGH_SPARK):
        by_spark.create_view(f"v{place}", text, policy=Policy.STRICT)
    for is_last in (False, True):
        if is_last:
            for table in SCHEMAS:
                native.spark.sql(f"DELETE FROM delta.`{native.root / 'tables' / table}`")
        else:
            change(native, dice)
            change(native, dice)
        for report in by_spark.refresh().views:
            assert report.mode != FULL
            result = by_spark.check(report.view)
            assert result.ok, (by_spark.catalog.view(report.view).sql, result)


def test_views_without_a_rule_are_recomputed_in_the_open(
    spark: SparkSession, tmp_path: Path
) -> None:
    dice = random.Random(7)
    warehouse = open_warehouse(tmp_path, spark)
    for name in SCHEMAS:
        warehouse.create_table(name, random_rows(name, dice, 12))
    for place, text in enumerate(FALLBACKS):
        warehouse.create_view(f"v{place}", text)
    change(warehouse, dice)
    warehouse.apply({n: TableChanges(insert=random_rows(n, dice, 3)) for n in SCHEMAS})
    report = warehouse.refresh()
    log = warehouse.parts.log.read(["view", "mode", "reason"]).to_pylist()
    for place in range(len(FALLBACKS)):
        view = report[f"v{place}"]
        assert view.mode == FULL
        assert view.reason is not None
        assert view.reason in str(warehouse.explain(view.view))
        assert {"view": view.view, "mode": FULL, "reason": view.reason} in log
        assert warehouse.check(view.view).ok


def test_empty_tables_and_schema_only_creation(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = open_warehouse(tmp_path, spark)
    for name, schema in SCHEMAS.items():
        warehouse.create_table(name, schema)
    warehouse.create_view("n", "SELECT count(*) AS n, sum(v) AS total FROM r", policy="STRICT")
    warehouse.create_view("g", "SELECT g, sum(v) AS total FROM r GROUP BY g", policy="STRICT")
    assert [tuple(row) for row in warehouse.read("n").collect()] == [(0, None)]
    rows = pa.Table.from_pylist(
        [{"id": 1, "g": None, "v": None}, {"id": 2, "g": None}], SCHEMAS["r"]
    )
    warehouse.apply({"r": TableChanges(insert=rows)})
    warehouse.refresh()
    assert [tuple(row) for row in warehouse.read("n").collect()] == [(2, None)]
    assert [tuple(row) for row in warehouse.read("g").collect()] == [(None, None)]
    warehouse.apply({"r": TableChanges(delete=[{"id": 1}, {"id": 2}], key=["id"])})
    warehouse.refresh()
    assert [tuple(row) for row in warehouse.read("n").collect()] == [(0, None)]
    assert warehouse.read("g").count() == 0
