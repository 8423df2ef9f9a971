"""What storage costs apart from lookups: `python bench/moves.py WORKDIR`.

Native only: asking for the newest version, reading a small change (with and without the feed), an
empty commit, and applying rows to views of several sizes. Prints medians of wall and processor time.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from freshview.storage.interface import Commit
from freshview.storage.native import NativeStorage

APP = "freshview:measure"


def timed(name: str, run: Callable[[], object], repeats: int) -> None:
    """Print the medians of a repeated call."""
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        run()
        walls.append((time.perf_counter() - wall) * 1000)
        processors.append((time.process_time() - processor) * 1000)
    wall_ms, cpu_ms = statistics.median(walls), statistics.median(processors)
    print(f"{name:58} wall_ms {wall_ms:8.2f}  cpu_ms {cpu_ms:8.2f}", flush=True)


def view(rows: int) -> pa.Table:
    """A view's backing table: a key, a text, a count and a sum."""
    keys = np.arange(rows)
    return pa.table(
        {
            "k": keys,
            "name": [f"name {key % 1000}" for key in keys],
            "n": keys % 7,
            "total": pa.array(keys % 99, pa.int64()).cast(pa.decimal128(22, 0)),
        }
    )


def main() -> None:
    """Run all measurements in a fresh folder."""
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    storage, random = NativeStorage(), np.random.default_rng(7)
    for rows in (13_500, 1_000_000):
        path, table, number = str(folder / f"view-{rows}"), view(rows), [1]
        storage.create(path, table, commit=Commit(APP, 1))
        timed(f"latest, {rows:,} rows", lambda p=path: storage.latest(p), 50)  # type: ignore[misc]

        def progress(path: str = path, number: list[int] = number) -> None:
            number[0] += 1
            storage.append(path, None, Commit(APP, number[0], {"consumed": {"t": number[0]}}))

        timed(f"empty append, {rows:,} rows", progress, 15)
        for spread in (True, False):

            def apply(
                path: str = path,
                number: list[int] = number,
                table: pa.Table = table,
                spread: bool = spread,
            ) -> None:
                number[0] += 1
                if spread:
                    places = random.choice(table.num_rows, 700, replace=False)
                else:
                    places = np.arange(700) + int(random.integers(table.num_rows - 700))
                changed = table.take(pa.array(places))
                changed = changed.set_column(2, "n", pa.array(random.integers(0, 9, 700)))
                storage.apply(path, ["k"], changed, table.slice(0, 0), Commit(APP, number[0]))

            kind = "spread" if spread else "adjacent"
            timed(f"apply 700 {kind} rows to {rows:,}", apply, 9 if rows < 10**6 else 5)
        timed(f"last_commit, {rows:,} rows", lambda p=path: storage.last_commit(p, APP), 20)  # type: ignore[misc]
    for feed in ("true", "false"):
        path, table = str(folder / f"base-{feed}"), view(1_000_000)
        storage.create(path, table, properties={"delta.enableChangeDataFeed": feed})
        storage.append(path, table.slice(0, 1000), None)
        timed(
            f"changes: 1,000 rows appended, feed {feed}",
            lambda p=path: storage.changes(p, 0, 1),  # type: ignore[misc]
            15,
        )
        changed = table.slice(5000, 100).set_column(2, "n", pa.array(np.full(100, 8)))
        storage.apply(path, ["k", "n"], changed, table.slice(0, 0), None)
        storage.apply(path, ["k", "name"], changed, table.slice(0, 0), None)
        timed(
            f"changes: 100 rows of 1,000,000 updated, feed {feed}",
            lambda p=path: storage.changes(p, 2, 3),  # type: ignore[misc]
            5,
        )


if __name__ == "__main__":
    main()
