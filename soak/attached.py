"""Processes of their own that share one running Spark: they start in a second or two.

A Spark job that such a process has begun goes on when the process is killed, which is harsher than
the loss of both: a zombie that may commit later.
"""

from __future__ import annotations

import os

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from freshview.runtime.session import spark_session


def attached_session() -> SparkSession:
    """A session of the JVM whose gateway is named in the environment."""
    gateway = launch_gateway()
    jvm = gateway.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context).newSession()


def shared_session(app_name: str) -> SparkSession:
    """The Spark that such processes share, in a JVM of this process."""
    return spark_session(
        master="local[2]",
        memory="3g",
        app_name=app_name,
        extra={"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"},
    )


def environment(spark: SparkSession) -> dict[str, str]:
    """What a child needs to find this process's JVM."""
    parameters = spark.sparkContext._gateway.gateway_parameters
    return {
        **os.environ,
        "PYSPARK_GATEWAY_PORT": str(parameters.port),
        "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
    }
