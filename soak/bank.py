"""What a soak works on: accounts between which money moves, visits, and six views in three levels.

Money only moves: every transaction takes from `checking` what it puts into `savings`, or the other
way round, so the two together always hold `TOTAL`. A reader that mixes versions sees another sum.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from freshview.runtime.warehouse import Warehouse

OWNERS = tuple(f"owner {number}" for number in range(12))
START = Decimal("1000.00")
TOTAL = START * len(OWNERS) * 2

ENTRIES = pa.schema([("id", pa.string()), ("owner", pa.string()), ("amount", pa.decimal128(12, 2))])
VISITS = pa.schema([("id", pa.int64()), ("owner", pa.string()), ("kind", pa.string())])

VIEWS = {
    "checking_by_owner": (
        "SELECT owner, count(*) AS n, sum(amount) AS total FROM checking GROUP BY owner"
    ),
    "savings_by_owner": (
        "SELECT owner, count(*) AS n, sum(amount) AS total FROM savings GROUP BY owner"
    ),
    "visitors": (
        "SELECT v.kind AS kind, c.owner AS owner, c.amount AS amount"
        " FROM visits v JOIN checking c ON v.owner = c.owner WHERE v.kind <> 'none'"
    ),
    "wealth": (
        "SELECT c.owner AS owner, c.total + s.total AS total"
        " FROM checking_by_owner c JOIN savings_by_owner s ON c.owner = s.owner"
    ),
    "by_kind": "SELECT kind, count(*) AS n, sum(amount) AS amount FROM visitors GROUP BY kind",
    "bank": "SELECT count(*) AS owners, sum(total) AS total FROM wealth",
}


def _summed(column: str) -> dict[str, str]:
    """What an aggregate view hides: its rows, the non-null values of a column, and their sum."""
    return {
        "__rows": "count(*)",
        "__present1": f"count({column})",
        "__sum1": f"CAST(coalesce(sum({column}), 0) AS DECIMAL(38,2))",
    }


HIDDEN = {
    "checking_by_owner": _summed("amount"),
    "savings_by_owner": _summed("amount"),
    "by_kind": _summed("amount"),
    "bank": {"__key": "0", **_summed("total")},
}
"""The hidden columns of the aggregate views, as the checker computes them."""

HALVES = ("checking_by_owner", "savings_by_owner")


def prepare(warehouse: Warehouse) -> None:
    """The tables, one of them with a change feed and one with deletion vectors, and the views."""
    spark = warehouse.spark
    start = pa.Table.from_pylist(
        [{"id": f"start {owner}", "owner": owner, "amount": START} for owner in OWNERS], ENTRIES
    )
    warehouse.create_table("checking", start)
    _by_spark(spark, warehouse, "savings", start, "delta.enableDeletionVectors")
    visits = [{"id": n, "owner": owner, "kind": "first"} for n, owner in enumerate(OWNERS)]
    _by_spark(
        spark,
        warehouse,
        "visits",
        pa.Table.from_pylist(visits, VISITS),
        "delta.enableChangeDataFeed",
    )
    for name, query in VIEWS.items():
        warehouse.create_view(name, query, policy="INCREMENTAL")
    warehouse.refresh()  # the first epoch that has them all, which readers ask for


def _by_spark(
    spark: SparkSession, warehouse: Warehouse, name: str, rows: pa.Table, feature: str
) -> None:
    path = str(warehouse.root / "tables" / name)
    writer: Any = spark.createDataFrame(rows).write.format("delta").option(feature, "true")
    writer.save(path)
    warehouse.register(name, path)
