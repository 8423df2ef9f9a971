"""The demo: make the warehouse, then change, refresh and recompute; in the end prove all views."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from freshview.demo.batches import Batch, demo_batches
from freshview.demo.recompute import Recompute
from freshview.demo.show import banner, checks_table, refresh_table
from freshview.demo.tpch import generate, parquet_file, write_delta
from freshview.demo.views import big_orders, create_views
from freshview.runtime.check import CheckResult
from freshview.runtime.progress import progress
from freshview.runtime.report import FULL, INCREMENTAL, Report
from freshview.runtime.warehouse import Warehouse, open_warehouse

TABLES = ("lineitem", "orders", "customer", "nation")


@dataclass(frozen=True, slots=True)
class Step:
    """A batch, the refresh after it, and the recompute's milliseconds of each view that changed."""

    title: str
    report: Report
    recompute_ms: dict[str, float]


@dataclass(slots=True)
class Demo:
    """Everything the demo found."""

    rows: dict[str, int] = field(default_factory=dict)
    setup_ms: dict[str, float] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)
    total_ms: float = 0.0

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
        return asdict(self) | {"ok": self.ok}


def run_demo(path: Path | None, *, sf: float, seed: int, console: Console | None) -> Demo:
    """Run the demo in a new folder, printing as it goes if there is a console."""
    found = Demo()
    started = time.perf_counter()
    shown = console or Console(quiet=True)
    with _folder(path) as root:
        warehouse, generated = _prepared(root, sf, found)
        shown.print(banner(found.rows, found.setup_ms))
        recompute = Recompute(warehouse, generated / "recomputed", {"big_orders": big_orders})
        with progress("recomputing once, unmeasured: the first time costs Spark seconds more"):
            recompute.run("nation_revenue")
        for number, batch in enumerate(demo_batches(generated, seed), start=1):
            step = _step(warehouse, recompute, batch)
            found.steps.append(step)
            shown.print(refresh_table(number, step.title, step.report, step.recompute_ms))
        for view in warehouse.catalog.views():
            found.checks.append(warehouse.check(view.name))
        found.total_ms = (time.perf_counter() - started) * 1000
        shown.print(checks_table(found.checks, found.total_ms))
        shutil.rmtree(generated)
    if path is not None:
        shown.print(f"\nThe warehouse stays: freshview status --warehouse {path}")
    return found


@contextmanager
def _folder(path: Path | None) -> Iterator[Path]:
    """The folder of the warehouse: a given one stays, a temporary one goes."""
    if path is not None:
        yield path.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="freshview-demo-") as temporary:
        yield Path(temporary)


def _prepared(root: Path, sf: float, found: Demo) -> tuple[Warehouse, Path]:
    """A warehouse with the four views over generated tables, and the folder of generated rows."""
    warehouse = open_warehouse(root)
    generated = root / "_generated"
    with _timed(found, "generate and start Spark"), ThreadPoolExecutor(1) as other:
        started = other.submit(lambda: warehouse.spark)
        generated.mkdir()
        generate(generated, sf, TABLES)
        for name in TABLES:
            table = root / "tables" / name
            write_delta(parquet_file(generated, name), table)
            warehouse.register(name, table)
            found.rows[name] = warehouse.parts.tables.state(str(table)).rows or 0
        started.result()
    with _timed(found, "create the views"):
        create_views(warehouse)
    return warehouse, generated


@contextmanager
def _timed(found: Demo, name: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    found.setup_ms[name] = (time.perf_counter() - started) * 1000


def _step(warehouse: Warehouse, recompute: Recompute, batch: Batch) -> Step:
    if batch.changes:
        warehouse.apply(batch.changes)
    report = warehouse.refresh()
    evaluated = [view.view for view in report.views if view.mode in (INCREMENTAL, FULL)]
    with progress("recomputing", total=len(evaluated)) as bar:
        spent = {}
        for view in evaluated:
            spent[view] = recompute.run(view)
            bar.advance()
    assert all(recompute.same_versions(view) for view in evaluated)
    return Step(batch.title, report, spent)
