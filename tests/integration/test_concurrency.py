"""Several refreshers, writers and readers at once: overtaken, paused, dropped under one's feet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import (
    InvalidChanges,
    LeaseLost,
    NameTaken,
    TransactionUnfinished,
    UnknownEpoch,
    UnknownName,
)
from freshview.runtime import lease
from soak.attached import environment
from tests.integration.two_views import (
    assert_right,
    happening,
    insert,
    rows,
    some,
    with_two_views,
)

pytestmark = pytest.mark.spark

EXPIRES_S = 2.0


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> fv.Warehouse:
    return with_two_views(spark, tmp_path)


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
    assert found.sources["r"] == warehouse.parts.sources.pinned("r")


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
