"""What killed processes leave behind is removed, and nothing that a running one needs."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from freshview.runtime.table_changes import TableChanges
from freshview.runtime.vacuum import OLD_EPOCH, OLD_FILE, STAGED_ROWS, TEMPORARY, UNFINISHED_VIEW
from freshview.runtime.warehouse import Warehouse, open_warehouse
from soak.attached import environment
from tests.integration.random_views import random_rows
from tests.integration.test_crashes import CHILD, VIEWS, assert_right, killed, with_views

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOURS = 2
KILLS = {
    ("create", "create.evaluated"): set(),
    ("create", "create.written"): {UNFINISHED_VIEW},
    ("apply", "transaction.staged"): {STAGED_ROWS},
    ("refresh", "refresh.before_commit"): set(),
    ("create", "create.catalogued"): set(),
    ("drop", "drop.catalogued"): {UNFINISHED_VIEW},
}
"""What each leaves; in this order a view is there to be dropped at the end."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Warehouse:
    folder = tmp_path_factory.mktemp("leftovers") / "warehouse"
    return with_views(folder, spark, random.Random(4))


def age(folder: Path) -> None:
    """Make everything older than the retention."""
    then = time.time() - 2 * HOURS * 3600
    for path in (*folder.rglob("*"), folder):
        if "leases" not in path.parts and path.parent.name != "lease":
            os.utime(path, (then, then))


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def test_what_killed_processes_leave_is_found_and_removed(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    for (action, point), kinds in KILLS.items():
        dice = random.Random(point)
        warehouse.apply({n: TableChanges(insert=random_rows(n, dice, 6)) for n in ("r", "s")})
        killed(spark, warehouse.root, action, point, "1")
        if action != "drop":  # its folder has been there for long
            assert warehouse.vacuum(HOURS) == []
        age(warehouse.root)
        tables = files(warehouse.root / "tables")
        listed = warehouse.vacuum(HOURS)
        assert {x.kind for x in listed} - {OLD_FILE, OLD_EPOCH, TEMPORARY} == kinds, (action, point)
        assert all(x.path.exists() for x in listed)
        assert warehouse.vacuum(HOURS, remove=True) == listed
        assert not any(x.path.exists() for x in listed)
        assert warehouse.vacuum(HOURS) == []
        assert files(warehouse.root / "tables") == tables
        assert_right(warehouse)
    warehouse.refresh()
    for name in VIEWS:
        assert warehouse.check(name).ok


def test_a_creation_that_is_only_silent_keeps_its_folder(
    warehouse: Warehouse, spark: SparkSession
) -> None:
    command = [sys.executable, "-m", CHILD, str(warehouse.root), "create", "create.written", "1"]
    child = subprocess.Popen([*command, "SIGSTOP"], env=environment(spark))
    try:
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        (folder,) = (warehouse.root / "views").glob("made-*")
        age(warehouse.root)
        assert folder not in {x.path for x in warehouse.vacuum(HOURS, remove=True)}
        child.send_signal(signal.SIGCONT)
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.wait()
    again = open_warehouse(warehouse.root, spark)
    assert Path(again.catalog.path(again.catalog.view("made"))) == folder
    assert_right(again)
    assert again.check("made").ok
