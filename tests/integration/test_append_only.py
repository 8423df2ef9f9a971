"""Sources that only grow, observed or declared: insert-only rules, until the first deletion."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from freshview.planner.plan import Limits
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import Limits as StorageLimits

pytestmark = pytest.mark.spark

FEW = 10
IN_SPARK = (Limits(delta_rows=FEW), StorageLimits(changes_rows=FEW))
"""Limits under which larger deltas stay in Spark."""


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": numbers, "g": [n % 3 for n in numbers]})


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Path:
    """A view of maxima over a table that is declared append-only."""
    warehouse = open_warehouse(tmp_path / "warehouse", spark)
    warehouse.create_table("r", rows(0, 30))
    declare(warehouse, True)
    warehouse.create_view(
        "highest", "SELECT g, max(id) AS m, count(*) AS n FROM r GROUP BY g", policy="STRICT"
    )
    return warehouse.root


def declare(warehouse: Warehouse, append_only: bool) -> None:
    path = warehouse.parts.sources.path("r")
    warehouse.spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.appendOnly = {str(append_only).lower()})"
    )


def is_insert_only(warehouse: Warehouse) -> bool:
    """Whether the refresh that is due has no late update: no maximum can be lost."""
    return not any(line.startswith("late") for line in warehouse.explain("highest").operators)


def refreshed(warehouse: Warehouse) -> None:
    assert warehouse.refresh()["highest"].mode == "incremental"
    assert warehouse.check("highest").ok


def test_a_declared_source_is_explained_by_insert_only_rules(
    spark: SparkSession, root: Path
) -> None:
    warehouse = Warehouse(root, spark)
    assert warehouse.explain("highest").sources == ("r@1 (append-only)",)
    assert is_insert_only(warehouse)
    declare(warehouse, False)
    assert "append-only" not in str(warehouse.explain("highest").sources)


def test_an_observed_source_needs_no_declaration(spark: SparkSession, root: Path) -> None:
    warehouse = Warehouse(root, spark)
    declare(warehouse, False)
    warehouse.apply({"r": TableChanges(insert=rows(100, 5))})
    assert is_insert_only(warehouse)
    refreshed(warehouse)
    warehouse.apply({"r": TableChanges(delete=rows(100, 1), key=["id"])})
    assert not is_insert_only(warehouse)
    refreshed(warehouse)


def test_changes_that_stay_in_spark_need_the_declaration(spark: SparkSession, root: Path) -> None:
    warehouse = Warehouse(root, spark, *IN_SPARK)
    warehouse.apply({"r": TableChanges(insert=rows(100, 4 * FEW))})
    assert is_insert_only(warehouse)
    refreshed(warehouse)
    declare(warehouse, False)
    warehouse.apply({"r": TableChanges(insert=rows(200, 4 * FEW))})
    assert not is_insert_only(warehouse)
    refreshed(warehouse)


def test_the_first_deletion_withdraws_a_declaration(spark: SparkSession, root: Path) -> None:
    """The property was off while rows were deleted, and is on again when the view is refreshed."""
    warehouse = Warehouse(root, spark, *IN_SPARK)
    declare(warehouse, False)
    warehouse.apply({"r": TableChanges(delete=rows(28, 2), key=["id"])})
    warehouse.apply({"r": TableChanges(insert=rows(-100, 4 * FEW))})
    declare(warehouse, True)
    assert "(append-only)" in warehouse.explain("highest").sources[0]
    assert not is_insert_only(warehouse)
    refreshed(warehouse)
