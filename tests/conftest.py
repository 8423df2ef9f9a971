"""What all tests share: the hypothesis profiles and one Spark per process."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.interpreted import INTERPRETED

# Without a deadline: the first example of a test often pays for imports and warm-up.
settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """One small Spark for all tests of a process; each worker of pytest-xdist has its own."""
    from freshview.runtime.session import spark_session

    scratch = tmp_path_factory.mktemp("spark")
    session = spark_session(
        master="local[2]",
        memory="2g",
        app_name="freshview-tests",
        extra={
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            **INTERPRETED,
            "spark.local.dir": str(scratch),
        },
    )
    yield session
    session.stop()
