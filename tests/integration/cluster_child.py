"""The same work on the Spark master that is named: ``python cluster_child.py MASTER FOLDER``.

Prints what every view holds after each batch, and how each was refreshed, as one JSON object.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from freshview.planner.plan import Limits
from freshview.runtime.session import spark_session
from freshview.runtime.transactions import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import Limits as StorageLimits
from tests.integration.random_views import SCHEMAS, random_rows

VIEWS = {
    "totals": "SELECT g, count(*) AS n, sum(v) AS total FROM r GROUP BY g",
    "joined": "SELECT r.id AS id, s.w AS w FROM r JOIN s ON r.k = s.k",
    "above": "SELECT count(*) AS groups, sum(n) AS rows FROM totals",
    "highest": "SELECT g, max(v) AS v FROM r GROUP BY g",
}
ALL_BY_SPARK = (
    Limits(delta_rows=0, lookup_rows=0, whole_view_rows=0),
    StorageLimits(
        changes_rows=0,
        changes_bytes=0,
        lookup_keys=0,
        lookup_rows=0,
        read_rows=0,
        write_rows=0,
        merge_table_bytes=0,
    ),
)


def scenario(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Views over three tables and two batches, small ones in the driver and all by executors."""
    found: dict[str, Any] = {}
    for way in ("driver", "executors"):
        dice = random.Random(11)
        root = open_warehouse(folder / way, spark).root
        limits = ALL_BY_SPARK if way == "executors" else (None, None)
        warehouse = Warehouse(root, spark, *limits)
        for name in SCHEMAS:
            warehouse.create_table(name, random_rows(name, dice, 40))
        for name, text in VIEWS.items():
            warehouse.create_view(name, text)
        for batch in range(2):
            changes = {n: TableChanges(insert=random_rows(n, dice, 5)) for n in ("r", "s")}
            warehouse.apply(changes)
            modes = {report.view: report.mode for report in warehouse.refresh().views}
            found[f"{way} {batch}"] = {
                name: {
                    "mode": modes[name],
                    "right": warehouse.check(name).ok,
                    "rows": sorted(str(tuple(row)) for row in warehouse.read(name).collect()),
                }
                for name in VIEWS
            }
    return found


if __name__ == "__main__":
    master, path = sys.argv[1:]
    settings = {"spark.executor.memory": "512m", "spark.cores.max": "2"}
    session = spark_session(master=master, memory="1g", extra=settings)
    answer = {"found": scenario(session, Path(path))}
    tracker = session.sparkContext._jsc.sc().getExecutorMemoryStatus()
    answer["executors"] = tracker.size() - 1
    sys.stdout.write(json.dumps(answer))
