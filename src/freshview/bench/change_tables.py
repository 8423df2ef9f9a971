"""Change tables against plain deltas against recompute: the views of [GM06] Examples 1 and 2.

Each view is there twice, kept by change tables and by insertions and deletions. After a batch of
inserted sales both are refreshed and the view is recomputed by the same Spark; who goes first
rotates. The paper counts rows: change tables never read sales. Here that is measured, with the time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from freshview.bench.comparison import (
    CHANGE_TABLE,
    RECOMPUTE,
    TECHNIQUES,
    VIEW,
    Comparison,
    Refreshed,
    Round,
)
from freshview.bench.machine import described
from freshview.bench.reads import Reads
from freshview.bench.show import stage_table
from freshview.bench.show_change_tables import comparison_table, reads_table, way_name
from freshview.bench.stores import TABLES, SalesChanges, kept_stores
from freshview.bench.timed import timed_refresh
from freshview.demo.kept_tables import copy_table
from freshview.demo.recompute import Recompute
from freshview.runtime.catalog import Policy
from freshview.runtime.check import CheckResult
from freshview.runtime.progress import progress
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse

WARM_UP = 2
LARGE_RECOMPUTES = 3
"""How often a view as large as its tables is recomputed; each takes as long as all refreshes."""


@dataclass(frozen=True, slots=True)
class Example:
    """A view of the paper."""

    name: str
    sql: str
    large: bool = False

    def kept_by(self, technique: str) -> str:
        """The name of the view that is kept by a technique."""
        return f"{self.name}_{technique}"


EXAMPLES = (
    Example(
        "CitySales",
        """
WITH SISales AS (
  SELECT storeID, itemID, sum(price) AS SumSISales, count(*) AS NumSISales
  FROM sales WHERE date > DATE '1995-01-01' GROUP BY storeID, itemID)
SELECT city, sum(SumSISales) AS SumCiSales, sum(NumSISales) AS NumCiSales
FROM SISales, stores WHERE SISales.storeID = stores.storeID GROUP BY city""",
    ),
    Example(
        "CategorySales",
        """
WITH SISales AS (
  SELECT storeID, itemID, sum(price) AS SumSISales, count(*) AS NumSISales
  FROM sales WHERE date > DATE '1995-01-01' GROUP BY storeID, itemID)
SELECT category, sum(SumSISales) AS SumCaSales, sum(NumSISales) AS NumCaSales
FROM SISales, items WHERE SISales.itemID = items.itemID GROUP BY category""",
    ),
    Example(
        "SSFullInfo",
        """
SELECT saleID, sales.storeID AS soldIn, itemID, date, price,
       stores.storeID, city, stores.state, infostates.state AS infoState, area, population
FROM sales FULL JOIN stores ON sales.storeID = stores.storeID
           FULL JOIN infostates ON stores.state = infostates.state""",
        large=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure, and where generated data is kept."""

    data: Path
    sales: int = 5_000_000
    rows: int = 10_000
    repeat: int = 7
    seed: int = 1

    def recomputes(self, example: Example) -> int:
        """In how many of the rounds a view is recomputed."""
        return min(self.repeat, LARGE_RECOMPUTES) if example.large else self.repeat


@dataclass(slots=True)
class ChangeTables:
    """Everything the benchmark found."""

    settings: Settings
    machine: dict[str, object]
    table_rows: dict[str, int] = field(default_factory=dict)
    created_ms: dict[str, float] = field(default_factory=dict)
    views: list[Comparison] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def wrong(self) -> list[str]:
        """The views that differ from their definitions."""
        return [check.view for check in self.checks if not check.ok]

    @property
    def ok(self) -> bool:
        """Whether every view was checked and is right."""
        return bool(self.checks) and not self.wrong

    def summary(self) -> dict[str, Any]:
        """The findings for programs."""
        return {
            "name": "change-tables",
            "ok": self.ok,
            "settings": asdict(self.settings),
            "machine": self.machine,
            "table_rows": self.table_rows,
            "created_ms": self.created_ms,
            "views": [view.summary() for view in self.views],
            "checks": self.checks,
            "seconds": self.seconds,
        }


def run_change_tables(settings: Settings, console: Console | None) -> ChangeTables:
    """Run the benchmark, printing each round when it is done if there is a console."""
    started = time.perf_counter()
    found = ChangeTables(settings, described())
    shown = console or Console(quiet=True)
    settings.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=settings.data) as folder:
        kept = kept_stores(settings.data, settings.sales, settings.seed)
        warehouse = _warehouse(Path(folder) / "warehouse", kept, found)
        shown.print(f"{len(found.created_ms)} views made after {_seconds(started)}")
        rounds = []
        for turn in _rounds(warehouse, Path(folder) / "recomputed", settings):
            rounds.append(turn)
            shown.print(
                f"round {len(rounds)} of {WARM_UP + settings.repeat} done after {_seconds(started)}"
            )
        for example in EXAMPLES:
            measured = tuple(turn[example.name] for turn in rounds[WARM_UP:])
            found.views.append(Comparison(example.name, measured))
        for view in warehouse.catalog.views():
            found.checks.append(warehouse.check(view.name))
    shown.print(comparison_table(found))
    shown.print(reads_table(found))
    columns = [(f"{v.view}\n{way_name(t)}", v.stages(t)) for v in found.views for t in TECHNIQUES]
    shown.print(stage_table(columns))
    found.seconds = time.perf_counter() - started
    return found


def _seconds(started: float) -> str:
    return f"{time.perf_counter() - started:.0f} s"


def _warehouse(root: Path, kept: Path, found: ChangeTables) -> Warehouse:
    """A warehouse with its own copies of the tables, and each view once for each technique."""
    warehouse = open_warehouse(root)
    for name in TABLES:
        copy_table(kept / name, root / "tables" / name)
        warehouse.register(name, root / "tables" / name)
        found.table_rows[name] = warehouse.parts.tables.state(str(root / "tables" / name)).rows or 0
    for example in EXAMPLES:
        for technique in TECHNIQUES:
            view = example.kept_by(technique)
            report = warehouse.create_view(
                view, example.sql, policy=Policy.INCREMENTAL, technique=technique
            )
            found.created_ms[view] = report.ms
    return warehouse


def _rounds(warehouse: Warehouse, scratch: Path, settings: Settings) -> Iterator[dict[str, Round]]:
    """Warm-up rounds, then those that count; each has a batch of its own."""
    changes = SalesChanges(settings.sales, settings.seed)
    recompute = Recompute(warehouse, scratch)
    reads = Reads(warehouse)
    for turn in range(-WARM_UP, settings.repeat):
        warehouse.apply({"sales": TableChanges(insert=changes.inserted(settings.rows))})
        measured = {}
        for example in EXAMPLES:
            recomputed = turn == -1 or 0 <= turn < settings.recomputes(example)
            measured[example.name] = _round(
                warehouse, reads, recompute if recomputed else None, example, turn
            )
        yield measured


def _round(
    warehouse: Warehouse, reads: Reads, recompute: Recompute | None, example: Example, turn: int
) -> Round:
    """Refresh by each technique and recompute, each first in every third turn."""
    first = turn % 3
    ways = (*TECHNIQUES, RECOMPUTE)
    refreshes: dict[str, Refreshed] = {}
    recompute_ms = None
    for way in (*ways[first:], *ways[:first]):
        if way != RECOMPUTE:
            refreshes[way] = _refreshed(warehouse, reads, example.kept_by(way))
        elif recompute is not None:
            with progress(f"recomputing {example.name}"):
                recompute_ms = recompute.run(example.kept_by(CHANGE_TABLE))
    if recompute is not None:
        assert recompute.same_versions(example.kept_by(CHANGE_TABLE))
    return Round({technique: refreshes[technique] for technique in TECHNIQUES}, recompute_ms)


def _refreshed(warehouse: Warehouse, reads: Reads, view: str) -> Refreshed:
    reads.start()
    timed = timed_refresh(warehouse, view)
    report = timed.report
    read = reads.of((*warehouse.catalog.view(view).sources, view))
    read[VIEW] = read.pop(view)
    return Refreshed(
        timed.ms,
        timed.jobs,
        report.mode,
        report.reason,
        report.rows_in,
        report.rows_read,
        report.rows_out,
        read,
        dict(report.stages_ms),
    )
