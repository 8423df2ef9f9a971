"""What a refresh writes: only rows that change, and nothing is rewritten for rows that are new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from freshview.runtime.sources import Sources
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.interface import Rows

pytestmark = pytest.mark.spark

VIEWS = {
    "rows": "SELECT r.id AS id, s.w AS w FROM r JOIN s ON r.k = s.k",
    "grouped": "SELECT id, count(*) AS n, max(k) AS m FROM r GROUP BY id",
    "outer_rows": "SELECT r.id AS id, s.k AS k, s.w AS w FROM r FULL JOIN s ON r.k = s.k",
}


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    made = open_warehouse(tmp_path / "warehouse", spark)
    made.create_table("r", rows(0, 40))
    made.create_table("s", pa.table({"k": [1, 2, 7], "w": [1, 2, 3]}))
    for name, text in VIEWS.items():
        made.create_view(name, text, policy="STRICT")
    return made


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": ids, "k": [number % 3 for number in ids]})


def files(warehouse: Warehouse, view: str) -> set[str]:
    path = warehouse.catalog.path(warehouse.catalog.view(view))
    return set(DeltaTable(path).file_uris())


def test_new_rows_rewrite_no_file(warehouse: Warehouse) -> None:
    before = {view: files(warehouse, view) for view in VIEWS}
    warehouse.apply({"r": TableChanges(insert=rows(100, 5))})
    report = warehouse.refresh()
    for view in VIEWS:
        assert before[view] < files(warehouse, view), view
        assert report[view].rows_out in (3, 4, 5)
        assert warehouse.check(view).ok


def test_a_row_that_is_there_is_set_and_not_added(warehouse: Warehouse) -> None:
    before = {view: files(warehouse, view) for view in VIEWS}
    warehouse.apply({"r": TableChanges(insert=[{"id": 1, "k": 1}, {"id": 200, "k": 1}])})
    warehouse.refresh()
    for view in VIEWS:
        assert not before[view] <= files(warehouse, view), view
        assert warehouse.check(view).ok


def test_rows_that_stay_as_they_are_are_not_set(warehouse: Warehouse) -> None:
    """One of thirteen rows of a key goes: the others are read, to see that the key has a partner."""
    warehouse.apply({"r": TableChanges(delete=[{"id": 4}], key=["id"])})
    report = warehouse.refresh()["outer_rows"]
    assert report.rows_read > 10
    assert report.rows_out == 1
    assert warehouse.check("outer_rows").ok
    warehouse.apply({"r": TableChanges(insert=[{"id": 300, "k": 7}])})
    assert warehouse.refresh()["outer_rows"].rows_out == 2, "the padded row goes, the pair comes"
    assert warehouse.check("outer_rows").ok


def test_views_with_the_same_columns_share_what_is_read_of_the_changes(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[GM06] Example 1 reads Δsales once for CitySales and CategorySales."""
    read: list[tuple[str, tuple[str, ...]]] = []
    plain = Sources.changes

    def changes(sources: Sources, name: str, after: int, upto: int, columns: Sequence[str]) -> Rows:
        read.append((name, tuple(columns)))
        return plain(sources, name, after, upto, columns)

    monkeypatch.setattr(Sources, "changes", changes)
    warehouse.apply({"r": TableChanges(insert=rows(500, 3))})
    report = warehouse.refresh()
    assert [report[view].rows_in for view in VIEWS] == [3, 3, 3]
    assert read == [("r", ("id", "k"))]
    assert all(warehouse.check(view).ok for view in VIEWS)
