"""A process of its own that works on the Spark of the one that started it, to be killed or paused.

``python attached_child.py PATH ACTION POINT NUMBER SIGNAL`` opens the warehouse and does ACTION; when
it comes to the fault point POINT for the NUMBERth time it sends itself SIGNAL. It starts in a second
or two, because the JVM is there already, and a Spark job that it has begun goes on without it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from freshview import faults
from freshview.planner.plan import Limits
from freshview.runtime.transactions import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import Limits as StorageLimits

ALL_BY_SPARK = (
    Limits(delta_rows=0, lookup_rows=0, whole_view_rows=0),
    StorageLimits(changes_rows=0, lookup_keys=0, read_rows=0, write_rows=0),
)


def attached_session() -> SparkSession:
    """A session of the JVM whose gateway is named in the environment."""
    gateway = launch_gateway()
    jvm = gateway.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context).newSession()


def environment(spark: SparkSession) -> dict[str, str]:
    """What a child needs to find this process's JVM."""
    parameters = spark.sparkContext._gateway.gateway_parameters
    return {
        **os.environ,
        "PYSPARK_GATEWAY_PORT": str(parameters.port),
        "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
    }


def act(warehouse: Warehouse, action: str) -> None:
    if action == "refresh":
        warehouse.refresh()
    elif action == "refresh by executors":
        kill_at_work(warehouse.spark)
        Warehouse(warehouse.root, warehouse.spark, *ALL_BY_SPARK).refresh("slow")
    elif action == "recompute":
        warehouse.refresh(full=True)
    elif action == "apply":
        rows = {"id": [1000], "k": [1], "g": ["a"], "v": [None], "day": [None]}
        schema = warehouse.parts.tables.state(warehouse.parts.sources.path("r")).arrow_schema
        warehouse.apply(
            {
                "r": TableChanges(insert=pa.table(rows, schema=schema)),
                "s": TableChanges(delete=[{"k": 1, "h": 1}], key=["k", "h"]),
            }
        )
    elif action == "create":
        warehouse.create_view("made", "SELECT g, count(*) AS n FROM r GROUP BY g")
    elif action == "drop":
        warehouse.drop_view("made")
    else:
        raise ValueError(action)


def kill_at_work(spark: SparkSession) -> None:
    """Send this process the signal that it was called with as soon as a job runs."""

    def wait() -> None:
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.01)
        os.kill(os.getpid(), getattr(signal, sys.argv[5]))

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    path, action, point, number, sent = sys.argv[1:]
    met = 0

    def handler(name: str) -> None:
        nonlocal met
        met += name == point
        if name == point and met == int(number):
            sys.stdout.write(f"{name}\n")
            sys.stdout.flush()
            os.kill(os.getpid(), getattr(signal, sent))

    warehouse = open_warehouse(path, attached_session(), create=False)
    faults.install(handler)
    act(warehouse, action)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
