"""A process of its own that works on the Spark of the one that started it, to be killed or paused.

``python attached_child.py PATH ACTION POINT NUMBER SIGNAL [EXPIRES]`` opens the warehouse and does
ACTION; when it comes to the fault point POINT for the NUMBERth time, or for NUMBER+MS some
milliseconds later, it sends itself SIGNAL. Its leases expire after EXPIRES seconds. It starts in a
second or two, because the JVM is there already, and a Spark job that it has begun goes on without it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import SparkSession

from freshview import faults
from freshview.errors import FreshviewError
from freshview.planner.plan import Limits
from freshview.runtime import lease
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import Limits as StorageLimits
from soak.attached import attached_session
from soak.dying import stopping_at

ALL_BY_SPARK = (
    Limits(delta_rows=0, lookup_rows=0, whole_view_rows=0),
    StorageLimits(changes_rows=0, lookup_keys=0, read_rows=0, write_rows=0),
)

ROWS = pa.table({"a": [1]})
MARKED = {"k": 77, "h": 77, "w": Decimal(77)}
"""A row of s that is deleted in the transaction in which r gets one."""


def act(warehouse: Warehouse, action: str, sent: int) -> None:
    if action == "refresh":
        warehouse.refresh()
    elif action == "refresh by executors":
        kill_at_work(warehouse.spark, sent)
        Warehouse(warehouse.root, warehouse.spark, *ALL_BY_SPARK).refresh("slow")
    elif action == "recompute":
        warehouse.refresh(full=True)
    elif action == "apply":
        rows = {"id": [1000], "k": [1], "g": ["a"], "v": [None], "day": [None]}
        schema = warehouse.parts.tables.state(warehouse.parts.sources.path("r")).arrow_schema
        warehouse.apply(
            {
                "r": TableChanges(insert=pa.table(rows, schema=schema)),
                "s": TableChanges(delete=[{"k": MARKED["k"], "h": MARKED["h"]}], key=["k", "h"]),
            }
        )
    elif action == "create":
        warehouse.create_view("made", "SELECT g, count(*) AS n FROM r GROUP BY g")
    elif action == "create table":
        warehouse.create_table("begun", ROWS)
    elif action == "drop":
        warehouse.drop_view("made")
    else:
        raise ValueError(action)


def kill_at_work(spark: SparkSession, sent: int) -> None:
    """Send this process a signal as soon as a job runs."""

    def wait() -> None:
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.01)
        os.kill(os.getpid(), sent)

    threading.Thread(target=wait, daemon=True).start()


def forked(log: str, environment: dict[str, str], *arguments: str) -> None:
    """The child in a process that was forked from one which has loaded all this."""
    os.environ.update(environment)
    written = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(written, sys.stdout.fileno())
    os.dup2(written, sys.stderr.fileno())
    main(*arguments)


def main(path: str, action: str, point: str, number: str, sent: str, expires: str = "") -> None:
    if expires:
        lease.EXPIRES_S = float(expires)
    warehouse = open_warehouse(path, attached_session(), create=False)
    signal_sent = getattr(signal, sent)
    faults.install(stopping_at(f"{point}:{number}", signal_sent))
    try:
        act(warehouse, action, signal_sent)
    except FreshviewError as error:
        sys.stdout.write(f"{error.code}\n")
    else:
        sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
