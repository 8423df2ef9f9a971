"""Columns whose names hold what SQL and Spark's column syntax give a meaning to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from freshview.runtime.report import FULL, INCREMENTAL
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from tests.integration.test_random_views import NOTHING_LOCAL, NOTHING_NATIVE

pytestmark = pytest.mark.spark

ROWS = pa.table({"a.b": [1, 2, 2], "t`ick": ["x", "y", "y"], "näme": [1, None, 3]})
VIEWS = {
    "grouped": "SELECT `a.b`, count(*) AS `n.n`, sum(`näme`) AS `su``m` FROM t GROUP BY `a.b`",
    "counted": "SELECT `a.b` AS `c.d`, `t``ick` FROM t",
    "above": "SELECT sum(`n.n`) AS `all.all` FROM grouped",
    "extreme": "SELECT `t``ick`, max(`a.b`) AS `m.m` FROM t GROUP BY `t``ick`",
    "distinct": "SELECT `t``ick`, count(DISTINCT `a.b`) AS `d.d` FROM t GROUP BY `t``ick`",
    "outer": "SELECT l.`t``ick`, r.`näme` AS `r.n` FROM t l LEFT JOIN t r ON l.`a.b` = r.`näme`",
    "inner": "SELECT `c.d`, `n.n` FROM counted JOIN (SELECT `a.b` AS `x.y`, count(*) AS `n.n`"
    " FROM t GROUP BY `a.b`) ON `c.d` = `x.y`",
    "full": "SELECT map('k', `a.b`) AS `m.m` FROM t",
}


@pytest.mark.parametrize("local", [True, False])
def test_any_column_name_goes_all_ways(spark: SparkSession, tmp_path: Path, local: bool) -> None:
    warehouse = open_warehouse(tmp_path, spark)
    warehouse.create_table("t", ROWS)
    if not local:
        warehouse = Warehouse(tmp_path, spark, NOTHING_LOCAL, NOTHING_NATIVE)
    for name, query in VIEWS.items():
        warehouse.create_view(name, query, policy="INCREMENTAL")
    changes = TableChanges(insert=ROWS.slice(1, 1), delete=[{"a.b": 1}], key=["a.b"])
    warehouse.apply({"t": changes})
    modes = {view.view: view.mode for view in warehouse.refresh().views}
    assert modes == dict.fromkeys(VIEWS, INCREMENTAL) | {"full": FULL}
    for name in VIEWS:
        assert warehouse.check(name).ok, name
    assert [tuple(row) for row in warehouse.read("above").collect()] == [(3,)]
    assert warehouse.refresh(full=True)["grouped"].mode == FULL
    assert warehouse.check("grouped").ok
