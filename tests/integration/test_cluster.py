"""The engine on a standalone Spark cluster: a master and two workers in processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from freshview.runtime.jars import spark_home
from freshview.runtime.java import find_java
from tests.integration.cluster_child import (
    BATCH,
    KEPT,
    LIMIT,
    SHORT_LIVED,
    prepared,
    refreshed,
    rows_of_views,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHILD = Path(__file__).with_name("cluster_child.py")
ROOT = Path(__file__).parents[2]


@contextmanager
def daemon(log: Path, name: str, *arguments: str) -> Iterator[None]:
    """One of Spark's daemons, until the block ends."""
    java = find_java().home / "bin" / "java"
    options = ("-Xmx512m", *SHORT_LIVED.split())
    command = [str(java), *options, "-cp", f"{spark_home()}/jars/*", name, *arguments]
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # what Spark's shell scripts tell a worker for its executors
    }
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def found_in(log: Path, pattern: str) -> str:
    """The first match in a growing log."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        match = re.search(pattern, log.read_text())
        if match:
            return match.group()
        time.sleep(0.1)
    raise AssertionError(f"{pattern} is not in {log}:\n{log.read_text()[-2000:]}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster of two workers."""
    with ExitStack() as running:
        log = tmp_path / "master.log"
        local = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        running.enter_context(daemon(log, "org.apache.spark.deploy.master.Master", *local))
        address = found_in(log, r"spark://127\.0\.0\.1:\d+")
        for number in (1, 2):
            log = tmp_path / f"worker{number}.log"
            folder = ("--work-dir", str(tmp_path / f"work{number}"), "-c", "1", "-m", "600m")
            name = "org.apache.spark.deploy.worker.Worker"
            running.enter_context(daemon(log, name, *local, *folder, address))
            found_in(log, "Successfully registered with master")
        yield address


def test_a_cluster_does_the_work_and_survives_lost_executors(
    master: str, spark: SparkSession, tmp_path: Path
) -> None:
    command = [sys.executable, str(CHILD), master, str(tmp_path / "cluster")]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    child = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert child.returncode == 0, child.stderr
    answer = json.loads(child.stdout)
    assert answer["modes"] == [dict.fromkeys(KEPT, "incremental")] * 3
    # Deltas above the limits stay with the executors: the driver runs no task, and gets no more
    # rows of one query than the one that tells it that there are too many.
    assert answer["executors"] == 2
    assert answer["tasks"].pop("driver") == 0
    assert all(count > 0 for count in answer["tasks"].values()), answer["tasks"]
    assert BATCH > LIMIT + 1 >= answer["fetched_rows_max"]
    assert (answer["killed"], answer["lost"]) == (2, 2)
    assert answer["checked"] == [True] * len(KEPT)
    local = prepared(spark, tmp_path / "local")
    for seed in (2, 3):
        refreshed(local, seed)
    assert answer["rows"] == rows_of_views(local)
