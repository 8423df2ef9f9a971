"""A recursion that does not end is an error with Spark's own reason, and nothing is changed by it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import SparkFailed, UnknownName
from freshview.runtime.warehouse import Warehouse

pytestmark = pytest.mark.spark

REACHED = (
    "WITH RECURSIVE reached(n) AS (SELECT a FROM edges WHERE b = 1 UNION ALL"
    " SELECT edges.b FROM reached JOIN edges ON edges.a = n) SELECT n, count(*) AS ways FROM reached GROUP BY n"
)


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    made = fv.open(tmp_path / "graph", spark)
    made.create_table("edges", pa.table({"a": [0, 0, 1], "b": [1, 2, 3]}))
    return made


@pytest.mark.parametrize("limit", ["", " LIMIT 3"])
def test_an_endless_recursion_is_no_view(limit: str, warehouse: Warehouse) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"
    with pytest.raises(SparkFailed) as raised:
        warehouse.create_view("endless", endless + limit, policy="STRICT")
    assert "RECURSION_LEVEL_LIMIT_EXCEEDED" in raised.value.parameters["reason"]
    with pytest.raises(UnknownName):
        warehouse.read("endless")


def test_a_circle_stops_the_refresh_until_it_is_gone(warehouse: Warehouse) -> None:
    warehouse.create_view("reached", REACHED, policy="STRICT")
    before = sorted(map(tuple, warehouse.read("reached").collect()))
    assert before == [(0, 1), (1, 1), (2, 1), (3, 1)]
    circle = pa.table({"a": [3], "b": [0]})
    warehouse.apply({"edges": fv.TableChanges(insert=circle, key=["a", "b"])})
    with pytest.raises(SparkFailed) as raised:
        warehouse.refresh()
    assert "RECURSION_LEVEL_LIMIT_EXCEEDED" in raised.value.parameters["reason"]
    assert sorted(map(tuple, warehouse.read("reached").collect())) == before
    away = {"insert": pa.table({"a": [2], "b": [3]}), "delete": circle, "key": ["a", "b"]}
    warehouse.apply({"edges": fv.TableChanges(**away)})
    assert warehouse.refresh()["reached"].mode == "incremental"
    after = sorted(map(tuple, warehouse.read("reached").collect()))
    assert after == [(0, 1), (1, 1), (2, 1), (3, 2)]
    assert warehouse.check("reached").ok
