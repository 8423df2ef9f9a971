"""The parts of an open warehouse that a refresh works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from freshview.planner.strategy import Strategy
from freshview.runtime.catalog import Catalog, ViewEntry
from freshview.runtime.epochs import Epochs
from freshview.runtime.evaluation import Evaluator
from freshview.runtime.refresh_log import RefreshLog
from freshview.runtime.sources import Sources
from freshview.runtime.transactions import Transactions
from freshview.storage.choose import Tables


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything is opened once; Spark is a function, because most checks need none."""

    root: Path
    catalog: Catalog
    tables: Tables
    sources: Sources
    evaluator: Evaluator
    epochs: Epochs
    log: RefreshLog
    transactions: Transactions
    spark: Callable[[], SparkSession]
    strategy: Callable[[ViewEntry], Strategy]
