"""A table with two views on it, one above the other, and what tests of them need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import freshview as fv
from freshview import faults
from freshview.runtime.report import UNCHANGED

TOTALS = "SELECT g, count(*) AS n, sum(v) AS total FROM r GROUP BY g"
SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.string()), ("v", pa.decimal128(10, 2))])


def some(*values: int) -> pa.Table:
    rows = [{"id": value, "g": "a", "v": Decimal(value)} for value in values]
    return pa.Table.from_pylist(rows, SCHEMA)


def with_two_views(spark: SparkSession, folder: Path) -> fv.Warehouse:
    made = fv.open(folder / "warehouse", spark)
    made.create_table("r", some(1, 2, 3))
    made.create_view("totals", TOTALS, policy="INCREMENTAL")
    made.create_view("above", "SELECT sum(total) AS total FROM totals", policy="INCREMENTAL")
    return made


def insert(warehouse: fv.Warehouse, *values: int) -> None:
    warehouse.apply({"r": fv.TableChanges(insert=some(*values))})


@contextmanager
def happening(point: str, event: Callable[[], object]) -> Iterator[None]:
    """Have something happen once, when a fault point is met."""
    met = []

    def handler(name: str) -> None:
        if name == point and not met:
            met.append(name)
            event()

    faults.install(handler)
    try:
        yield
    finally:
        faults.install(None)
    assert met


def rows(warehouse: fv.Warehouse, view: str, version: int | None = None) -> list[tuple[Any, ...]]:
    """The visible rows of a view, read without Spark."""
    storage, path = warehouse.parts.tables.native, warehouse.parts.sources.path(view)
    held = storage.read(path, storage.latest(path) if version is None else version)
    shown = held.select(list(warehouse.catalog.view(view).columns))
    return [tuple(row.values()) for row in shown.to_pylist()]


def assert_right(warehouse: fv.Warehouse, *values: int) -> None:
    """The views are those of a table with these values, and there is nothing left to do."""
    assert rows(warehouse, "totals") == [("a", len(values), Decimal(sum(values)))]
    assert rows(warehouse, "above") == [(Decimal(sum(values)),)]
    assert {view.mode for view in warehouse.refresh().views} == {UNCHANGED}
