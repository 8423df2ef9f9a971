from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import freshview as fv
from tests.soak.planting import SCHEMA, some


@pytest.fixture(scope="session")
def honest(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a warehouse with three views and two refreshes."""
    made = fv.open(tmp_path_factory.mktemp("honest") / "warehouse", spark)
    made.create_table("r", SCHEMA)
    made.apply({"r": some(1, 2, 3, 3)})
    made.create_view("rows", "SELECT g, v FROM r", policy="INCREMENTAL")
    made.create_view(
        "totals", "SELECT g, count(*) AS n, sum(v) AS t FROM rows GROUP BY g", policy="INCREMENTAL"
    )
    made.create_view("both", "SELECT r.id, t.t FROM r JOIN totals t ON r.g = t.g")
    made.apply({"r": some(4)})
    made.refresh()
    return made.root


@pytest.fixture
def warehouse(honest: Path, spark: SparkSession, tmp_path: Path) -> fv.Warehouse:
    shutil.copytree(honest, tmp_path / "warehouse")
    return fv.open(tmp_path / "warehouse", spark)
