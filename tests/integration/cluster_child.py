"""Refreshes on the Spark master that is named: ``python cluster_child.py MASTER FOLDER``.

First what is small in the driver, then everything by executors, of which one is killed between two
refreshes and one during the second. Prints as one JSON object what ran where and what came to the driver.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from freshview.planner.plan import Limits
from freshview.runtime.session import spark_session
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from tests.integration.random_views import SCHEMAS, random_rows
from tests.integration.test_crashes import VIEWS, assert_right
from tests.integration.test_random_views import NOTHING_NATIVE
from tests.interpreted import INTERPRETED

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that ends before more compilation pays."""
KEPT = ("totals", "joined")
LIMIT = 3
BATCH = 20
ALL_BY_SPARK = (
    Limits(delta_rows=LIMIT, lookup_rows=0, whole_view_rows=0),
    NOTHING_NATIVE,
)


class Fetched:
    """The most rows that any query has brought to this process."""

    def __init__(self) -> None:
        self.rows_max = 0
        for name in ("toArrow", "collect"):
            self._count(name)

    def _count(self, name: str) -> None:
        plain = getattr(DataFrame, name)

        def counting(frame: DataFrame) -> Any:
            found = plain(frame)
            self.rows_max = max(self.rows_max, len(found))
            return found

        setattr(DataFrame, name, counting)


class Cluster:
    """What the driver knows of its executors, and how to kill one."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._store = self._context._jsc.sc().statusStore()
        self.killed: list[int] = []

    def tasks(self) -> dict[str, int]:
        """How many tasks each executor has run, the dead ones and the driver among them."""
        listed = self._store.executorList(False)
        found = [listed.apply(place) for place in range(listed.size())]
        return {each.id(): each.totalTasks() for each in found}

    def live(self) -> int:
        """How many executors there are."""
        listed = self._store.executorList(True)
        return int(listed.size()) - 1

    def lost(self, expected: int) -> int:
        """How many executors are gone; the driver notices it some time later."""
        deadline = time.monotonic() + 60
        while True:
            found = len(self.tasks()) - 1 - self.live()
            if found >= expected or time.monotonic() > deadline:
                return found
            time.sleep(0.1)

    def kill_one(self) -> None:
        """One that was not killed yet: on a busy machine a killed process is listed for a while."""
        alive = [p for p in executors(self._context.applicationId) if p not in self.killed]
        os.kill(alive[0], signal.SIGKILL)
        self.killed.append(alive[0])

    def kill_one_at_work(self) -> threading.Thread:
        """Kill an executor as soon as a job runs."""

        def wait() -> None:
            tracker = self._context.statusTracker()
            while not tracker.getActiveJobsIds():
                time.sleep(0.002)
            self.kill_one()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread


def executors(application: str) -> list[int]:
    """The processes of an application's executors."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes() if folder.name.isdecimal() else b""
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and application.encode() in command:
            found.append(int(folder.name))
    return sorted(found)


def prepared(spark: SparkSession, folder: Path, *limits: Any) -> Warehouse:
    warehouse = Warehouse(open_warehouse(folder, spark).root, spark, *limits)
    dice = random.Random(11)
    for name in SCHEMAS:
        warehouse.create_table(name, random_rows(name, dice, 40))
    for name in KEPT:
        warehouse.create_view(name, VIEWS[name], policy="INCREMENTAL")
    return warehouse


def refreshed(warehouse: Warehouse, seed: int) -> dict[str, str]:
    """Change two tables and refresh; how each view was refreshed. It must be right."""
    dice = random.Random(seed)
    warehouse.apply({n: TableChanges(insert=random_rows(n, dice, BATCH)) for n in ("r", "s")})
    modes = {report.view: report.mode for report in warehouse.refresh().views}
    assert_right(warehouse)
    return modes


def rows_of_views(warehouse: Warehouse) -> dict[str, list[str]]:
    return {n: sorted(str(tuple(row)) for row in warehouse.read(n).collect()) for n in KEPT}


def scenario(spark: SparkSession, folder: Path) -> dict[str, Any]:
    cluster, fetched = Cluster(spark), Fetched()
    answer: dict[str, Any] = {"modes": [refreshed(prepared(spark, folder / "driver"), 1)]}
    warehouse = prepared(spark, folder / "executors", *ALL_BY_SPARK)
    before, fetched.rows_max = cluster.tasks(), 0
    answer["modes"].append(refreshed(warehouse, 2))
    answer["fetched_rows_max"] = fetched.rows_max
    after = cluster.tasks()
    answer["executors"] = cluster.live()
    answer["tasks"] = {name: count - before.get(name, 0) for name, count in after.items()}
    cluster.kill_one()
    killing = cluster.kill_one_at_work()
    answer["modes"].append(refreshed(warehouse, 3))
    killing.join()
    answer["killed"] = len(cluster.killed)
    answer["lost"] = cluster.lost(len(cluster.killed))
    answer["checked"] = [warehouse.check(name).ok for name in KEPT]
    answer["rows"] = rows_of_views(warehouse)
    return answer


if __name__ == "__main__":
    master, path = sys.argv[1:]
    settings = {
        **INTERPRETED,
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
    }
    session = spark_session(master=master, memory="1g", extra=settings)
    sys.stdout.write(json.dumps(scenario(session, Path(path))))
