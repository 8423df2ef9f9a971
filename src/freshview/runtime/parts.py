"""The parts of an open warehouse that a refresh works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from freshview.planner.strategy import Strategy
from freshview.runtime.catalog import Catalog, ViewEntry
from freshview.runtime.commit import SourceVersion
from freshview.runtime.epochs import Epochs
from freshview.runtime.evaluation import Evaluator
from freshview.runtime.refresh_log import RefreshLog
from freshview.runtime.sources import Sources
from freshview.runtime.transactions import Transactions
from freshview.storage.choose import Tables


class StrategyOf(Protocol):
    """How a view is kept, over versions of its sources or over the newest ones."""

    def __call__(
        self, entry: ViewEntry, vector: Mapping[str, SourceVersion] | None = None, /
    ) -> Strategy: ...


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
    strategy: StrategyOf
