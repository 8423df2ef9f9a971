"""What a full recompute costs, by who reads and who writes: `python bench/recomputes.py WORKDIR`.

The 3-way join aggregate of the demo at scale 0.1, recomputed by four warehouses over the same
tables in turns: Spark scans through Delta or the data files themselves, and the few rows are written
by Delta or natively. Prints the median of each after two unmeasured turns.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import sys
import time
from pathlib import Path

from freshview.demo.kept_tables import copy_table
from freshview.demo.tpch import cached_tables
from freshview.demo.views import REVENUE
from freshview.runtime.session import spark_session
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import Limits
from freshview.storage.native import NativeStorage

TABLES = ("lineitem", "orders", "customer")
TURNS = 9
WARMING = 2


class NoPlainFiles(NativeStorage):
    """Native storage that leaves every scan to Delta."""

    def plain_files(self, path: str, version: int) -> tuple[str, ...] | None:  # noqa: ARG002
        return None


def prepared(folder: Path, kept: Path, *, files: bool, native: bool) -> Warehouse:
    """A warehouse of its own with the view, whose scans and writes go one way."""
    shutil.rmtree(folder, ignore_errors=True)
    open_warehouse(folder)
    limits = None if native else Limits(write_rows=0)
    warehouse = Warehouse(folder, spark_session(), storage_limits=limits)
    if not files:
        warehouse.parts.tables.native = NoPlainFiles()
    for name in TABLES:
        copy_table(kept / name, folder / "tables" / name)
        warehouse.register(name, folder / "tables" / name)
    warehouse.create_view("revenue", REVENUE)
    return warehouse


def main() -> None:
    """Measure the four ways in turns."""
    workdir = Path(sys.argv[1])
    kept = cached_tables(workdir, 0.1, TABLES)
    ways = list(itertools.product((False, True), repeat=2))
    warehouses = {
        (files, native): prepared(
            workdir / f"way-{files:d}{native:d}", kept, files=files, native=native
        )
        for files, native in ways
    }
    spent: dict[tuple[bool, bool], list[float]] = {way: [] for way in ways}
    for turn in range(WARMING + TURNS):
        for way, warehouse in warehouses.items():
            started = time.perf_counter()
            warehouse.refresh("revenue", full=True)
            if turn >= WARMING:
                spent[way].append((time.perf_counter() - started) * 1000)
    for (files, native), times in spent.items():
        scans, writes = "files" if files else "Delta", "native" if native else "Delta"
        print(f"scans {scans:6} write {writes:7} median_ms {statistics.median(times):8.0f}")


if __name__ == "__main__":
    main()
