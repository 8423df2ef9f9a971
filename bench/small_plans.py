"""What evaluating a small plan costs, step by step. Run: python bench/small_plans.py [ROUNDS].

The plan of a refresh: a 3-way join of 10 to 1,000 local rows each, grouped with decimal sums, left
outer joined with the view's rows (none, or 13,500). Four ways of evaluating it, one after the other
in each round, so that all meet the same machine:

- session as it is: three `createDataFrame`, SQL, `toArrow`;
- tuned session: the same without AQE and whole-stage code, with one shuffle partition;
- prepared: our lowered plan, analyzed once, in the tuned session;
- small plan: the kept physical plan, computed in the driver (planner/small_plans.py).
"""

from __future__ import annotations

import datetime as dt
import random
import statistics
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from freshview.algebra.traverse import scans
from freshview.frontend.catalyst import definition_session, import_sql
from freshview.planner.lower import prepare
from freshview.planner.small_plans import SETTINGS, SmallPlans
from freshview.runtime.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "d": "o_id bigint, price decimal(12,2), __n bigint",
    "o": "o_id bigint, c_id bigint, day date, prio string",
    "c": "c_id bigint, nation int",
    "v": "nation int, m timestamp, n bigint, total decimal(38,2)",
}
QUERY = """
with change as (
  select nation, date_trunc('month', day) m, sum(__n) n, sum(__n * price) total
  from d join o using (o_id) join c using (c_id)
  where day >= date'1994-01-01' group by nation, date_trunc('month', day))
select change.nation, change.m, coalesce(v.n, 0L) + change.n n,
       cast(coalesce(v.total, 0) + change.total as decimal(38,2)) total
from change left join v on change.nation <=> v.nation and change.m <=> v.m"""
ARROW = {
    "d": [pa.int64(), pa.decimal128(12, 2), pa.int64()],
    "o": [pa.int64(), pa.int64(), pa.date32(), pa.string()],
    "c": [pa.int64(), pa.int32()],
    "v": [pa.int32(), pa.timestamp("us", tz="UTC"), pa.int64(), pa.decimal128(38, 2)],
}
SIZES = ((10, 0), (100, 0), (1000, 0), (10, 13_500), (1000, 13_500))
MINUTES_WARM = 0.25
Tables = dict[str, pa.Table]


def schema(table: str) -> StructType:
    return StructType.fromDDL(TYPES[table])


def tables(changed: int, view_rows: int) -> Tables:
    """Seeded rows: as many changes as orders and customers, and the view's rows."""
    draw = random.Random(changed)
    first_day, first_month = dt.date(1992, 1, 1), dt.datetime(1990, 1, 1, tzinfo=dt.UTC)
    rows = {
        "d": [
            (draw.randrange(changed), Decimal(draw.randrange(10**6)) / 100, draw.choice((1, -1)))
            for _ in range(changed)
        ],
        "o": [
            (i, draw.randrange(changed), first_day + dt.timedelta(days=draw.randrange(2400)), "x")
            for i in range(changed)
        ],
        "c": [(i, draw.randrange(25)) for i in range(changed)],
        "v": [
            (i % 25, first_month + dt.timedelta(days=i // 25), i, Decimal(i))
            for i in range(view_rows)
        ],
    }
    made = {}
    for name, lines in rows.items():
        columns = list(zip(*lines, strict=True)) or [()] * len(ARROW[name])
        arrays = [pa.array(c, t) for c, t in zip(columns, ARROW[name], strict=True)]
        made[name] = pa.table(arrays, names=schema(name).names)
    return made


Steps = dict[str, float]
Way = Callable[[Tables], Steps]


class Clock:
    """Splits a run into named steps."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.steps: Steps = {}

    def step(self, name: str) -> None:
        now = time.perf_counter()
        self.steps[name] = 1000 * (now - self._last)
        self._last = now


def by_query(session: SparkSession) -> Way:
    def run(given: Tables) -> Steps:
        clock = Clock()
        for name, table in given.items():
            session.createDataFrame(table, schema(name)).createOrReplaceTempView(name)
        clock.step("import")
        df = session.sql(QUERY)
        clock.step("analyze")
        _planned(df, clock)
        return clock.steps

    return run


def by_prepared(session: SparkSession, definitions: SparkSession) -> Way:
    relation = import_sql(definitions, QUERY)
    prepared = prepare(session, relation)

    def run(given: Tables) -> Steps:
        clock = Clock()
        leaves = {
            scan: session.createDataFrame(given[scan.table], schema(scan.table))
            for scan in scans(relation)
        }
        clock.step("import")
        df = prepared.dataframe(leaves)
        clock.step("analyze")
        _planned(df, clock)
        return clock.steps

    return run


def _planned(df: object, clock: Clock) -> None:
    execution = df._jdf.queryExecution()  # type: ignore[attr-defined]  # noqa: SLF001
    execution.optimizedPlan()
    clock.step("optimize")
    execution.executedPlan()
    clock.step("plan")
    df.toArrow()  # type: ignore[attr-defined]
    clock.step("execute")


def by_small_plan(plans: SmallPlans, definitions: SparkSession) -> Way:
    relation = import_sql(definitions, QUERY)
    plan = plans.prepare(relation)

    def run(given: Tables) -> Steps:
        plan.run({leaf: given[leaf.table] for leaf in plan.leaves})
        return {"import": plan.timings.import_ms, "execute": plan.timings.evaluate_ms}

    return run


def processor_ms(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 10.0 * (int(fields[11]) + int(fields[12]))


def main(rounds: int) -> None:
    spark = spark_session(master="local[2]", memory="2g", app_name="small plans")
    definitions = definition_session(spark, {name: schema(name) for name in TYPES})
    tuned = spark.newSession()
    for name, value in SETTINGS.items():
        if name != "spark.sql.defaultSizeInBytes":
            tuned.conf.set(name, value)
    ways: dict[str, Way] = {
        "session as it is": by_query(spark.newSession()),
        "tuned session": by_query(tuned),
        "prepared": by_prepared(tuned, definitions),
        "small plan": by_small_plan(SmallPlans(spark), definitions),
    }
    pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001
    print("| changed | view rows | way | ms, median (min) | JVM processor ms | steps, median ms |")
    print("|---|---|---|---|---|---|")
    for changed, view_rows in SIZES:
        given = tables(changed, view_rows)
        seen: dict[str, list[tuple[float, float, Steps]]] = {name: [] for name in ways}
        until = time.monotonic() + 60 * MINUTES_WARM
        while time.monotonic() < until:
            for run in ways.values():
                run(given)
        for _ in range(rounds):
            for name, run in ways.items():
                processor, begin = processor_ms(pid), time.perf_counter()
                steps = run(given)
                total = 1000 * (time.perf_counter() - begin)
                seen[name].append((total, processor_ms(pid) - processor, steps))
        for name, runs in seen.items():
            totals = [total for total, _, _ in runs]
            processor = statistics.mean(used for _, used, _ in runs)
            steps = {
                step: statistics.median(found[step] for _, _, found in runs) for step in runs[0][2]
            }
            shown = ", ".join(f"{step} {ms:.1f}" for step, ms in steps.items())
            print(
                f"| {changed} | {view_rows} | {name} | {statistics.median(totals):.0f} "
                f"({min(totals):.0f}) | {processor:.0f} | {shown} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
