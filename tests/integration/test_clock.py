"""Moving windows on Spark and Delta: what enters and leaves by the clock, under every operator."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.bench.timed import jobs_started
from freshview.planner.plan import Limits
from freshview.runtime.warehouse import Warehouse
from freshview.storage.choose import Limits as StorageLimits
from tests.integration.clock_shop import (
    START,
    TODAY,
    WINDOW,
    Settable,
    customers,
    ids,
    open_shop,
    orders,
    right,
    zone,
)

pytestmark = pytest.mark.spark

NOTHING_NATIVE = StorageLimits(
    changes_rows=0, changes_bytes=0, lookup_keys=0, lookup_rows=0, read_rows=0, write_rows=0
)
NOTHING_LOCAL = Limits(delta_rows=0, lookup_rows=0, whole_view_rows=0)


@pytest.fixture(autouse=True)
def utc(spark: SparkSession) -> Iterator[None]:
    with zone(spark, "UTC"):
        yield


@pytest.fixture
def clock() -> Settable:
    return Settable()


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, clock: Settable) -> fv.Warehouse:
    return open_shop(tmp_path / "shop", spark, clock)


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
    shop: fv.Warehouse, clock: Settable, spark: SparkSession
) -> None:
    """Of a thousand rows: from the old to the new first day of the window, and so for its last."""
    shop.create_view("recent", WINDOW, policy="STRICT")
    clock.tick(days=1)
    explained = str(shop.explain("recent"))
    assert "look up orders after (version 0) where orders.day between" in explained
    assert "with Spark" not in explained
    jobs = jobs_started(spark)
    assert shop.refresh()["recent"].rows_read == 2 + 2 + 30  # and the whole view, which is small
    assert jobs_started(spark) == jobs, "all of it is evaluated in the driver"


def test_a_range_of_a_column_that_is_cast_is_a_day_wider_at_each_end(
    shop: fv.Warehouse, clock: Settable
) -> None:
    """A moment's day, and the moment at which a day begins; one order a day, at noon."""
    queries = {
        "moments": "SELECT id FROM orders WHERE CAST(at AS DATE) = current_date()",
        "days": "SELECT id FROM orders WHERE day <= now() AND day > now() - INTERVAL 1 DAY",
    }
    for name, query in queries.items():
        shop.create_view(name, query, policy="STRICT")
    clock.tick(days=1)
    report = shop.refresh()
    assert report["moments"].rows_read == 4 + 1  # and the one row of the view
    assert report["days"].rows_read == 2 * 4 - 3 + 1  # ranges that overlap in three days
    assert ids(shop, "moments") == ids(shop, "days") == [1]
    right(shop)


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
    "of_the_kept_side": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c"
    " ON c.customer = o.customer AND o.day = current_date()",
    "not_exists_of_its_own": "SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c"
    " WHERE c.customer = o.customer AND o.day <= current_date())",
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
    shop.create_table("customers", customers())
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


def test_a_refresh_that_was_overtaken_pins_a_later_moment(
    shop: fv.Warehouse, clock: Settable
) -> None:
    """Another refresher is ahead of the moment that was pinned, and the clock has reached it too."""
    shop.create_view("past", "SELECT id FROM orders WHERE at < now() AND id > -9", policy="STRICT")
    clock.now, clock.drift = START - timedelta(hours=3), timedelta(hours=2)
    report = shop.refresh()["past"]
    clock.drift = timedelta()
    assert report.moment == "2026-03-15T15:00:00+00:00"
    assert ids(shop, "past")[-1] == 0
    right(shop)


def test_a_recompute_and_a_refused_rule_are_for_the_pinned_moment(
    shop: fv.Warehouse, clock: Settable
) -> None:
    """A view that has no incremental rule is computed anew when the day changes, and not before."""
    shop.create_view(
        "drifting", f"SELECT collect_list(map(id, 1)) AS m, count(*) AS n FROM ({WINDOW})"
    )
    assert shop.refresh()["drifting"].mode == "unchanged"
    clock.tick(days=1)
    report = shop.refresh()["drifting"]
    assert (report.mode, report.moment) == ("full", "2026-03-16")
    shown = shop.read("drifting").collect()[0]["m"]
    assert sorted(key for entry in shown for key in entry) == list(range(-28, 2))
    right(shop)
