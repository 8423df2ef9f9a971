"""Views over the clock: time zones, definitions that may ask it and those that may not, settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import freshview as fv
from freshview.errors import InvalidMoment, ViewNotMaintainable
from freshview.runtime.clock import fixed_clock
from tests.cli.run import in_process
from tests.integration.clock_shop import (
    WINDOW,
    Settable,
    ids,
    open_shop,
    right,
    zone,
)

pytestmark = pytest.mark.spark


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
        today = "SELECT id FROM orders WHERE day = current_date()"
        shop.create_view("today", today, policy="STRICT")
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
        shop.create_view(
            "moments",
            "SELECT id FROM orders WHERE at BETWEEN now() - INTERVAL 1 DAY AND now()",
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


def test_local_times_that_the_clocks_leave_out(
    tmp_path: Path, spark: SparkSession, clock: Settable
) -> None:
    """Spark compares a TIMESTAMP_NTZ with the clock's local time: 2:30 is past at 3:20, and never was."""
    shop = fv.open(tmp_path / "local", spark, clock=clock)
    first = datetime.fromisoformat("2026-03-29T01:00:00")
    times = [first + timedelta(minutes=30 * n) for n in range(7)]
    shop.create_table("o", pa.table({"id": range(7), "local": times}))
    views = {
        "past": "SELECT id FROM o WHERE local < now()",
        "next": "SELECT id FROM o WHERE now() <= local AND id > 0",
        "many": "SELECT count(*) AS id FROM o WHERE NOT local >= now() - INTERVAL 1 MINUTE",
        "last": "SELECT id FROM o WHERE local BETWEEN now() - INTERVAL 1 HOUR AND now() OR id = 9",
    }
    with zone(spark, "Europe/Berlin"):
        clock.now = datetime(2026, 3, 29, 1, 20, tzinfo=UTC)
        for name, query in views.items():
            shop.create_view(name, query, policy="STRICT")
        assert ids(shop, "past") == [0, 1, 2, 3, 4]
        for hour, minute in ((2, 20), (0, 40), (1, 0), (1, 40), (0, 59)):
            clock.now = datetime(2026, 3, 29, hour, minute, tzinfo=UTC)
            report = shop.refresh()
            assert {view.mode for view in report.views} <= {"incremental", "no effect"}, report
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

    shop.view(first, name="changing", policy="INCREMENTAL")
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


def test_the_command_line_takes_a_moment(shop: fv.Warehouse) -> None:
    shop.create_view("recent", WINDOW)
    at = ("--at", "2026-03-18T01:00:00+02:00", "-w", shop.root)
    assert "2026-03-15→2026-03-17" in in_process("explain", "recent", *at).out
    told = in_process("refresh", "recent", "--policy", "strict", *at)
    assert "2026-03-17" in told.out
    assert ids(shop, "recent") == list(range(-27, 3))
    repeated = in_process("refresh", *at, "--json").answer
    assert [(v["mode"], v["moment"]) for v in repeated["views"]] == [("unchanged", "2026-03-17")]
    assert "current_date() in UTC@2026-03-17" in in_process("check", *at).out
    status = in_process("status", "-w", shop.root)
    assert "behind: current_date() in UTC 2026-03-17→" in " ".join(status.out.split())
    wrong = in_process("refresh", "--at", "2026-03-18T01:00:00", "-w", shop.root)
    assert wrong.status == 1
    assert "INVALID_MOMENT" in wrong.err


def test_explain_and_status_tell_the_moment(shop: fv.Warehouse, clock: Settable) -> None:
    shop.create_view("recent", WINDOW, policy="INCREMENTAL")
    assert shop.status()[0].moment == "2026-03-15"
    clock.tick(days=1)
    text = str(shop.explain("recent", paper=True))
    assert "reads      orders@0, current_date() in UTC 2026-03-15→2026-03-16" in text
    assert "current_date() in UTC moves from 2026-03-15 to 2026-03-16" in text
    assert "current_date() in UTC changes" in text
    assert json.loads(shop.explain("recent").to_json())["technique"]
