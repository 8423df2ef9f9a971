"""Several refreshers, writers and readers at once: overtaken, paused, dropped under one's feet."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

import freshview as fv
from freshview import faults
from freshview.errors import (
    InvalidChanges,
    LeaseLost,
    NameTaken,
    TableMissing,
    TableUnreadable,
    TransactionUnfinished,
    UnknownEpoch,
    UnknownName,
)
from freshview.runtime import lease
from freshview.runtime.report import UNCHANGED
from soak.attached import environment

pytestmark = pytest.mark.spark

TOTALS = "SELECT g, count(*) AS n, sum(v) AS total FROM r GROUP BY g"
SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.string()), ("v", pa.decimal128(10, 2))])
EXPIRES_S = 2.0


def some(*values: int) -> pa.Table:
    rows = [{"id": value, "g": "a", "v": Decimal(value)} for value in values]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> fv.Warehouse:
    made = fv.open(tmp_path / "warehouse", spark)
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


@pytest.mark.parametrize(
    "point", ["refresh.pinned", "refresh.between_views", "refresh.before_epoch"]
)
def test_a_refresher_that_is_overtaken_begins_again(
    warehouse: fv.Warehouse, spark: SparkSession, point: str
) -> None:
    other = fv.open(warehouse.root, spark)
    insert(warehouse, 4)

    def overtake() -> None:
        insert(other, 5)
        other.refresh()

    with happening(point, overtake):
        report = warehouse.refresh()
    assert report.epoch is None or report.epoch == warehouse.epoch("totals", "above")
    assert_right(warehouse, 1, 2, 3, 4, 5)
    assert_epochs_rise(warehouse)


def assert_epochs_rise(warehouse: fv.Warehouse) -> None:
    """No view is older in a later epoch, and those of one epoch agree."""
    last = dict.fromkeys(("totals", "above"), -1)
    for number in warehouse.parts.epochs.numbers():
        epoch = warehouse.parts.epochs.read(number)
        assert epoch is not None
        for view, held in epoch.views.items():
            assert held.version >= last[view]
            last[view] = held.version
        if "above" in epoch.views:
            ((_, _, below),) = rows(warehouse, "totals", epoch.views["totals"].version)
            assert rows(warehouse, "above", epoch.views["above"].version) == [(below,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "number", "outcome"),
    [
        ("refresh.stage", 1, "LEASE_LOST"),
        ("refresh.stage", 4, "LEASE_LOST"),
        ("refresh.before_commit", 1, "done"),
        ("refresh.before_commit", 2, "done"),
        ("refresh.after_commit", 1, "done"),
    ],
)
def test_a_refresher_paused_past_its_lease_cannot_commit(
    warehouse: fv.Warehouse,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    number: int,
    outcome: str,
) -> None:
    """One that wakes before its last check gets LEASE_LOST.

    One that wakes after it finds the number of its commit taken, and begins again.
    """
    monkeypatch.setattr(lease, "EXPIRES_S", EXPIRES_S)
    insert(warehouse, 4)
    arguments = [str(warehouse.root), "refresh", point, str(number), "SIGSTOP", str(EXPIRES_S)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.integration.attached_child", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(spark),
    ) as sleeper:
        _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        insert(warehouse, 5)
        warehouse.refresh()
        versions = {name: warehouse.parts.sources.latest(name) for name in ("totals", "above")}
        os.kill(sleeper.pid, signal.SIGCONT)
        said, problems = sleeper.communicate(timeout=120)
    assert said.split() == [outcome], problems
    assert versions == {name: warehouse.parts.sources.latest(name) for name in versions}
    assert_right(warehouse, 1, 2, 3, 4, 5)
    assert_epochs_rise(warehouse)


def test_a_view_dropped_during_a_refresh_is_no_error(
    warehouse: fv.Warehouse, spark: SparkSession
) -> None:
    other = fv.open(warehouse.root, spark)
    insert(warehouse, 4)
    with happening("refresh.between_views", lambda: other.drop_view("above")):
        report = warehouse.refresh()
    assert [view.view for view in report.views] == ["totals"]
    with pytest.raises(UnknownName):
        warehouse.refresh("above")


def test_an_epoch_of_a_view_that_was_replaced_is_not_read_from_the_new_one(
    warehouse: fv.Warehouse,
) -> None:
    insert(warehouse, 4)
    epoch = warehouse.refresh().epoch
    assert epoch is not None
    assert warehouse.read("above", epoch=epoch).collect() == [(Decimal(10),)]
    query = "SELECT sum(n) AS total FROM totals"
    warehouse.create_view("above", query, replace_existing=True)
    insert(warehouse, 5)
    warehouse.refresh()
    with pytest.raises(UnknownEpoch):
        warehouse.read("above", epoch=epoch)


def test_two_views_of_one_name_made_at_once(warehouse: fv.Warehouse, spark: SparkSession) -> None:
    outcomes = []

    def make() -> None:
        try:
            fv.open(warehouse.root, spark).create_view("made", "SELECT g FROM r")
        except NameTaken as taken:
            outcomes.append(taken.code)
        else:
            outcomes.append("made")

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["NAME_TAKEN", "made"]
    assert warehouse.check("made").ok
    assert len(list((warehouse.root / "views").glob("made-*"))) == 1


def test_a_view_is_not_made_over_one_that_goes_meanwhile(
    warehouse: fv.Warehouse, spark: SparkSession
) -> None:
    other = fv.open(warehouse.root, spark)
    with (
        pytest.raises(UnknownName),
        happening("create.written", lambda: other.drop_view("above")),
    ):
        warehouse.create_view("top", "SELECT * FROM above")
    assert [view.name for view in other.catalog.views()] == ["totals"]
    assert len(list((warehouse.root / "views").iterdir())) == 1


def test_what_a_table_refuses_is_found_before_anything_is_written(
    warehouse: fv.Warehouse, spark: SparkSession
) -> None:
    """And so an outside writer, whatever it does meanwhile, loses nothing."""
    place = constrained(warehouse, spark)
    before = warehouse.parts.sources.latest("r")
    with pytest.raises(InvalidChanges) as caught:
        warehouse.apply(changes_to_both(-1))
    assert "positive" in str(caught.value).lower()
    assert warehouse.parts.sources.latest("r") == before
    assert not list((warehouse.root / "_freshview" / "transactions").glob("*.*"))
    assert warehouse.apply(changes_to_both(7)) == {"r": before + 1, "s": 2}
    assert spark.read.format("delta").load(place).count() == 2


def constrained(warehouse: fv.Warehouse, spark: SparkSession) -> str:
    warehouse.create_table("s", pa.table({"id": [1]}))
    path = warehouse.parts.sources.path("s")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (id > 0)")
    return path


def changes_to_both(number: int) -> dict[str, fv.TableChanges]:
    return {
        "r": fv.TableChanges(insert=some(abs(number))),
        "s": fv.TableChanges(insert=pa.table({"id": [number]})),
    }


def test_a_transaction_that_cannot_be_completed_stops_only_its_own_tables(
    warehouse: fv.Warehouse, spark: SparkSession
) -> None:
    """A rule that came after the trial: the transaction waits, and everybody else goes on."""
    warehouse.create_table("other", some(1))
    warehouse.create_view("others", "SELECT sum(v) AS v FROM other", policy="INCREMENTAL")
    warehouse.create_table("s", pa.table({"id": [1]}))
    path = warehouse.parts.sources.path("s")
    rule = f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (id > 0)"
    with (
        pytest.raises(TransactionUnfinished),
        happening("transaction.intended", lambda: spark.sql(rule)),
    ):
        warehouse.apply(changes_to_both(-4))
    again = fv.open(warehouse.root, spark)
    again.apply({"other": fv.TableChanges(insert=some(2))})
    with pytest.raises(TransactionUnfinished):
        again.apply({"r": fv.TableChanges(insert=some(9))})
    with pytest.raises(TransactionUnfinished) as caught:
        again.refresh()
    assert "Views that read it keep their state: above." in caught.value.__notes__
    assert rows(again, "others") == [(Decimal(3),)]
    assert rows(again, "totals") == [("a", 3, Decimal(6))]
    spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT positive")
    again.refresh()
    assert_right(again, 1, 2, 3, 4)
    assert again.table("s").count() == 2


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


def test_a_commit_between_two_questions_mixes_nothing(
    warehouse: fv.Warehouse, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view's version and what it has consumed are of one moment."""
    other = fv.open(warehouse.root, spark)
    insert(warehouse, 4)
    tables, honest = warehouse.parts.tables, warehouse.parts.tables.last_commit
    raced = []

    def overtaken(path: str, *arguments: Any) -> Any:
        if not raced:
            raced.append(path)
            other.refresh("totals")
        return honest(path, *arguments)

    monkeypatch.setattr(tables, "last_commit", overtaken)
    warehouse._refresher._consumed.clear()
    found = warehouse._refresher.consumed(warehouse.catalog.view("totals"))
    assert raced
    assert found.version == other.parts.sources.latest("totals")
    assert found.sources["r"] == warehouse._refresher.pinned("r")


def test_a_view_is_made_beside_quick_refreshers(
    warehouse: fv.Warehouse, spark: SparkSession
) -> None:
    other = fv.open(warehouse.root, spark)

    def overtake() -> None:
        insert(other, 4)
        other.refresh()

    with happening("refresh.pinned", overtake):
        warehouse.create_view("top", "SELECT sum(total) AS t FROM above")
    assert rows(warehouse, "top") == [(Decimal(10),)]


def test_a_view_is_not_changed_by_a_transaction(warehouse: fv.Warehouse) -> None:
    with pytest.raises(InvalidChanges) as caught:
        warehouse.apply({"above": fv.TableChanges(insert=[{"total": Decimal(1)}])})
    assert "it is a view" in str(caught.value)
    assert rows(warehouse, "above") == [(Decimal(6),)]


@pytest.mark.slow
def test_versions_pinned_by_one_that_slept_are_not_used(
    warehouse: fv.Warehouse, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sleeps between two tables, and others write both of them in one transaction."""
    monkeypatch.setattr(lease, "EXPIRES_S", EXPIRES_S)
    warehouse.create_table("s", some(10))
    warehouse.create_view("both", "SELECT r.id FROM r JOIN s ON r.g = s.g", policy="INCREMENTAL")
    insert(warehouse, 4)
    arguments = [str(warehouse.root), "refresh", "refresh.pinning", "1", "SIGSTOP", str(EXPIRES_S)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.integration.attached_child", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(spark),
    ) as sleeper:
        _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        changes = {name: fv.TableChanges(insert=some(5)) for name in ("r", "s")}
        newest = warehouse.apply(changes)
        os.kill(sleeper.pid, signal.SIGCONT)
        said, _ = sleeper.communicate(timeout=120)
    assert said.split() == ["done"]
    consumed = warehouse._refresher.consumed(warehouse.catalog.view("both"))
    assert {name: source.version for name, source in consumed.sources.items()} == newest


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


def test_a_creator_that_slept_past_its_lease_makes_no_view(
    warehouse: fv.Warehouse, spark: SparkSession
) -> None:
    query = "SELECT count(*) AS n FROM r"

    def meanwhile() -> None:
        held = max(lease.view_lease(warehouse.root, "made").glob("0*"))
        os.utime(held, (0, 0))
        insert(warehouse, 4)
        fv.open(warehouse.root, spark).create_view("made", query)

    with happening("create.written", meanwhile), pytest.raises(LeaseLost):
        warehouse.create_view("made", query)
    assert len(list(warehouse.root.glob("views/made-*"))) == 1
    assert warehouse.read("made").collect()[0]["n"] == 4


def test_a_view_that_is_in_the_catalog_stays_when_its_creator_fails(
    warehouse: fv.Warehouse, spark: SparkSession
) -> None:
    def meanwhile() -> None:
        fv.open(warehouse.root, spark).set_policy("made", "INCREMENTAL")
        raise InterruptedError

    with happening("create.catalogued", meanwhile), pytest.raises(InterruptedError):
        warehouse.create_view("made", "SELECT count(*) AS n FROM r")
    assert warehouse.check("made").ok


def test_views_that_are_refreshed_have_an_epoch_beside_one_that_fails(
    warehouse: fv.Warehouse,
) -> None:
    warehouse.create_view("fails", "SELECT id, 1 / (id - 4) AS x FROM r", policy="INCREMENTAL")
    before = warehouse.epoch("totals", "above")
    insert(warehouse, 4)
    with pytest.raises(ArithmeticException):
        warehouse.refresh()
    after = warehouse.epoch("totals", "above")
    assert before is not None
    assert after is not None
    assert after > before
    assert warehouse.read("totals", epoch=after).collect()[0]["n"] == 4


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
