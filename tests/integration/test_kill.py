"""A refresh that is killed at any moment leaves nothing wrong, nothing half done, nothing twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from tests.integration.random_views import SCHEMAS, random_rows
from tests.integration.test_crashes import VIEWS as KEPT
from tests.integration.test_crashes import assert_right

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHILD = "tests.integration.refresh_child"
KILLS = 5
VIEWS = {**KEPT, "highest": "SELECT g, max(v) AS v FROM r GROUP BY g"}


def start_child(warehouse: Warehouse) -> subprocess.Popen[str]:
    """A child that has begun to refresh."""
    command = [sys.executable, "-m", CHILD, str(warehouse.root)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "refreshing\n"
    return child


def insert(warehouse: Warehouse, dice: random.Random) -> None:
    warehouse.apply({n: TableChanges(insert=random_rows(n, dice, 20)) for n in ("r", "s")})


def test_killed_refreshes_are_completed_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    seed = 20240617
    dice = random.Random(seed)
    warehouse = open_warehouse(tmp_path / "warehouse", spark)
    for name in SCHEMAS:
        warehouse.create_table(name, random_rows(name, dice, 30))
    for name, text in VIEWS.items():
        warehouse.create_view(name, text)
    insert(warehouse, dice)
    started = time.monotonic()
    child = start_child(warehouse)
    begun = time.monotonic()
    assert child.wait() == 0
    whole_s = time.monotonic() - begun
    assert begun > started
    kills = 0
    for _ in range(3 * KILLS):
        insert(warehouse, dice)
        child = start_child(warehouse)
        try:
            child.wait(timeout=dice.uniform(0.0, whole_s))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            kills += 1
            assert_right(warehouse)  # at the versions that each names, whatever they are
        if kills == KILLS:
            break
    assert kills == KILLS, "too few children were killed during their refresh"
    warehouse.refresh()
    for name in VIEWS:
        result = warehouse.check(name)
        assert result.ok, (seed, result)
    assert not any(report.mode != "unchanged" for report in warehouse.refresh().views)
