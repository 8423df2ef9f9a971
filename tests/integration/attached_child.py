"""A process of its own that works on the Spark of the one that started it, to be killed or paused.

``python attached_child.py PATH ACTION POINT NUMBER SIGNAL [EXPIRES]`` opens the warehouse and does
ACTION; when it comes to the fault point POINT for the NUMBERth time it sends itself SIGNAL. Its leases
expire after EXPIRES seconds. It starts in a second or two, because the JVM is there already, and a
Spark job that it has begun goes on without it.
"""

from __future__ import annotations

import os
import signal
import sys

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from freshview import faults
from freshview.errors import FreshviewError
from freshview.runtime import lease
from freshview.runtime.transactions import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse


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


def main() -> None:
    path, action, point, number, sent, *expires = sys.argv[1:]
    if expires:
        lease.EXPIRES_S = float(expires[0])
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
    try:
        act(warehouse, action)
    except FreshviewError as error:
        sys.stdout.write(f"{error.code}\n")
    else:
        sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
