"""Tables and views that are gone, put back or damaged: their readers are told, others go on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import (
    HistoryLost,
    NoCommonEpoch,
    TableMissing,
    TableUnreadable,
    UnknownEpoch,
)
from freshview.runtime import check as check_module
from freshview.runtime import lease
from freshview.runtime import warehouse as warehouse_module
from freshview.storage import native_handles
from tests.integration.two_views import (
    assert_right,
    happening,
    insert,
    rows,
    some,
    with_two_views,
)

pytestmark = pytest.mark.spark


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> fv.Warehouse:
    return with_two_views(spark, tmp_path)


def test_a_table_that_is_gone_stops_only_its_readers(
    warehouse: fv.Warehouse, spark: SparkSession, tmp_path: Path
) -> None:
    warehouse.create_table("other", pa.table({"id": [1]}))
    warehouse.create_view("others", "SELECT id FROM other")
    warehouse.create_view("both", "SELECT o.id FROM others o JOIN totals t ON o.id = t.n")
    insert(warehouse, 4)
    place = Path(warehouse.parts.sources.path("other"))
    place.rename(tmp_path / "away")
    with pytest.raises(TableMissing) as caught:
        fv.open(warehouse.root, spark).refresh()
    assert "The view others was not refreshed." in caught.value.__notes__
    assert "Views that read it keep their state: both." in caught.value.__notes__
    assert rows(warehouse, "totals") == [("a", 4, Decimal(10))]
    assert rows(warehouse, "others") == [(1,)]
    (tmp_path / "away").rename(place)
    warehouse.refresh()
    assert_right(warehouse, 1, 2, 3, 4)
    assert rows(warehouse, "both") == []


def test_a_view_whose_table_is_gone_is_computed_anew(warehouse: fv.Warehouse) -> None:
    insert(warehouse, 4)
    shutil.rmtree(warehouse.parts.sources.path("totals"))
    report = warehouse.refresh()
    assert report["totals"].reason == "TABLE_MISSING"
    assert_right(warehouse, 1, 2, 3, 4)
    insert(warehouse, 5)
    assert {view.mode for view in warehouse.refresh().views} == {"incremental"}
    assert_right(warehouse, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("replaced", [False, True])
def test_numbers_do_not_come_again_when_a_view_is_computed_anew(
    warehouse: fv.Warehouse, spark: SparkSession, *, replaced: bool
) -> None:
    """A refresher sleeps before its commit; meanwhile the view is lost, and made by another one."""
    insert(warehouse, 4)

    def meanwhile() -> None:
        held = max(lease.view_lease(warehouse.root, "totals").glob("0*"))
        os.utime(held, (0, 0))
        place = warehouse.parts.sources.path("totals")
        rows = DeltaTable(place).to_pyarrow_table()
        shutil.rmtree(place)
        if replaced:
            write_deltalake(place, rows)
        insert(warehouse, 5)
        report = fv.open(warehouse.root, spark).refresh()
        lost = "VIEW_NOT_COMPUTED" if replaced else "TABLE_MISSING"
        assert report["totals"].reason == lost

    with happening("refresh.before_commit", meanwhile):
        warehouse.refresh()
    assert_right(warehouse, 1, 2, 3, 4, 5)
    insert(warehouse, 6)
    warehouse.refresh()
    assert_right(warehouse, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("more", [0, 2])
def test_a_table_put_back_from_a_backup_is_another_one(
    warehouse: fv.Warehouse, tmp_path: Path, more: int
) -> None:
    """Its identity is the same, and its versions come again with other rows."""
    place = Path(warehouse.parts.sources.path("r"))
    shutil.copytree(place, tmp_path / "backup")
    insert(warehouse, 4)
    insert(warehouse, 5)
    warehouse.refresh()
    shutil.rmtree(place)
    (tmp_path / "backup").rename(place)
    for value in range(more):
        insert(warehouse, 100 + value)
    report = warehouse.refresh()
    assert report["totals"].reason == "SOURCE_REPLACED"
    assert_right(warehouse, 1, 2, 3, *(100 + value for value in range(more)))


def test_a_table_put_back_and_reduced_is_read_as_it_is_now(
    warehouse: fv.Warehouse, tmp_path: Path
) -> None:
    """What was known of its versions is of files that are no longer in them."""
    place = Path(warehouse.parts.sources.path("r"))
    shutil.copytree(place, tmp_path / "backup")
    insert(warehouse, 4)
    warehouse.refresh()
    shutil.rmtree(place)
    (tmp_path / "backup").rename(place)
    warehouse.apply({"r": fv.TableChanges(delete=[{"id": 3}], key=["id"])})
    warehouse.refresh()
    assert_right(warehouse, 1, 2)
    assert warehouse.check("totals").ok


def test_a_table_whose_log_is_damaged_stops_only_its_readers(warehouse: fv.Warehouse) -> None:
    warehouse.create_table("other", some(1))
    warehouse.create_view("others", "SELECT sum(v) AS v FROM other", policy="INCREMENTAL")
    warehouse.apply({"other": fv.TableChanges(insert=some(2))})
    insert(warehouse, 4)
    newest = max((Path(warehouse.parts.sources.path("r")) / "_delta_log").glob("*.json"))
    text = newest.read_text()
    newest.write_text(text[: len(text) // 2])
    with pytest.raises(TableUnreadable):
        fv.open(warehouse.root, warehouse.spark).refresh()
    assert rows(warehouse, "others") == [(Decimal(3),)]
    newest.write_text(text)
    again = fv.open(warehouse.root, warehouse.spark)
    again.refresh()
    assert_right(again, 1, 2, 3, 4)


def test_a_view_is_not_compared_with_another_table(warehouse: fv.Warehouse) -> None:
    """Nor repaired from it: the version that it names has the same number there."""
    place = Path(warehouse.parts.sources.path("r"))
    shutil.rmtree(place)
    write_deltalake(place, some(7, 8))
    before = rows(warehouse, "totals")
    for repaired in (False, True):
        with pytest.raises(HistoryLost) as caught:
            warehouse.check("totals", repair_groups=repaired)
        assert "not the one" in caught.value.why
    assert rows(warehouse, "totals") == before
    warehouse.refresh()
    assert warehouse.check("totals", repair_groups=True).ok
    assert_right(warehouse, 7, 8)


def stand_in(
    warehouse: fv.Warehouse, folder: Path
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Put a copy with the table's id and versions, and other rows, in its place; and put that back."""
    place, copy, aside = Path(warehouse.parts.sources.path("r")), folder / "copy", folder / "aside"
    shutil.copytree(place, copy)
    insert(warehouse, 4)
    write_deltalake(copy, some(100), mode="append")

    def swap() -> None:
        place.rename(aside)
        copy.rename(place)

    def put_back() -> None:
        place.rename(copy)
        aside.rename(place)

    return swap, put_back


@pytest.mark.parametrize("step", [(warehouse_module, "compare"), (check_module, "stored_rows")])
def test_nor_repaired_from_one_that_comes_during_the_check(
    warehouse: fv.Warehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: tuple[ModuleType, str],
) -> None:
    swap, put_back = stand_in(warehouse, tmp_path)
    warehouse.refresh()
    module, name = step
    done = getattr(module, name)

    def replacing(*given: Any) -> Any:
        found = done(*given) if name == "compare" else None
        swap()
        return found or done(*given)

    monkeypatch.setattr(module, name, replacing)
    with pytest.raises(HistoryLost):
        warehouse.check("totals", repair_groups=True)
    monkeypatch.undo()
    put_back()
    assert_right(warehouse, 1, 2, 3, 4)
    assert warehouse.check("totals", repair_groups=True).repaired == 0


@pytest.mark.parametrize("made", [True, False])
def test_a_copy_that_stands_in_for_a_table_during_a_refresh(
    warehouse: fv.Warehouse, tmp_path: Path, made: bool
) -> None:
    swap, put_back = stand_in(warehouse, tmp_path)
    with happening("refresh.pinned", swap):
        if made:
            warehouse.create_view("ids", "SELECT id FROM r")
        else:
            warehouse.refresh()
    put_back()
    assert warehouse.refresh()["ids" if made else "totals"].reason == "SOURCE_REPLACED"
    assert_right(warehouse, 1, 2, 3, 4)
    assert not made or sorted(rows(warehouse, "ids")) == [(1,), (2,), (3,), (4,)]
    for view in warehouse.catalog.views():
        assert warehouse.check(view.name).ok


@pytest.mark.parametrize("made", [True, False])
def test_a_pinned_version_that_is_cleaned_up_is_pinned_anew(
    warehouse: fv.Warehouse, made: bool
) -> None:
    place = Path(warehouse.parts.sources.path("r"))
    insert(warehouse, 4)

    def clean_up() -> None:
        write_deltalake(place, some(5), mode="append")
        table = DeltaTable(place)
        table.create_checkpoint()
        for version in range(table.version()):
            (place / "_delta_log" / f"{version:020}.json").unlink()

    with happening("refresh.pinned", clean_up):
        if made:
            warehouse.create_view("ids", "SELECT id FROM r")
            warehouse.refresh()
        else:
            assert warehouse.refresh()["totals"].reason == "HISTORY_LOST"
    assert_right(warehouse, 1, 2, 3, 4, 5)
    assert not made or warehouse.read("ids").count() == 5


def test_a_table_that_is_replaced_while_it_is_opened(
    warehouse: fv.Warehouse, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(warehouse, 4)
    warehouse.refresh()
    place, stamp, replaced = warehouse.parts.sources.path("r"), native_handles.stamp, []

    def replacing(path: str, version: int) -> Any:
        if path == place and not replaced:  # opened, and without its stamp
            replaced.append(path)
            shutil.rmtree(place)
            write_deltalake(place, some(7, 8))
        return stamp(path, version)

    other = fv.open(warehouse.root, spark)
    monkeypatch.setattr(native_handles, "stamp", replacing)
    assert other.refresh()["totals"].reason == "SOURCE_REPLACED"
    assert replaced
    assert_right(other, 7, 8)


def test_an_epoch_has_the_views_that_are_there_now(warehouse: fv.Warehouse) -> None:
    warehouse.create_view("other", "SELECT id FROM r")
    insert(warehouse, 4)
    warehouse.refresh()
    old = warehouse.epoch("totals", "other")
    warehouse.create_view("other", "SELECT v FROM r", replace_existing=True)
    with pytest.raises(NoCommonEpoch):
        warehouse.epoch("totals", "other")
    with pytest.raises(UnknownEpoch):
        warehouse.read("other", epoch=old)
    insert(warehouse, 5)
    warehouse.refresh()
    assert warehouse.read("other", epoch=warehouse.epoch("totals", "other")).count() == 5


def test_a_name_that_was_a_view_can_be_a_table(warehouse: fv.Warehouse) -> None:
    warehouse.create_view("x", "SELECT id FROM r")
    assert warehouse.sql("SELECT id FROM x").count() == 3
    warehouse.sql("CREATE TEMPORARY VIEW mine AS SELECT 1 AS one")
    warehouse.drop_view("x")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        warehouse.sql("SELECT id FROM x")
    warehouse.create_table("x", pa.table({"a": [1]}))
    warehouse.sql("INSERT INTO x VALUES (2)")
    assert {row.a for row in warehouse.sql("SELECT a FROM x").collect()} == {1, 2}
    assert warehouse.sql("SELECT one FROM mine").count() == 1
