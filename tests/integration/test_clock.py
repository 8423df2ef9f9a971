"""Moving windows on Spark and Delta: views that filter by the clock, under a clock of the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import freshview as fv
from freshview.bench.timed import jobs_started
from freshview.errors import InvalidMoment, ViewNotMaintainable
from freshview.planner.plan import Limits
from freshview.runtime.clock import fixed_clock
from freshview.runtime.warehouse import Warehouse
from freshview.storage.choose import Limits as StorageLimits

pytestmark = pytest.mark.spark

START = datetime(2026, 3, 15, 12, tzinfo=UTC)
TODAY = START.date()
NOTHING_NATIVE = StorageLimits(
    changes_rows=0, changes_bytes=0, lookup_keys=0, lookup_rows=0, read_rows=0, write_rows=0
)
NOTHING_LOCAL = Limits(delta_rows=0, lookup_rows=0, whole_view_rows=0)


class Settable:
    """A clock that the test sets, and that may go on a bit whenever somebody asks it."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now
        self.drift = timedelta()

    def __call__(self) -> datetime:
        self.now += self.drift
        return self.now

    def tick(self, **span: float) -> None:
        self.now += timedelta(**span)


@contextmanager
def zone(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


@pytest.fixture(autouse=True)
def utc(spark: SparkSession) -> Iterator[None]:
    with zone(spark, "UTC"):
        yield


@pytest.fixture
def clock() -> Settable:
    return Settable()


def orders(days: range) -> pa.Table:
    """An order of each day from so many before today to so many after it."""
    return pa.table(
        {
            "id": pa.array(days, pa.int64()),
            "day": pa.array([TODAY + timedelta(days=n) for n in days], pa.date32()),
            "at": pa.array([START + timedelta(days=n) for n in days], pa.timestamp("us", tz="UTC")),
            "customer": pa.array([n % 7 for n in days], pa.int64()),
            "amount": pa.array([n * n for n in days], pa.int64()),
        }
    )


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, clock: Settable) -> fv.Warehouse:
    """A thousand days of orders, of which the last ninety are yet to come, and their customers."""
    warehouse = fv.open(tmp_path / "shop", spark, clock=clock)
    warehouse.create_table("orders", orders(range(-910, 90)))
    warehouse.create_table(
        "customers", pa.table({"customer": range(7), "name": [f"c{n}" for n in range(7)]})
    )
    return warehouse


def ids(warehouse: fv.Warehouse, view: str, column: str = "id") -> list[Any]:
    return sorted(row[column] for row in warehouse.read(view).collect())


def right(warehouse: fv.Warehouse, *views: str) -> None:
    for view in views or tuple(v.name for v in warehouse.catalog.views()):
        result = warehouse.check(view)
        assert result.ok, (view, result)


WINDOW = "SELECT id, day FROM orders WHERE day > current_date() - 30 AND day <= current_date()"


def test_rows_enter_and_leave_by_the_clock_alone(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view("recent", WINDOW, policy="STRICT")
    assert ids(shop, "recent") == list(range(-29, 1))
    clock.tick(days=2)
    report = shop.refresh()["recent"]
    assert report.mode == "incremental"
    assert report.moment == "2026-03-17"
    assert (report.rows_in, report.rows_out) == (0, 4)
    assert ids(shop, "recent") == list(range(-27, 3))
    right(shop)


def test_a_tick_reads_the_rows_of_the_range_and_no_others(
    shop: fv.Warehouse, clock: Settable
) -> None:
    """Of a thousand rows: from the old to the new first day of the window, and so for its last."""
    shop.create_view("recent", WINDOW, policy="STRICT")
    clock.tick(days=1)
    explained = str(shop.explain("recent"))
    assert "look up orders after (version 0) where orders.day between" in explained
    assert "with Spark" not in explained
    assert shop.refresh()["recent"].rows_read == 2 + 2 + 30  # and the whole view, which is small


def test_the_same_day_is_nothing_to_do(
    shop: fv.Warehouse, clock: Settable, spark: SparkSession
) -> None:
    shop.create_view("recent", WINDOW, policy="STRICT")
    clock.tick(hours=11, minutes=59)
    jobs = jobs_started(spark)
    report = shop.refresh()
    assert report["recent"].mode == "unchanged"
    assert report.epoch is None
    assert jobs_started(spark) == jobs
    assert shop.status()[0].fresh
    clock.tick(minutes=1)
    assert not shop.status()[0].fresh
    assert shop.refresh()["recent"].mode == "incremental"


def test_table_and_clock_change_in_one_refresh(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view("recent", WINDOW, policy="STRICT")
    late = {"id": 5000, "day": TODAY - timedelta(days=29), "at": START, "customer": 1, "amount": 1}
    kept = {**late, "id": 5001, "day": TODAY}
    shop.apply(
        {
            "orders": fv.TableChanges(
                insert=[late, kept, kept], delete=[{"id": -29}, {"id": -3}], key=["id"]
            )
        }
    )
    clock.tick(days=1)
    report = shop.refresh()["recent"]
    assert report.mode == "incremental"
    assert ids(shop, "recent") == sorted([*(n for n in range(-28, 2) if n != -3), 5001, 5001])
    right(shop)


def test_the_moment_goes_to_the_microsecond(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view(
        "past", "SELECT id, at FROM orders WHERE at <= now() - INTERVAL 1 HOUR", policy="STRICT"
    )
    assert ids(shop, "past")[-1] == -1
    clock.now = START + timedelta(hours=1, microseconds=-1)
    report = shop.refresh()["past"]
    assert ids(shop, "past")[-1] == -1
    assert report.moment == "2026-03-15T12:59:59.999999+00:00"
    clock.tick(microseconds=1)
    report = shop.refresh()["past"]
    assert ids(shop, "past")[-1] == 0
    assert (report.rows_read, report.rows_out) == (1 + 910, 1)  # and the view, which is small
    right(shop)


def test_every_spelling_of_the_clock(shop: fv.Warehouse, clock: Settable) -> None:
    """Windows over a month, over one side, in an OR, in a negation, with what changes seldom."""
    for name, predicate in {
        "curdate": "day >= date_sub(curdate(), 3) AND day < date_add(current_date, 3)",
        "between": "day BETWEEN add_months(current_date(), -1) AND last_day(current_date())",
        "moment": "at BETWEEN current_timestamp() - INTERVAL 36 HOURS AND now()",
        "cast": "at >= current_date() AND CAST(at AS DATE) < current_date() + 3",
        "local": "CAST(at AS TIMESTAMP_NTZ) >= localtimestamp() - INTERVAL '2' DAY AND id < 9",
        "year": "year(day) = year(current_date()) AND id > 0",
        "either": "day = current_date() OR id = 17",
        "negated": "NOT (day < current_date() OR day > current_date() + 2)",
        "unix": "unix_timestamp(at) > unix_timestamp() AND id < 5",
        "weekday": "dayofweek(current_date()) = 2 AND id BETWEEN 1 AND 3",
        "both": "day > current_date() AND at < now() + INTERVAL 3 DAYS",
        "twice": "day > current_date() - 2 AND date_add(day, 1) < current_date() + 2",
        "never": "day > nullif(current_date(), DATE'2026-03-16') AND id < 5",
        "array": "exists(array(day, date_add(day, 1)), x -> x = current_date())",
    }.items():
        shop.create_view(name, f"SELECT id, day FROM orders WHERE {predicate}", policy="STRICT")
    for span in (timedelta(hours=13), timedelta(days=20), -timedelta(days=40)):
        clock.now += span
        report = shop.refresh()
        assert {view.mode for view in report.views} <= {"incremental", "no effect"}
        right(shop)


def test_what_changes_seldom_is_not_read_before_it_does(
    shop: fv.Warehouse, clock: Settable
) -> None:
    text = "SELECT id, day FROM orders WHERE day >= date_trunc('YEAR', now()) AND id < 0"
    shop.create_view("year", text, policy="STRICT")
    text = "SELECT id, day FROM orders WHERE month(day) = month(current_date()) AND id < 0"
    shop.create_view("month", text, policy="STRICT")
    assert "so it gives no range" in str(shop.explain("month"))
    before = len(ids(shop, "month"))
    clock.tick(days=3)
    report = shop.refresh()
    assert report["year"].rows_out == report["month"].rows_out == 0
    assert report["month"].rows_read == before  # of the view, and none of the table
    clock.now = datetime(2027, 1, 1, tzinfo=UTC)
    report = shop.refresh()
    assert report["year"].rows_out > 0
    assert report["month"].rows_out > 0
    right(shop)


@pytest.mark.parametrize(
    ("name", "before", "midnight"),
    [
        ("Europe/Berlin", datetime(2026, 3, 15, 22, 59, 59, tzinfo=UTC), "2026-03-15 23:00"),
        ("America/New_York", datetime(2026, 3, 16, 3, 59, 59, tzinfo=UTC), "2026-03-16 04:00"),
        ("+05:30", datetime(2026, 3, 15, 18, 29, 59, tzinfo=UTC), "2026-03-15 18:30"),
    ],
)
def test_the_day_begins_where_the_session_is(
    shop: fv.Warehouse,
    clock: Settable,
    spark: SparkSession,
    name: str,
    before: datetime,
    midnight: str,
) -> None:
    with zone(spark, name):
        shop.create_view("today", "SELECT id FROM orders WHERE day = current_date()")
        clock.now = before
        assert shop.refresh()["today"].mode == "unchanged"
        assert ids(shop, "today") == [0]
        clock.now = datetime.fromisoformat(midnight + "+00:00")
        assert shop.refresh()["today"].mode == "incremental"
        assert ids(shop, "today") == [1]
        right(shop)


def test_the_hour_that_comes_twice_and_the_one_that_is_left_out(
    shop: fv.Warehouse, clock: Settable, spark: SparkSession
) -> None:
    with zone(spark, "Europe/Berlin"):
        shop.create_view(
            "local",
            "SELECT id FROM orders WHERE day BETWEEN DATE'2026-03-20' AND DATE'2026-11-01'"
            " AND CAST(day AS TIMESTAMP_NTZ) <= localtimestamp() - INTERVAL '2:30' HOUR TO MINUTE",
            policy="STRICT",
        )
        shop.create_view(
            "later",
            "SELECT id FROM orders WHERE CAST(day AS TIMESTAMP) > current_date() AND id < 40",
            policy="STRICT",
        )
        for text in (
            "2026-03-29T00:59:59",
            "2026-03-29T01:00:00",
            "2026-10-25T00:29:00",
            "2026-10-25T00:31:00",
            "2026-10-25T01:29:00",
            "2026-10-25T01:31:00",
        ):
            clock.now = datetime.fromisoformat(text + "+00:00")
            shop.refresh()
            right(shop)


def test_an_aggregate_above_the_window(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view(
        "totals",
        "SELECT customer, count(*) AS n, sum(amount) AS total, max(day) AS last FROM orders"
        " WHERE day > current_date() - 30 AND day <= current_date() GROUP BY customer",
        policy="STRICT",
    )
    shop.create_view("total", f"SELECT count(*) AS n FROM ({WINDOW})", policy="STRICT")
    for days in (1, 3, 200):
        clock.tick(days=days)
        assert {view.mode for view in shop.refresh().views} == {"incremental"}
        right(shop)
    assert ids(shop, "totals", "customer") == []
    assert ids(shop, "total", "n") == [0]


def test_having_with_the_clock(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view(
        "quiet",
        "SELECT customer, max(day) AS last FROM orders WHERE id < 0 GROUP BY customer"
        " HAVING max(day) < current_date() - 5",
        policy="STRICT",
    )
    assert ids(shop, "quiet", "customer") == [0, 1]
    clock.tick(days=1)
    assert shop.refresh()["quiet"].mode == "incremental"
    assert ids(shop, "quiet", "customer") == [0, 1, 2]
    right(shop)


def test_a_join_with_the_window_on_one_side(shop: fv.Warehouse, clock: Settable) -> None:
    """The rows of the range lead to those of the other table."""
    shop.create_view(
        "named",
        "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.customer"
        " WHERE o.day > current_date() - 30 AND o.day <= current_date()",
        policy="STRICT",
    )
    clock.tick(days=1)
    report = shop.refresh()["named"]
    assert report.rows_out == 2
    assert report.rows_read == 4 + 4 + 30
    shop.apply(
        {"customers": fv.TableChanges(update=[{"customer": 1, "name": "x"}], key=["customer"])}
    )
    clock.tick(days=1)
    assert shop.refresh()["named"].mode == "incremental"
    right(shop)


JOINS = {
    "left": "SELECT c.customer, o.id FROM customers c LEFT JOIN orders o ON c.customer = o.customer"
    " AND o.day BETWEEN current_date() - 2 AND current_date()",
    "full": "SELECT c.name, o.id FROM customers c FULL JOIN orders o ON c.customer = o.customer"
    " AND o.day = current_date()",
    "right": "SELECT c.name, o.id FROM orders o RIGHT JOIN customers c ON c.customer = o.customer"
    " AND o.day = current_date() - CAST(c.customer AS INT)",
    "not_exists": "SELECT customer, name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o"
    " WHERE o.customer = c.customer AND o.day BETWEEN current_date() - 4 AND current_date())",
    "exists": "SELECT customer, name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o"
    " WHERE o.customer = c.customer AND o.day = current_date() - CAST(c.customer AS INT))",
    "not_in": "SELECT customer FROM customers WHERE customer NOT IN"
    " (SELECT customer FROM orders WHERE day = current_date())",
    "marked": "SELECT customer, name FROM customers c WHERE customer = 6 OR EXISTS (SELECT 1 FROM"
    " orders o WHERE o.customer = c.customer AND o.day = current_date())",
    "scalar": "SELECT name FROM customers WHERE customer >"
    " (SELECT count(*) FROM orders WHERE day > current_date() AND day < DATE'2026-03-20')",
    "except": "SELECT id FROM orders WHERE id > -5 EXCEPT SELECT id FROM orders WHERE day > now()",
    "union": "SELECT id FROM orders WHERE day = current_date() UNION ALL"
    " SELECT customer FROM orders WHERE day = current_date() + 1",
    "self": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer"
    " AND a.day = current_date() AND b.day > current_date() - 10 AND b.day < current_date() + 10",
    "distinct": "SELECT DISTINCT customer FROM orders WHERE day BETWEEN current_date() - 3"
    " AND current_date()",
}


@pytest.mark.parametrize("by_spark", [False, True], ids=["native", "spark"])
def test_the_clock_in_joins_and_subqueries(
    tmp_path: Path, spark: SparkSession, clock: Settable, by_spark: bool
) -> None:
    limits = (NOTHING_LOCAL, NOTHING_NATIVE) if by_spark else (None, None)
    root = fv.open(tmp_path / "shop", spark, clock=clock).root
    shop = Warehouse(root, spark, *limits, clock=clock)
    shop.create_table("orders", orders(range(-20, 20)))
    shop.create_table(
        "customers", pa.table({"customer": range(7), "name": [f"c{n}" for n in range(7)]})
    )
    names = list(JOINS)[:: 3 if by_spark else 1]
    for name in names:
        shop.create_view(name, JOINS[name], policy="INCREMENTAL")
    right(shop)
    steps: list[tuple[int, fv.TableChanges | None]] = [
        (1, None),
        (1, fv.TableChanges(delete=[{"id": 1}, {"id": 2}], key=["id"])),
        (-3, fv.TableChanges(update=orders(range(3)), key=["id"])),
        (6, None),
    ]
    for days, change in steps:
        clock.tick(days=days)
        if change is not None:
            shop.apply({"orders": change})
        report = shop.refresh()
        assert {view.mode for view in report.views} <= {"incremental", "no effect"}, report
        right(shop)


def test_a_view_on_a_view_has_the_same_moment(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view("recent", WINDOW, policy="STRICT")
    shop.create_view(
        "newest", "SELECT id FROM recent WHERE day >= current_date() - 1", policy="STRICT"
    )
    shop.create_view("size", "SELECT count(*) AS n FROM recent", policy="STRICT")
    clock.now = datetime(2026, 3, 15, 22, tzinfo=UTC)
    clock.drift = timedelta(hours=12)
    report = shop.refresh()
    clock.drift = timedelta()
    assert report["recent"].moment == report["newest"].moment == "2026-03-16"
    assert ids(shop, "newest") == [0, 1]
    assert shop.read("size").collect()[0]["n"] == 30
    right(shop)


def test_a_check_is_made_for_the_moment_of_the_refresh(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view("recent", WINDOW)
    shop.create_view("past", "SELECT id FROM orders WHERE at < now() AND id > -9")
    clock.tick(days=10)
    right(shop)
    assert shop.check("recent").versions["current_date() in UTC"] == (TODAY - date(1970, 1, 1)).days
    shop.refresh(full=True)
    assert ids(shop, "recent") == list(range(-19, 11))
    right(shop)


def test_a_repair_is_made_for_the_moment_of_the_refresh(
    shop: fv.Warehouse, clock: Settable
) -> None:
    shop.create_view("recent", WINDOW)
    place = shop.parts.catalog.path(shop.catalog.view("recent"))
    shop.spark.sql(f"DELETE FROM delta.`{place}` WHERE id < -20")
    clock.tick(days=10)
    assert shop.check("recent", repair_groups=True).missing == 9
    assert ids(shop, "recent") == list(range(-29, 1))
    right(shop)
    shop.refresh()
    assert ids(shop, "recent") == list(range(-19, 11))
    right(shop)


def test_the_clock_goes_back(shop: fv.Warehouse, clock: Settable) -> None:
    """What had left comes back: another delta, and no recompute."""
    shop.create_view("recent", WINDOW, policy="STRICT")
    shop.create_view("past", "SELECT id FROM orders WHERE at < now() AND id > -9", policy="STRICT")
    before = [ids(shop, view) for view in ("recent", "past")]
    clock.tick(days=5)
    shop.refresh()
    clock.tick(days=-5)
    report = shop.refresh()
    assert {view.mode for view in report.views} == {"incremental"}
    assert [ids(shop, view) for view in ("recent", "past")] == before
    right(shop)


def test_a_recompute_and_a_refused_rule_are_for_the_pinned_moment(
    shop: fv.Warehouse, clock: Settable
) -> None:
    """A view that has no incremental rule is computed anew when the day changes, and not before."""
    shop.create_view("drifting", f"SELECT avg(id) AS a, count(*) AS n FROM ({WINDOW})")
    assert shop.refresh()["drifting"].mode == "unchanged"
    clock.tick(days=1)
    report = shop.refresh()["drifting"]
    assert (report.mode, report.moment) == ("full", "2026-03-16")
    assert shop.read("drifting").collect()[0]["a"] == sum(range(-28, 2)) / 30
    right(shop)


def test_a_view_by_a_function(shop: fv.Warehouse, clock: Settable) -> None:
    @shop.view(policy="STRICT")
    def recent(warehouse: fv.Warehouse) -> DataFrame:
        rows = warehouse.table("orders")
        return rows.where(rows.day == sf.current_date()).select("id")

    clock.tick(days=3)
    assert shop.refresh()["recent"].mode == "incremental"
    assert ids(shop, "recent") == [3]
    right(shop)
    shop.view(recent, policy="STRICT")  # the same one again


def test_a_function_that_comes_to_read_the_clock(shop: fv.Warehouse, clock: Settable) -> None:
    def first(warehouse: fv.Warehouse) -> DataFrame:
        return warehouse.table("orders").where("id > 80").select("id", "day")

    def second(warehouse: fv.Warehouse) -> DataFrame:
        return warehouse.table("orders").where("day = current_date()").select("id", "day")

    shop.view(first, name="changing")
    shop._definitions.functions["changing"] = second
    report = shop.refresh()["changing"]
    assert (report.mode, report.reason) == ("full", "DEFINITION_CHANGED")
    assert ids(shop, "changing") == [0]
    clock.tick(days=1)
    assert shop.refresh()["changing"].mode == "incremental"
    right(shop)
    shop._definitions.functions["changing"] = first
    assert shop.refresh()["changing"].reason == "DEFINITION_CHANGED"
    clock.tick(days=1)
    assert shop.refresh()["changing"].mode == "unchanged"
    right(shop)


def test_what_feeds_only_a_filter_may_read_the_clock(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view(
        "young",
        "WITH aged AS (SELECT id, day, datediff(current_date(), day) AS age FROM orders)"
        " SELECT id FROM aged WHERE age BETWEEN 0 AND 2",
        policy="STRICT",
    )
    clock.tick(days=1)
    shop.refresh()
    assert ids(shop, "young") == [-1, 0, 1]
    right(shop)


@pytest.mark.parametrize(
    ("query", "code", "subject"),
    [
        ("SELECT id, current_date() AS d FROM orders", "CLOCK_OUTSIDE_FILTER", "current_date()"),
        ("SELECT id, at < now() AS past FROM orders", "CLOCK_OUTSIDE_FILTER", "now()"),
        (
            "SELECT datediff(current_date(), day) AS age, count(*) AS n FROM orders GROUP BY 1",
            "CLOCK_OUTSIDE_FILTER",
            "current_date()",
        ),
        (
            "SELECT max(localtimestamp()) AS m FROM orders",
            "CLOCK_OUTSIDE_FILTER",
            "localtimestamp()",
        ),
        (
            "SELECT count(*) FILTER (WHERE day < current_date()) AS n FROM orders",
            "CLOCK_OUTSIDE_FILTER",
            "current_date()",
        ),
        (
            "SELECT id FROM (SELECT id, rank() OVER (ORDER BY at - now()) AS r FROM orders) WHERE r < 3",
            "CLOCK_OUTSIDE_FILTER",
            "now()",
        ),
        ("SELECT id FROM orders WHERE day < CAST('today' AS DATE)", "DEPENDS_ON_CLOCK", None),
        ("SELECT id FROM orders WHERE current_time() > TIME'12:00:00'", "DEPENDS_ON_CLOCK", None),
        (
            "SELECT id FROM orders WHERE day > current_date() AND rand() > 0.5",
            "NOT_DETERMINISTIC",
            None,
        ),
    ],
)
def test_other_uses_of_the_clock_are_refused(
    shop: fv.Warehouse, query: str, code: str, subject: str | None
) -> None:
    with pytest.raises(ViewNotMaintainable) as caught:
        shop.create_view("v", query)
    assert caught.value.parameters["reason"] == code
    if subject is not None:
        assert caught.value.parameters["subject"] == subject
        assert f"use {subject} in WHERE" in str(caught.value)
    assert "v" not in shop.catalog


def test_a_time_zone_that_python_does_not_know_is_refused(
    shop: fv.Warehouse, spark: SparkSession
) -> None:
    with zone(spark, "PST"), pytest.raises(ViewNotMaintainable) as caught:
        shop.create_view("v", WINDOW)
    assert caught.value.parameters["reason"] == "UNKNOWN_TIME_ZONE"


@pytest.mark.parametrize("wrong", ["yesterday", "2026-03-15T08:00:00"])
def test_a_clock_that_says_no_moment_is_refused(
    shop: fv.Warehouse, spark: SparkSession, wrong: str
) -> None:
    shop.create_view("recent", WINDOW)
    with pytest.raises(InvalidMoment):
        fv.open(shop.root, spark, clock=fixed_clock(wrong)).refresh()  # type: ignore[arg-type]


def test_explain_and_status_tell_the_moment(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view("recent", WINDOW)
    assert shop.status()[0].moment == "2026-03-15"
    clock.tick(days=1)
    text = str(shop.explain("recent", paper=True))
    assert "reads      orders@0, current_date() in UTC 2026-03-15→2026-03-16" in text
    assert "current_date() in UTC moves from 2026-03-15 to 2026-03-16" in text
    assert "current_date() in UTC changes" in text
    assert json.loads(shop.explain("recent").to_json())["technique"]
