"""The basic claim: after a small change, a refresh costs a small part of a recompute.

One view, the 3-way join aggregate of the design, over TPC-H. For 10 and for 1,000 changed lines,
inserted only and mixed, refresh and recompute run in turns on the same Spark, so that both meet the
same machine; so do refreshes with nothing to do. Memory is measured at the scale and at a tenth of
it, in processes of their own.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from freshview.bench.machine import described
from freshview.bench.memory import Memory, peak_memory
from freshview.bench.samples import Spread, by_stage
from freshview.bench.show import memory_table, scenario_table, stage_table
from freshview.bench.timed import stages_and_rest, timed_refresh
from freshview.demo.changes import LineChanges
from freshview.demo.kept_tables import copy_table
from freshview.demo.recompute import Recompute
from freshview.demo.tpch import cached_tables
from freshview.demo.views import REVENUE
from freshview.runtime.catalog import Policy
from freshview.runtime.check import CheckResult
from freshview.runtime.report import UNCHANGED
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse

VIEW = "revenue"
TABLES = ("lineitem", "orders", "customer")
WARM_UP = 2
MEMORY_REPEAT = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure, and where generated data is kept."""

    data: Path
    sf: float = 1.0
    repeat: int = 7
    seed: int = 1
    memory: bool = True
    sizes: tuple[int, ...] = (10, 1_000)


@dataclass(frozen=True, slots=True)
class Pair:
    """One change: the refresh after it, and the recompute over the same versions."""

    refresh_ms: float
    recompute_ms: float
    jobs: int
    mode: str
    rows_read: int
    rows_out: int
    stages_ms: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many refreshes fit into the recompute."""
        return self.recompute_ms / self.refresh_ms


@dataclass(frozen=True, slots=True)
class Scenario:
    """The pairs of one kind and size of change."""

    kind: str
    rows: int
    pairs: tuple[Pair, ...]

    def summary(self) -> dict[str, Any]:
        """Medians, spreads and every pair."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "refresh_ms": asdict(Spread.of(p.refresh_ms for p in self.pairs)),
            "recompute_ms": asdict(Spread.of(p.recompute_ms for p in self.pairs)),
            "ratio": asdict(Spread.of(p.ratio for p in self.pairs)),
            "jobs": max(p.jobs for p in self.pairs),
            "stages_ms": {n: asdict(s) for n, s in by_stage(self.stages()).items()},
            "pairs": [asdict(pair) for pair in self.pairs],
        }

    def stages(self) -> list[dict[str, float]]:
        """The stages of each refresh, and under "rest" what is in none of them."""
        return [stages_and_rest(p.stages_ms, p.refresh_ms) for p in self.pairs]


@dataclass(slots=True)
class Basics:
    """Everything the benchmark found."""

    settings: Settings
    machine: dict[str, object]
    scenarios: list[Scenario] = field(default_factory=list)
    unchanged: list[tuple[float, int]] = field(default_factory=list)
    """Milliseconds and Spark jobs of refreshes with nothing to do."""
    memory: dict[float, list[Memory]] = field(default_factory=dict)
    check: CheckResult | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the view was right in the end."""
        return self.check is not None and self.check.ok

    def memory_growth_mb(self) -> float | None:
        """How much more memory the larger scale takes than the smaller one."""
        peaks = [max(m.total_mb for m in self.memory[sf]) for sf in sorted(self.memory)]
        return peaks[-1] - peaks[0] if len(peaks) > 1 else None

    def summary(self) -> dict[str, Any]:
        """The findings for programs."""
        spent = Spread.of(ms for ms, _ in self.unchanged)
        return {
            "name": "basics",
            "ok": self.ok,
            "settings": asdict(self.settings),
            "machine": self.machine,
            "scenarios": [scenario.summary() for scenario in self.scenarios],
            "unchanged": {"ms": asdict(spent), "jobs": max(jobs for _, jobs in self.unchanged)},
            "memory": {f"{sf:g}": [asdict(m) for m in found] for sf, found in self.memory.items()},
            "memory_growth_mb": self.memory_growth_mb(),
            "check": self.check,
            "seconds": self.seconds,
        }


def run_basics(settings: Settings, console: Console | None) -> Basics:
    """Run the benchmark, printing each part when it is done if there is a console."""
    started = time.perf_counter()
    found = Basics(settings, described())
    shown = console or Console(quiet=True)
    settings.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=settings.data) as folder:
        kept = cached_tables(settings.data, settings.sf, TABLES)
        warehouse = _warehouse(Path(folder) / "warehouse", kept)
        _measure(warehouse, Path(folder) / "recomputed", kept, settings, found)
        shown.print(scenario_table(found))
        shown.print(stage_table([(f"{s.rows:,} {s.kind}", s.stages()) for s in found.scenarios]))
        if settings.memory:
            _measure_memory(settings, Path(folder), found)
            shown.print(memory_table(found))
    found.seconds = time.perf_counter() - started
    return found


def _warehouse(root: Path, kept: Path) -> Warehouse:
    """A warehouse with its own copies of the tables, and the view."""
    warehouse = open_warehouse(root)
    for name in TABLES:
        copy_table(kept / name, root / "tables" / name)
        warehouse.register(name, root / "tables" / name)
    warehouse.create_view(VIEW, REVENUE, policy=Policy.INCREMENTAL)
    return warehouse


def _measure(
    warehouse: Warehouse, scratch: Path, kept: Path, settings: Settings, found: Basics
) -> None:
    pairs = WARM_UP + 2 * settings.repeat
    lines = LineChanges(kept, pairs * sum(settings.sizes), settings.seed)
    recompute = Recompute(warehouse, scratch)
    kinds: tuple[tuple[str, Callable[[int], TableChanges]], ...] = (
        ("inserted", lines.insert_only),
        ("mixed", lines.mixed),
    )
    for size in settings.sizes:
        for _ in range(WARM_UP):
            _pair(warehouse, recompute, lines.mixed(size), refresh_first=True)
    for size in settings.sizes:
        for kind, changes in kinds:
            measured = [
                _pair(warehouse, recompute, changes(size), refresh_first=turn % 2 == 0)
                for turn in range(settings.repeat)
            ]
            found.scenarios.append(Scenario(kind, size, tuple(measured)))
    found.unchanged = [_unchanged(warehouse) for _ in range(settings.repeat)]
    found.check = warehouse.check(VIEW)


def _pair(
    warehouse: Warehouse, recompute: Recompute, changes: TableChanges, *, refresh_first: bool
) -> Pair:
    """Change, then refresh and recompute, each first in every other turn."""
    warehouse.apply({"lineitem": changes})
    before = 0.0 if refresh_first else recompute.run(VIEW)
    timed = timed_refresh(warehouse, VIEW)
    recompute_ms = recompute.run(VIEW) if refresh_first else before
    assert recompute.same_versions(VIEW)
    view = timed.report
    return Pair(
        timed.ms,
        recompute_ms,
        timed.jobs,
        view.mode,
        view.rows_read,
        view.rows_out,
        dict(view.stages_ms),
    )


def _unchanged(warehouse: Warehouse) -> tuple[float, int]:
    timed = timed_refresh(warehouse, VIEW)
    assert timed.report.mode == UNCHANGED
    return timed.ms, timed.jobs


def _measure_memory(settings: Settings, folder: Path, found: Basics) -> None:
    """The same changes at the scale and at a tenth of it, each refreshed by a process of its own."""
    size = max(settings.sizes)
    for sf in (settings.sf / 10, settings.sf):
        kept = cached_tables(settings.data, sf, TABLES)
        root = folder / f"memory-{sf:g}"
        warehouse = _warehouse(root, kept)
        lines = LineChanges(kept, (MEMORY_REPEAT + 1) * size, settings.seed)
        changes = partial(_change_lines, warehouse, lines, size)
        found.memory[sf] = peak_memory(root, changes, MEMORY_REPEAT)
        shutil.rmtree(root)


def _change_lines(warehouse: Warehouse, lines: LineChanges, size: int) -> None:
    warehouse.apply({"lineitem": lines.mixed(size)})
