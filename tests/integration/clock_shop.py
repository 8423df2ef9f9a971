"""A shop whose clock is set by the test: orders of a thousand days, the last ninety yet to come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import freshview as fv

START = datetime(2026, 3, 15, 12, tzinfo=UTC)
TODAY = START.date()
WINDOW = "SELECT id, day FROM orders WHERE day > current_date() - 30 AND day <= current_date()"


class Settable:
    """A clock that the test sets, and that may go on a bit whenever somebody asks it."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now
        self.drift = timedelta()

    def __call__(self) -> datetime:
        self.now += self.drift
        return self.now

    def tick(self, **span: float) -> None:
        self.now += timedelta(**span)


@contextmanager
def zone(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def orders(days: range) -> pa.Table:
    """An order of each day from so many before today to so many after it."""
    return pa.table(
        {
            "id": pa.array(days, pa.int64()),
            "day": pa.array([TODAY + timedelta(days=n) for n in days], pa.date32()),
            "at": pa.array([START + timedelta(days=n) for n in days], pa.timestamp("us", tz="UTC")),
            "customer": pa.array([n % 7 for n in days], pa.int64()),
            "amount": pa.array([n * n for n in days], pa.int64()),
        }
    )


def open_shop(folder: Path, spark: SparkSession, clock: Settable) -> fv.Warehouse:
    """The orders, each of a day, and their seven customers."""
    warehouse = fv.open(folder, spark, clock=clock)
    warehouse.create_table("orders", orders(range(-910, 90)))
    warehouse.create_table("customers", customers())
    return warehouse


def customers() -> pa.Table:
    return pa.table({"customer": range(7), "name": [f"c{n}" for n in range(7)]})


def ids(warehouse: fv.Warehouse, view: str, column: str = "id") -> list[Any]:
    return sorted(row[column] for row in warehouse.read(view).collect())


def right(warehouse: fv.Warehouse, *views: str) -> None:
    for view in views or tuple(v.name for v in warehouse.catalog.views()):
        result = warehouse.check(view)
        assert result.ok, (view, result)
