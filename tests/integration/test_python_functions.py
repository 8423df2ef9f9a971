"""Python's and pandas' functions in views: deterministic ones are kept, on Spark and Delta."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType

import freshview as fv
from freshview.errors import ViewNotMaintainable
from freshview.runtime.report import ADVANCED, INCREMENTAL

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "g": ["a", "a", "b", None, "b"],
        "k": pa.array([1, 2, None, 4, 5], pa.int64()),
    }
)


spelled = sf.udf(lambda g, k: None if k is None else f"{g}-{k}", StringType())
is_odd = sf.udf(lambda k: None if k is None else k % 2 == 1, BooleanType())


@pandas_udf(LongType())
def doubled(k: pd.Series) -> pd.Series:
    return k * 2


@pandas_udf(DoubleType())
def widest(k: pd.Series) -> float:
    return float(k.max() - k.min())


def test_functions_of_rows_and_of_groups(spark: SparkSession, tmp_path: Path) -> None:
    """In a filter, a column, a join, an argument and as an aggregate; a group empties and returns."""
    shop = fv.open(tmp_path, spark)
    shop.create_table("r", ROWS)
    shop.create_table("n", pa.table({"text": ["a-1", "b-5", "b-7"], "o": [1, 2, 3]}))

    @shop.view(policy="STRICT")
    def spelt() -> DataFrame:
        return shop.table("r").where(is_odd("k")).select(spelled("g", "k").alias("text"), "id")

    @shop.view(policy="STRICT")
    def matched() -> DataFrame:
        texts = shop.table("r").select("id", spelled("g", "k").alias("text"))
        return texts.join(shop.table("n"), "text", "left").select("id", "o")

    @shop.view(policy="STRICT")
    def sums() -> DataFrame:
        return shop.table("r").groupBy("g").agg(sf.sum(doubled("k")).alias("x"))

    @shop.view(policy="STRICT")
    def spans() -> DataFrame:
        known = shop.table("r").where("k IS NOT NULL")
        return known.groupBy("g").agg(widest("k").alias("span"))

    def shown(view: str) -> set[tuple[object, ...]]:
        return {tuple(row) for row in shop.read(view).collect()}

    assert shown("spelt") == {("a-1", 1), ("b-5", 5)}
    assert shown("spans") == {("a", 1.0), ("b", 0.0), (None, 0.0)}
    batches = [
        fv.TableChanges(
            insert=[{"id": 6, "g": "b", "k": 7}],
            update=[{"id": 2, "g": "a", "k": 9}],
            delete=[{"id": 4}],
            key=["id"],
        ),
        fv.TableChanges(delete=[{"id": 3}, {"id": 5}, {"id": 6}], key=["id"]),
        fv.TableChanges(
            insert=[{"id": 5, "g": "b", "k": 5}],
            update=[{"id": 1, "g": "a", "k": None}],
            key=["id"],
        ),
    ]
    for batch in batches:
        shop.apply({"r": batch})
        report = shop.refresh()
        assert {view.mode for view in report.views} <= {INCREMENTAL, ADVANCED}
        for view in report.views:
            assert shop.check(view.view).ok, view
    assert shown("spelt") == {("a-9", 2), ("b-5", 5)}
    assert shown("matched") == {(1, None), (2, None), (5, 2)}
    assert shown("sums") == {("a", 18), ("b", 10)}
    assert shown("spans") == {("a", 0.0), ("b", 0.0)}


def test_a_function_that_says_it_is_not_deterministic_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = fv.open(tmp_path, spark)
    shop.create_table("r", ROWS)
    drawn = sf.udf(lambda k: k, "bigint").asNondeterministic()

    def drawing() -> DataFrame:
        return shop.table("r").select("id", drawn("k").alias("d"))

    with pytest.raises(ViewNotMaintainable) as refused:
        shop.view(drawing)
    assert refused.value.parameters["reason"] == "NOT_DETERMINISTIC"
