"""The TPC databases, generated once per process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.tpc.database import Database


@pytest.fixture(scope="session")
def tpc(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Database]:
    """A function that opens the ``tpch`` or the ``tpcds`` database."""
    pytest.importorskip("duckdb")
    pytest.importorskip("duckdb_extension_tpcds")
    pytest.importorskip("duckdb_extension_tpch")
    from tests.tpc.database import database

    opened: dict[str, Database] = {}

    def open_once(kind: str) -> Database:
        if kind not in opened:
            opened[kind] = database(kind, spark, tmp_path_factory.mktemp(kind))
        return opened[kind]

    return open_once
