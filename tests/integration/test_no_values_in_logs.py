"""What a warehouse writes down about itself names tables, views and codes, and never values of rows."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
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
    pairs = "SELECT t.k, CAST(concat(t.other, u.text) AS INT) AS n FROM t JOIN u ON t.k = u.k"
    made.create_view("pairs", pairs, policy="INCREMENTAL")
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


def logged(spark: SparkSession, captured: pytest.CaptureFixture[str]) -> str:
    """What Spark has logged so far, up to an error that is logged here with a value."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    marker = jvm.org.apache.logging.log4j.LogManager.getLogger("org.apache.spark.tests.Marker")
    marker.error("the last line", jvm.java.lang.IllegalStateException(SECRET))
    until, found = time.monotonic() + 30, ""
    while found.partition("the last line")[2].count("\n") < 2:  # a thread passes the lines on
        time.sleep(0.3)  # what is written while captured text is taken away would be lost
        found += captured.readouterr().err
        assert time.monotonic() < until, found
    return found


def test_values_of_rows_are_in_no_log(
    warehouse: fv.Warehouse, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"k": 3, "text": SECRET, "other": "3"}]
    warehouse.apply({"t": fv.TableChanges(insert=rows)})
    with pytest.raises((FreshviewError, PySparkException)) as caught:
        warehouse.refresh()
    assert SECRET in str(caught.value)  # whoever runs the refresh may know
    with pytest.raises((FreshviewError, PySparkException, Py4JJavaError)):
        warehouse.sql("INSERT INTO u SELECT CAST(text AS INT), other FROM t")
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
    assert SECRET not in logged(spark, capfd)
