"""What a warehouse writes down about itself names tables, views and codes, and never values of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import FreshviewError
from soak.delta_history import history

pytestmark = pytest.mark.spark

SECRET = "planted-4711-secret"


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> fv.Warehouse:
    made = fv.open(tmp_path / "warehouse", spark)
    made.create_table("t", pa.table({"k": [1, 2], "text": ["10", "20"], "other": ["1", "2"]}))
    made.create_table("u", pa.table({"k": [1, 2], "text": ["5", "6"]}))
    made.create_view("numbers", "SELECT k, CAST(text AS INT) AS n FROM t", policy="INCREMENTAL")
    made.create_view("counted", "SELECT text, count(*) AS n FROM t GROUP BY text")
    made.create_view(
        "pairs", "SELECT t.k, CAST(concat(t.other, u.text) AS INT) AS n FROM t JOIN u ON t.k = u.k"
    )
    return made


def written(warehouse: fv.Warehouse) -> str:
    """Every text that freshview keeps: its own files, its log, and its notes in commits."""
    kept = [
        file.read_bytes().decode("utf-8", "replace")
        for file in (warehouse.root / "_freshview").rglob("*")
        if file.is_file()
    ]
    kept.append(str(warehouse.parts.log.read().to_pylist()))
    for view in warehouse.catalog.views():
        commits = history(Path(warehouse.catalog.path(view)))
        kept += [str(commit.named) for commit in commits]
    return "\n".join(kept)


def test_values_of_rows_are_in_no_log(warehouse: fv.Warehouse) -> None:
    rows = [{"k": 3, "text": SECRET, "other": "3"}]
    warehouse.apply({"t": fv.TableChanges(insert=rows)})
    with pytest.raises((FreshviewError, PySparkException)) as caught:
        warehouse.refresh()
    assert SECRET in str(caught.value)  # whoever runs the refresh may know
    warehouse.apply({"t": fv.TableChanges(delete=[{"k": 3}], key=["k"])})
    warehouse.refresh()
    never = {"k": 1, "text": "1", "other": SECRET}
    warehouse.apply({"t": fv.TableChanges(update=[never], key=["k"])})
    warehouse.apply({"u": fv.TableChanges(delete=[{"k": 1}], key=["k"])})
    report = warehouse.refresh()
    assert report["pairs"].reason == "EVALUATION_FAILED"
    warehouse.explain("pairs")
    with pytest.raises(FreshviewError):
        warehouse.apply({"t": fv.TableChanges(insert=[{"k": SECRET}])})
    for name in ("numbers", "counted", "pairs"):
        assert warehouse.check(name).ok
    log = warehouse.parts.log.read(["mode", "reason", "why"]).to_pylist()
    assert [row for row in log if row["mode"] == "failed"]
    assert SECRET not in written(warehouse)
    assert "numbers" in written(warehouse)
