"""What a view's table holds besides its rows: hidden columns, types, and the fences of its commits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from soak.bank import HIDDEN, VIEWS, prepare
from soak.checker import Checker
from soak.findings import COLUMNS, FENCE
from soak.findings import HIDDEN as HIDDEN_STATE
from tests.soak.planting import kinds, overwrite, rows_of, some, verdict

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("column", ["__rows", "__present1", "__sum1"])
def test_hidden_state_of_an_aggregate_that_is_off_is_found(
    warehouse: fv.Warehouse, column: str
) -> None:
    rows = rows_of(warehouse, "totals")
    wrong = [{**row, column: row[column] + 5} for row in rows.to_pylist()]
    overwrite(warehouse, "totals", pa.Table.from_pylist(wrong, rows.schema))
    assert kinds(warehouse) == {HIDDEN_STATE}


@pytest.mark.parametrize("plant", ["no copies", "twice the row"])
def test_a_counted_row_that_is_stored_otherwise_is_found(
    warehouse: fv.Warehouse, plant: str
) -> None:
    """The rows of the view are right in both cases."""
    rows = rows_of(warehouse, "rows")
    if plant == "no copies":
        more = [{"g": "c", "v": None, "__count": 0}]
        stored = rows.to_pylist() + more
    else:
        stored = [{**row, "__count": 1} for row in rows.to_pylist() for _ in range(row["__count"])]
        assert len(stored) > rows.num_rows
    overwrite(warehouse, "rows", pa.Table.from_pylist(stored, rows.schema))
    assert kinds(warehouse) == {HIDDEN_STATE}


def test_a_hidden_column_that_is_lost_is_found(warehouse: fv.Warehouse) -> None:
    overwrite(warehouse, "totals", rows_of(warehouse, "totals").drop_columns(["__present1"]))
    assert kinds(warehouse) == {COLUMNS}


def test_hidden_columns_that_nobody_stated_are_told(warehouse: fv.Warehouse) -> None:
    assert verdict(warehouse).unstated == []
    found = Checker(warehouse.root, warehouse.spark).run()
    assert found.unstated == ["totals"]
    assert "totals" in str(found)


@pytest.mark.parametrize(("view", "column"), [("rows", "v"), ("totals", "n")])
def test_a_column_of_another_type_is_found(warehouse: fv.Warehouse, view: str, column: str) -> None:
    rows = rows_of(warehouse, view)
    place = rows.column_names.index(column)
    changed = rows.set_column(place, column, rows[column].cast(pa.float64()))
    overwrite(warehouse, view, changed)
    found = verdict(warehouse).findings
    assert {finding.kind for finding in found} == {COLUMNS}
    assert f"{column} is double" in found[0].what


@pytest.mark.parametrize("fence", [0, 1, 99])
def test_a_fence_that_goes_back_or_was_never_given_is_found(
    warehouse: fv.Warehouse, fence: int
) -> None:
    warehouse.apply({"r": some(5)})
    warehouse.refresh()
    assert kinds(warehouse) == set()
    overwrite(warehouse, "rows", rows_of(warehouse, "rows"), fence=fence)
    assert kinds(warehouse) == {FENCE}


def test_a_first_refresh_without_a_fence_is_found(warehouse: fv.Warehouse) -> None:
    warehouse.create_view("made", "SELECT g, count(*) AS n FROM r GROUP BY g")
    assert kinds(warehouse) == set()
    overwrite(warehouse, "made", rows_of(warehouse, "made"), fence=0)
    assert kinds(warehouse) == {FENCE}


def test_the_bank_states_what_its_views_hide(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = fv.open(tmp_path / "warehouse", spark)
    prepare(warehouse)
    found = Checker(warehouse.root, spark, hidden=HIDDEN).run(settled=True, expected=VIEWS)
    assert found.findings == []
    assert found.unstated == []
    assert found.views == list(VIEWS)
