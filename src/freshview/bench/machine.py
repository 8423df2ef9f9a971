"""What a measurement depends on: the machine, its load, the versions, and Spark's job counter."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def described() -> dict[str, object]:
    """The machine and the versions, as they are written beside results."""
    packages = ("freshview", "pyspark", "delta-spark", "deltalake", "pyarrow")
    return {
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return "not installed"


def jobs_started(spark: SparkSession) -> int:
    """How many jobs this Spark has started so far.

    Asked of the scheduler itself: the public status tracker forgets old jobs and learns of new ones
    only a little later.
    """
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 (PySpark has no way to the scheduler)
    return int(context.dagScheduler().numTotalJobs())
