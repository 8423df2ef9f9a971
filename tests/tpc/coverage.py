"""Every TPC query as a view under STRICT: ``python -m tests.tpc.coverage``, which ``make coverage`` runs.

Writes docs/coverage.md. Ends with 1 if a query is refused, recomputed, or differs from its recompute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from freshview.runtime.session import spark_session
from tests.interpreted import INTERPRETED
from tests.tpc.database import DOUBLES, QUERY_COUNTS, SCALE_FACTOR, database
from tests.tpc.kept import Keeping, Kept, failures, published_and_loosened, queries
from tests.tpc.relaxed import RELAXED

TITLES = {
    "tpch": "TPC-H",
    "tpcds": "TPC-DS",
    "tpch_doubles": "TPC-H with DOUBLE in the place of DECIMAL",
}
BATCHES = 5
INTRODUCTION = """
Each batch deletes, updates and inserts rows, 1 % of the table each and one row at least, in every table; new
rows refer to new rows of other tables, too. From the third on a batch also deletes rows that views come from
which no batch has changed so far (found by `why`). Dates keep their month and week, since some queries select
the month of one day; prices of 0 are 0.01, since some divide by sums of them.
Every query is a view under policy STRICT, so none may be recomputed. After each batch all views are
refreshed and compared with what Spark makes of the query's text over the tables as they are: whole bags,
both ways, and the types. Queries with LIMIT have all their output columns appended to ORDER BY on both
sides. A query that selects nothing from so small a database is kept as published and with some constants
loosened, as listed in the end. *Effects* is the number of batches after which the view had other rows
than before. Values are equal to the last bit, but for deviations, whose error is shown.
""".strip().split("\n")
PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


def cover(
    kind: str, numbers: Iterable[int], spark: SparkSession, options: argparse.Namespace
) -> list[Kept]:
    """Make the views, change all tables batch by batch, and compare after each."""
    with tempfile.TemporaryDirectory(prefix="freshview-coverage-") as scratch:
        started = time.monotonic()
        opened = database(kind, spark, Path(tempfile.mkdtemp(dir=scratch)))
        wanted = queries(opened, published_and_loosened(opened.family, numbers))
        keeping = Keeping(opened, wanted, Path(scratch) / "warehouse", spark, options.seed)
        progress(kind, f"{len(wanted)} views made", started)
        for number in range(1, options.batches + 1):
            keeping.step(number)
            wrong = sum(bool(kept.differences) for kept in keeping.kept.values())
            progress(kind, f"batch {number}, {wrong} views wrong so far", started)
        keeping.explain()
        keeping.read_log()
    return list(keeping.kept.values())


def progress(kind: str, what: str, started: float) -> None:
    print(f"{time.monotonic() - started:6.0f} s  {TITLES[kind]}: {what}", flush=True)


def page(results: dict[str, list[Kept]], options: argparse.Namespace) -> str:
    """docs/coverage.md."""
    lines = [
        "# Coverage of TPC-H and TPC-DS",
        "",
        f"Made by `make coverage`: scale factor {SCALE_FACTOR}, seed {options.seed}, {options.batches} batches.",
        *INTRODUCTION,
        "",
    ]
    lines += _summary(results)
    for kind, all_kept in results.items():
        lines += ["", f"## {TITLES[kind]}", ""]
        lines += [
            "| query | technique | rows, after each batch | effects | result |",
            "|---|---|---|---|---|",
        ]
        for kept in all_kept:
            result = "; ".join(failures(kept)) or "equal"
            rows = ", ".join(f"{count:,}" for count in kept.rows)
            name = kept.query.name.replace("_", " ")
            lines.append(f"| {name} | {kept.technique} | {rows} | {kept.effects} | {result} |")
        lines += _doubles(all_kept)
    lines += _loosened()
    return "\n".join(lines) + "\n"


def _summary(results: dict[str, list[Kept]]) -> list[str]:
    lines = [
        "| suite | queries kept incrementally under STRICT | views compared | wrong |",
        "|---|---|---|---|",
    ]
    for kind, all_kept in results.items():
        right = {k.query.number for k in all_kept} - {
            k.query.number for k in all_kept if failures(k)
        }
        total = QUERY_COUNTS[kind.removesuffix(DOUBLES)]
        wrong = sum(bool(failures(kept)) for kept in all_kept)
        lines.append(f"| {TITLES[kind]} | {len(right)} of {total} | {len(all_kept)} | {wrong} |")
    return lines


def _doubles(all_kept: Sequence[Kept]) -> list[str]:
    """The largest relative errors of doubles, in the view and in Spark's own evaluation."""
    inexact = [kept for kept in all_kept if kept.has_doubles]
    if not inexact:
        return []
    lines = [
        "",
        "Doubles against exact sums (`tests/tpc/exact.py`): the largest relative error of a value after any",
        "batch. ∞ stands for other rows: a comparison of two sums came out otherwise.",
        "",
        "| query | error in the view | error of Spark's own evaluation |",
        "|---|---|---|",
    ]
    for kept in inexact:
        name = kept.query.name.replace("_", " ")
        lines.append(f"| {name} | {_error(kept.own_error)} | {_error(kept.spark_error)} |")
    return lines


def _loosened() -> list[str]:
    """What was changed in the queries that select nothing from a tiny database."""
    lines = ["", "## Loosened queries", "", "| query | published | loosened |", "|---|---|---|"]
    for (family, number), changes in RELAXED.items():
        for old, new in changes:
            lines.append(f"| {TITLES[family]} {number} | `{old}` | {f'`{new}`' if new else '–'} |")
    return lines


def _error(error: float) -> str:
    return "0" if error == 0 else "∞" if error == float("inf") else f"{error:.1e}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.tpc.coverage", description=__doc__)
    parser.add_argument("--kind", choices=list(TITLES), nargs="+", default=list(TITLES))
    parser.add_argument(
        "--queries", type=int, nargs="+", help="only these numbers; no page is written"
    )
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    spark = spark_session(
        master="local[2]",
        memory="4g",
        app_name="freshview-coverage",
        extra={"spark.sql.shuffle.partitions": "1", **INTERPRETED},
    )
    results = {}
    for kind in options.kind:
        every = range(1, QUERY_COUNTS[kind.removesuffix(DOUBLES)] + 1)
        results[kind] = cover(kind, options.queries or every, spark, options)
    text = page(results, options)
    if options.queries is None and options.kind == list(TITLES):
        PAGE.write_text(text)
    wrong = [kept for all_kept in results.values() for kept in all_kept if failures(kept)]
    for kept in wrong:
        print(f"{kept.query.kind} {kept.query.name}: {'; '.join(failures(kept))}")
    print("\n".join(_summary(results)))
    techniques = Counter(kept.technique for all_kept in results.values() for kept in all_kept)
    print(dict(techniques), "all equal" if not wrong else f"{len(wrong)} views wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
