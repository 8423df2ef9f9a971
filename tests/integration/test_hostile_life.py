"""A warehouse in a folder with a hostile name, over tables with hostile values, its whole life long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.runtime.report import INCREMENTAL
from freshview.runtime.warehouse import Warehouse
from tests.integration.test_random_views import NOTHING_LOCAL, NOTHING_NATIVE

pytestmark = pytest.mark.spark

FOLDER = "a b {c,d} *?#&'\"`;$:=~+<> ä€😀 -- @v0"
VALUES = (
    "",
    " ",
    "'",
    '"',
    "`",
    "\\",
    "\\'; DROP TABLE t; --",
    "a\0b",
    "a\nb\r\n\t",
    "%20",
    "NULL",
    "\u202eesrever",
    "שלום",
    "e\u0301",
    "é",
    "😀👩‍👩‍👧",
    "\ufeff",
    "\U0010ffff",
    "x" * 100_000,
    None,
)
VIEWS = {
    "totals": "SELECT k, count(*) AS n, sum(v) AS total FROM t GROUP BY k",
    "joined": "SELECT t.k AS k, v, w FROM t JOIN u ON t.k = u.k",
}


def changes(values: tuple[str | None, ...]) -> dict[str, fv.TableChanges]:
    """Each of the values inserted into one table, updated in the other."""
    return {
        "t": fv.TableChanges(insert=[{"k": value, "v": 1} for value in values]),
        "u": fv.TableChanges(update=[{"k": value, "w": 3} for value in values], key=["k"]),
    }


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> fv.Warehouse:
    warehouse = fv.open(tmp_path_factory.mktemp("hostile") / FOLDER, spark)
    keys = pa.array(VALUES, pa.string())
    warehouse.create_table("t", pa.table({"k": keys, "v": [1] * len(keys)}))
    warehouse.create_table("u", pa.table({"k": keys, "w": [2] * len(keys)}))
    for name, query in VIEWS.items():
        warehouse.create_view(name, query, policy="STRICT", comment="it's \\ `x`")
    return warehouse


def test_values_come_through_every_way_as_they_are(shop: fv.Warehouse) -> None:
    shop.apply(changes(VALUES))
    assert {view.mode for view in shop.refresh().views} == {INCREMENTAL}
    assert all(shop.check(name).ok for name in VIEWS)
    found = {row.k: (row.n, row.total) for row in shop.read("totals").collect()}
    assert found == dict.fromkeys(VALUES, (2, 2))
    gone = [{"k": value} for value in VALUES]
    shop.apply({"t": fv.TableChanges(delete=gone, key=["k"])})
    shop.refresh()
    assert [shop.read(name).count() for name in VIEWS] == [0, 0]


def test_spark_does_the_same_in_such_a_folder(shop: fv.Warehouse, spark: SparkSession) -> None:
    by_spark = Warehouse(shop.root, spark, NOTHING_LOCAL, NOTHING_NATIVE)
    few = ("'", "\\", "a\0b", "😀👩‍👩‍👧", None)
    by_spark.apply(changes(few))
    report = by_spark.refresh("totals")["totals"]
    assert (report.mode, report.served_by) == (INCREMENTAL, "spark")
    assert {row.k: row.n for row in by_spark.read("totals").collect()} == dict.fromkeys(few, 1)


def test_statements_and_the_end_in_such_a_folder(shop: fv.Warehouse) -> None:
    before = sorted(shop.root.parent.iterdir())
    shop.sql("INSERT INTO t VALUES ('it''s', 7)")
    shop.refresh(full=True)
    found = shop.sql("SELECT total FROM totals WHERE k = 'it''s'").collect()
    assert [tuple(row) for row in found] == [(7,)]
    orphan = Path(shop.catalog.path(shop.catalog.view("totals"))) / "part-orphan.parquet"
    orphan.write_bytes(b"of a killed writer")
    then = time.time() - 2 * 3600
    os.utime(orphan, (then, then))
    assert [leftover.path for leftover in shop.vacuum(1, remove=True)] == [orphan]
    assert all(shop.check(name).ok for name in VIEWS)
    for name in VIEWS:
        shop.sql(f"DROP MATERIALIZED VIEW {name}")
    assert list((shop.root / "views").iterdir()) == []
    assert sorted(shop.root.parent.iterdir()) == before
