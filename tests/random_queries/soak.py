"""Random queries for hours: ``python -m tests.random_queries.soak --pure 5000 --spark 300 --seed 1``.

First views in plain Python, then queries in SQL as views on Spark and Delta, each compared with its
recompute after every batch, those in the common dialect with DuckDB too. A failure prints what replays
it alone. Ends with 1 if anything differed, or if an operator never occurred.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

from freshview.runtime.session import spark_session
from tests.interpreted import INTERPRETED
from tests.random_queries import pure
from tests.random_queries.kept import Keeping, Kept, query_of

PURE, SPARK, TOGETHER = 5_000, 300, 6
"""How many cases of each by default, and how many views share a warehouse."""
SEEDS = 1_000_000
"""How far the seeds of two runs lie apart."""
_SLICE = 50
OPERATORS_OF_SQL = 37
"""How many operators ``generator.py`` has; a run of the default size must have met them all."""
CHANGED_LEAST, BY_DUCKDB_LEAST = 0.5, 100
"""Of the cases, how many a batch must have changed, and how many of those must have been read by DuckDB too:
a view that is empty all the time compares nothing."""
AGAIN = f"{os.path.relpath(sys.executable)} -m tests.random_queries.soak"


def run_pure(first: int, count: int) -> pure.Outcome:
    """Cases with the seeds from ``first`` on, in a process for each core."""
    total = pure.Outcome()
    slices = [
        range(begin, min(begin + _SLICE, first + count))
        for begin in range(first, first + count, _SLICE)
    ]
    started = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for done in workers.map(pure.run, slices):
            total.cases += done.cases
            total.by_technique += done.by_technique
            total.operators += done.operators
            total.changed += done.changed
            total.wrong |= done.wrong
            if total.cases % 500 == 0 or total.cases == count:
                passed = time.monotonic() - started
                print(
                    f"{passed:6.0f} s  {total.cases} views in plain Python, {len(total.wrong)} wrong"
                )
    return total


def run_spark(first: int, seeds: Sequence[int]) -> list[Kept]:
    """Queries on Spark, those whose seeds lie side by side in one warehouse, counted from ``first``."""
    spark = spark_session(
        master="local[2]",
        memory="3g",
        app_name="freshview-random-queries",
        extra={"spark.sql.shuffle.partitions": "1", **INTERPRETED},
    )
    started = time.monotonic()
    done: list[Kept] = []
    for begin, some in groupby(seeds, lambda seed: seed - (seed - first) % TOGETHER):
        with tempfile.TemporaryDirectory(prefix="freshview-random-") as folder:
            keeping = Keeping(begin, list(some), Path(folder), spark)
            kept = keeping.run()
            keeping.log()
        done += kept
        for one in kept:
            tell_wrong(one)
        wrong = sum(bool(kept.wrong) for kept in done)
        passed = time.monotonic() - started
        print(f"{passed:6.0f} s  {len(done)} queries on Spark, {wrong} wrong", flush=True)
    return done


def tell_wrong(kept: Kept) -> None:
    if kept.wrong:
        print(f"  seed {kept.seed}, {kept.technique}: {kept.query.text}")
        for what in kept.wrong[:3]:
            print(f"    {what}")
        print(f"    again: {AGAIN} --spark-seed {kept.seed}")


def tell_pure(outcome: pure.Outcome) -> bool:
    """What the cases were, and whether they were all right."""
    print(f"{outcome.cases} views in plain Python: {len(outcome.wrong)} wrong")
    print(f"  kept by {dict(outcome.by_technique)}")
    print(f"  operators {dict(outcome.operators)}")
    for seed, what in list(outcome.wrong.items())[:20]:
        print(f"  seed {seed}: {what}")
        print(f"  again: {AGAIN} --pure-seed {seed}")
    print(f"  views that changed: {outcome.changed}")
    if outcome.changed < CHANGED_LEAST * outcome.cases:
        print(f"  too few of {outcome.cases} views changed")
        return False
    return not outcome.wrong


def tell_spark(done: Sequence[Kept], *, complete: bool) -> bool:
    wrong = [kept for kept in done if kept.wrong]
    operators = Counter(operator for kept in done for operator in kept.query.operators)
    compared, by_duckdb = sum(k.compared for k in done), sum(k.by_duckdb for k in done)
    portable = sum(kept.by_duckdb > 0 for kept in done)
    print(f"{len(done)} queries on Spark and Delta: {len(wrong)} wrong")
    print(f"  compared {compared} times with Spark's recompute")
    print(f"  {portable} of them compared {by_duckdb} times with DuckDB's")
    print(f"  kept by {dict(Counter(kept.technique for kept in done))}")
    print(f"  refreshes {dict(sum((kept.modes for kept in done), Counter[str]()))}")
    changed = [kept for kept in done if kept.effects]
    both = sum(kept.by_duckdb > 0 for kept in changed)
    print(f"  views that changed: {len(changed)}, {both} of them compared with DuckDB's")
    print(f"  operators {dict(operators)}")
    if complete and len(operators) < OPERATORS_OF_SQL:
        print(f"  only {len(operators)} of {OPERATORS_OF_SQL} operators occurred")
        return False
    if complete and (len(changed) < CHANGED_LEAST * len(done) or both < BY_DUCKDB_LEAST):
        print("  too few views changed")
        return False
    return not wrong


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.random_queries.soak", description=__doc__)
    parser.add_argument("--pure", type=int, default=PURE, help="cases in plain Python")
    parser.add_argument("--spark", type=int, default=SPARK, help="queries on Spark and Delta")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pure-seed", type=int, help="one case in plain Python, shown")
    parser.add_argument("--spark-seed", type=int, help="one query on Spark and Delta, shown")
    options = parser.parse_args(arguments)
    if options.pure_seed is not None:
        print(pure.shown(options.pure_seed))
        pure.check_case(options.pure_seed)
        return 0
    if options.spark_seed is not None:
        print(query_of(options.spark_seed).query.text)
        first = options.spark_seed - options.spark_seed % SEEDS
        done = run_spark(first, [options.spark_seed])
        return 0 if tell_spark(done, complete=False) else 1
    first = options.seed * SEEDS
    right = tell_pure(run_pure(first, options.pure)) if options.pure else True
    if options.spark:
        complete = options.spark >= SPARK
        done = run_spark(first, range(first, first + options.spark))
        right = tell_spark(done, complete=complete) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
