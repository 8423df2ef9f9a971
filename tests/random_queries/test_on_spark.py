"""Some random queries on Spark and Delta beside their recompute and DuckDB; ``make soak`` has hundreds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.random_queries.data import SCHEMAS
from tests.random_queries.kept import Keeping, by_duckdb, told

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("first", [7_000_000])
def test_random_queries_are_their_recompute(
    first: int, spark: SparkSession, tmp_path: Path
) -> None:
    keeping = Keeping(first, range(first, first + 4), tmp_path, spark)
    kept = keeping.run()
    keeping.log()
    assert {one.seed: one.wrong for one in kept if one.wrong} == {}
    assert all(one.compared == 5 for one in kept)
    assert any(one.by_duckdb == 5 for one in kept)
    assert any(one.effects for one in kept)


def test_a_difference_is_noticed() -> None:
    """NaN is equal to itself, a row twice is not the row once."""
    one = pa.Table.from_pylist(
        [{"h": 1, "name": "a", "day": None}, {"h": 1, "name": "a", "day": None}], SCHEMAS["t"]
    )
    found = by_duckdb("SELECT h, CAST('NaN' AS DOUBLE) AS x FROM t", {"t": one})
    assert found == Counter({(1, "NaN"): 2})
    assert told(found, Counter({(1, "NaN"): 1})).startswith("0 missing, 1 extra")
