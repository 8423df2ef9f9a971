"""Ctrl-C and SIGTERM during a refresh: it ends soon and tidily, and the next one is right."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from soak.attached import environment
from tests.integration.random_views import random_rows
from tests.integration.test_crashes import CHILD, assert_right, with_views

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SOURCES = Path(__file__).parents[2] / "src"
SLOW = """SELECT id, aggregate(sequence(0, 1500), 0L, (a, x) -> a + aggregate(
    sequence(0, 1000), 0L, (b, y) -> b + (x + y + id) % 7)) AS sum FROM numbers"""
ROWS = 5000
"""A row of the view takes longer than a tenth of a second, all of them longer than any timeout."""
CASES = [
    ("refresh", "refresh.pinned", 1, "SIGINT"),
    ("refresh", "refresh.stage", 5, "SIGTERM"),
    ("refresh", "refresh.before_commit", 1, "SIGINT"),
    ("refresh", "refresh.between_views", 1, "SIGTERM"),
    ("refresh", "refresh.before_epoch", 1, "SIGINT"),
    ("recompute", "refresh.before_commit", 2, "SIGINT"),
    ("create", "create.written", 1, "SIGTERM"),
]
CANCELLED_BY_THEN = ("refresh.pinned", "refresh.stage", "refresh.between_views")
"""Where work is left to be done, the log tells that it was not."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Warehouse:
    folder = tmp_path_factory.mktemp("cancel") / "warehouse"
    return with_views(folder, spark, random.Random(4))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Warehouse:
    """A warehouse whose refresh takes longer than anybody waits."""
    made = open_warehouse(tmp_path_factory.mktemp("slow") / "warehouse", spark)
    made.create_table("numbers", pa.schema([("id", pa.int64())]))
    made.create_view("slow", SLOW, policy="INCREMENTAL")
    made.apply({"numbers": TableChanges(insert=pa.table({"id": range(ROWS)}))})
    return made


def leases_not_given_back(warehouse: Warehouse) -> list[Path]:
    """Leases whose holder went without a word: one that is given back has the time zero."""
    folders = {file.parent for file in (warehouse.root / "_freshview").rglob("[0-9]" * 12)}
    newest = [max(folder.glob("[0-9]" * 12)) for folder in folders]
    assert newest
    return [file for file in newest if file.stat().st_mtime_ns != 0]


@pytest.mark.parametrize(("action", "point", "number", "sent"), CASES)
def test_a_signal_ends_a_refresh_tidily(
    action: str, point: str, number: int, sent: str, warehouse: Warehouse, spark: SparkSession
) -> None:
    dice = random.Random(f"{point}{number}")
    warehouse.apply({n: TableChanges(insert=random_rows(n, dice, 6)) for n in ("r", "s")})
    command = [sys.executable, "-m", CHILD, str(warehouse.root), action, point, str(number), sent]
    child = subprocess.run(
        command, env=environment(spark), capture_output=True, text=True, timeout=120, check=False
    )
    expected = -getattr(signal, sent)
    assert (child.returncode, child.stdout) == (expected, ""), child.stderr
    assert leases_not_given_back(warehouse) == []
    again = open_warehouse(warehouse.root, spark)
    assert list((again.root / "views").glob("made-*")) == []
    assert "made" not in again.catalog
    assert_right(again)
    again.refresh()
    assert_right(again)
    assert {report.mode for report in again.refresh().views} == {"unchanged"}
    if point in CANCELLED_BY_THEN:
        assert last_failure(again) == "CANCELLED"


def test_a_signal_cancels_the_jobs_of_a_refresh(slow: Warehouse, spark: SparkSession) -> None:
    command = [sys.executable, "-m", CHILD, str(slow.root), "refresh by executors"]
    child = subprocess.run(
        [*command, "none", "0", "SIGINT"],
        env=environment(spark),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.returncode, child.stdout) == (-signal.SIGINT, ""), child.stderr
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert_cancelled(slow)


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_the_command_says_so_in_a_line(sent: str, slow: Warehouse) -> None:
    """In a process and a JVM of its own, a second after the evaluation in the driver began."""
    number = getattr(signal, sent)
    code = f"""
import os, threading
from freshview import faults
from freshview.cli.main import main
met = []
def handler(point):
    met.append(point)
    if met.count("refresh.stage") == 2:
        threading.Timer(1, os.kill, (os.getpid(), {int(number)})).start()
faults.install(handler)
main()"""
    command = [sys.executable, "-c", code, "refresh", "slow", "--warehouse", str(slow.root)]
    variables = {**os.environ, "PYTHONPATH": str(SOURCES)}
    ended = subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    line = f"Cancelled by {sent}; what was committed is whole, the rest is as it was.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", line)
    assert_cancelled(slow)


def test_the_refresh_after_it_is_right(slow: Warehouse) -> None:
    slow.apply({"numbers": TableChanges(delete=pa.table({"id": range(1, ROWS)}), key=["id"])})
    assert slow.refresh()["slow"].mode == "incremental"
    assert slow.check("slow").ok


def assert_cancelled(slow: Warehouse) -> None:
    """The view is as it was created, its lease is free, and the log tells why."""
    assert slow.parts.sources.latest("slow") == 0
    assert leases_not_given_back(slow) == []
    assert last_failure(slow) == "CANCELLED"


def last_failure(warehouse: Warehouse) -> str | None:
    rows = warehouse.parts.log.read(["time", "mode", "reason"]).sort_by("time").to_pylist()
    failed = [row["reason"] for row in rows if row["mode"] == "failed"]
    return failed[-1] if failed else None
