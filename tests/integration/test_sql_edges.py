"""Every operator of SQL on Spark and Delta, by name, through inserts, updates and deletes at its edge.

All views are made once under STRICT, so none may be recomputed, and refreshed after the same batches.
After each batch a view must be what Spark evaluates its text to over the tables as they are, as a bag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from freshview.algebra.schema import EXTENT_COUNT_NAME
from freshview.errors import FreshviewError
from freshview.runtime.named_tables import session_with
from freshview.runtime.report import ADVANCED, INCREMENTAL
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.native import NativeStorage
from tests.integration.edge_batches import BATCHES, SCHEMAS, START
from tests.integration.edges import Bag
from tests.integration.sql_edges import CASES

pytestmark = pytest.mark.spark

SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}


def hashable(value: object) -> object:
    if isinstance(value, dict):
        return tuple(map(hashable, value.values()))
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def bag(rows: pa.Table) -> Bag:
    """The rows, each as often as its count says if it has one."""
    found: Bag = Counter()
    for row in rows.to_pylist():
        copies = row.pop(EXTENT_COUNT_NAME, 1)
        found[tuple(hashable(value) for value in row.values())] += copies
    return +found


def stored(warehouse: Warehouse, view: str) -> Bag:
    entry = warehouse.catalog.view(view)
    storage, path = NativeStorage(), warehouse.catalog.path(entry)
    rows = storage.read(path, storage.latest(path))
    counted = [c for c in rows.column_names if c == EXTENT_COUNT_NAME]
    return bag(rows.select([*entry.columns, *counted]))


@dataclass(frozen=True)
class Run:
    """What each view is and what its text is, as made and after each batch; how it was refreshed."""

    found: Mapping[str, list[Bag]]
    expected: Mapping[str, list[Bag]]
    modes: Mapping[str, list[str]]


def definitions(spark: SparkSession, warehouse: Warehouse) -> dict[str, Bag]:
    tables = {name: warehouse.table(name).toArrow() for name in SCHEMAS}
    frames = {name: spark.createDataFrame(rows).coalesce(1) for name, rows in tables.items()}
    session = session_with(spark, frames, SMALL)
    return {name: bag(session.sql(case.sql).toArrow()) for name, case in CASES.items()}


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    warehouse = open_warehouse(tmp_path_factory.mktemp("edges"), spark)
    for name, schema in SCHEMAS.items():
        warehouse.create_table(name, pa.Table.from_pylist(START[name], schema))
    for name, case in CASES.items():
        warehouse.create_view(name, case.sql, policy="STRICT")
    run = Run(*({name: [] for name in CASES} for _ in range(3)))
    for number in range(len(BATCHES) + 1):
        if number:
            warehouse.apply(BATCHES[number - 1])
            with suppress(FreshviewError):  # it is in the log, and stops no other view
                warehouse.refresh()
        for name, rows in definitions(spark, warehouse).items():
            run.expected[name].append(rows)
            run.found[name].append(stored(warehouse, name))
    for row in warehouse.parts.log.read().sort_by("time").to_pylist():
        run.modes[row["view"]].append(row["mode"])
    return run


@pytest.mark.parametrize("name", CASES)
def test_an_operator_at_its_edge(name: str, run: Run) -> None:
    for number, (found, expected) in enumerate(
        zip(run.found[name], run.expected[name], strict=True)
    ):
        assert found == expected, (number, found - expected, expected - found)
    _, *modes = run.modes[name]
    assert set(modes) <= {INCREMENTAL, ADVANCED}
    assert modes.count(INCREMENTAL) >= 2
    assert CASES[name].edge(run.expected[name]), "the batches do not hit the edge"
