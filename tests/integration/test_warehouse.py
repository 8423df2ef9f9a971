"""The warehouse as users see it: policies, epochs, transactions, statements, check and repair."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame, SparkSession

import freshview as fv
from freshview.errors import (
    DefinitionRejected,
    InvalidChanges,
    InvalidColumn,
    NameTaken,
    NoCommonEpoch,
    NotIncremental,
    SettingsDiffer,
    StrictImpossible,
    TableMissing,
    UnknownEpoch,
    UnregisteredSource,
    ViewCycle,
    ViewInUse,
    ViewNotMaintainable,
)
from freshview.planner.cost import Costs
from freshview.runtime.explanation import Explanation
from freshview.runtime.report import ADVANCED, FULL, INCREMENTAL, UNCHANGED
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import Limits as StorageLimits
from freshview.storage.native import NativeStorage

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
pytestmark = pytest.mark.spark


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> fv.Warehouse:
    warehouse = fv.open(tmp_path / "shop", spark)
    orders = {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"], "note": ["a", "b", "c"]}
    lines = {"id": [1, 1, 2], "price": [Decimal("1.50"), Decimal("1.50"), Decimal("2.00")]}
    warehouse.create_table("orders", pa.table(orders))
    warehouse.create_table(
        "lines",
        pa.table({"id": lines["id"], "price": pa.array(lines["price"], pa.decimal128(10, 2))}),
    )
    return warehouse


def rows(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


TOTALS = "SELECT city, count(*) AS n, sum(price) AS total FROM orders JOIN lines USING (id) GROUP BY city"


def test_a_view_on_a_view_is_refreshed_from_what_is_handed_over(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS)
    shop.create_view("everything", "SELECT sum(total) AS total, count(*) AS cities FROM totals")
    shop.apply({"lines": fv.TableChanges(insert=[{"id": 3, "price": Decimal("4.00")}])})
    with patch.object(
        NativeStorage, "changes", autospec=True, side_effect=NativeStorage.changes
    ) as read:
        report = shop.refresh(policy="INCREMENTAL")
    assert [(v.view, v.mode) for v in report.views] == [
        ("totals", INCREMENTAL), ("everything", INCREMENTAL),
    ]  # fmt: skip
    assert [Path(call.args[1]).name for call in read.call_args_list] == ["lines"]
    assert rows(shop.read("everything")) == [(Decimal("9.00"), 2)]
    assert shop.check("everything").ok


def test_a_handover_lost_in_a_crash_is_rebuilt_from_committed_versions(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS, policy="INCREMENTAL")
    shop.create_view("above", "SELECT count(*) AS cities FROM totals", policy="INCREMENTAL")
    shop.apply({"orders": fv.TableChanges(insert=[{"id": 9, "city": "Bern", "note": ""}])})
    shop.apply({"lines": fv.TableChanges(insert=[{"id": 9, "price": Decimal("1.00")}])})
    shop.refresh("totals")
    report = fv.open(shop.root, shop.spark).refresh()
    assert report["totals"].mode == UNCHANGED
    assert report["above"].mode == INCREMENTAL
    assert rows(shop.read("above")) == [(3,)]


def test_changes_that_do_not_touch_the_view_still_advance_it(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS, policy="STRICT")
    updated = [{"id": 1, "city": "Oslo", "note": "other"}]
    shop.apply({"orders": fv.TableChanges(update=updated, key=["id"])})
    assert shop.refresh()["totals"].mode == ADVANCED
    assert shop.refresh()["totals"].mode == UNCHANGED
    shop.spark.sql(f"OPTIMIZE delta.`{shop.root / 'tables' / 'lines'}`")
    assert {shop.refresh()["totals"].mode for _ in range(2)} <= {ADVANCED, UNCHANGED}
    assert not shop.status()[0].pending


def test_policies(shop: fv.Warehouse) -> None:
    query = "SELECT city, first(map(city, id))[city] AS id FROM orders GROUP BY city"
    shop.create_view("some", query)
    shop.create_view("totals", TOTALS, policy="FULL")
    shop.apply({"orders": fv.TableChanges(delete=[{"id": 3}], key=["id"])})
    report = shop.refresh()
    assert (report["some"].mode, report["some"].reason) == (
        FULL,
        "NO_ORDER_OF_ROWS",
    )
    assert (report["totals"].mode, report["totals"].reason) == (FULL, "POLICY_FULL")
    with pytest.raises(StrictImpossible):
        shop.set_policy("some", "STRICT")
    shop.apply({"orders": fv.TableChanges(delete=[{"id": 2}], key=["id"])})
    with pytest.raises(NotIncremental) as strict:
        shop.refresh("some", policy="STRICT")
    assert strict.value.parameters["reason"] == "NO_ORDER_OF_ROWS"
    assert rows(shop.read("some")) == [("Oslo", 1), ("Rome", 2)]
    log = shop.parts.log.read(["view", "mode", "error"]).to_pylist()
    failed = {"view": "some", "mode": "failed", "error": "NOT_INCREMENTAL"}
    assert [row for row in log if row["error"] is not None] == [failed]


def test_auto_recomputes_when_that_is_cheaper_and_says_so(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS)
    many = [{"id": 1, "price": Decimal("1.00")}] * 5
    shop.apply({"lines": fv.TableChanges(insert=many)})
    with patch("freshview.planner.plan.full_ms", return_value=1.0):
        report = shop.refresh()["totals"]
    assert (report.mode, report.reason) == (FULL, "RECOMPUTE_CHEAPER")
    assert shop.check("totals").ok


def test_what_a_failed_creation_has_refreshed_is_in_the_log(shop: fv.Warehouse) -> None:
    shop.create_view("below", "SELECT id FROM orders", policy="INCREMENTAL")
    shop.apply({"orders": fv.TableChanges(delete=[{"id": 2}], key=["id"])})
    with pytest.raises(ArithmeticException):
        shop.create_view("bad", "SELECT 1 / (id - 1) AS x FROM below")
    log = shop.parts.log.read(["view", "mode"]).to_pylist()
    assert {"view": "below", "mode": INCREMENTAL} in log
    assert [view.name for view in shop.catalog.views()] == ["below"]


def test_a_pair_of_rows_that_never_was_makes_no_error(shop: fv.Warehouse) -> None:
    """A row that one table gains meets, in a term, a row that another loses at the same time."""
    shop.create_table("a", pa.table({"k": [1], "x": [5]}))
    shop.create_table("b", pa.table({"k": [1], "y": [3]}))
    query = "SELECT a.k, 6 / (x - y) AS q FROM a JOIN b ON a.k = b.k"
    shop.create_view("quotients", query, policy="INCREMENTAL")
    shop.apply(
        {
            "a": fv.TableChanges(insert=pa.table({"k": [1], "x": [3]})),
            "b": fv.TableChanges(update=[{"k": 1, "y": 4}], key=["k"]),
        }
    )
    report = shop.refresh()["quotients"]
    assert (report.mode, report.reason) == (FULL, "EVALUATION_FAILED")
    assert "DIVIDE_BY_ZERO" in (report.why or "")
    assert rows(shop.read("quotients").orderBy("q")) == [(1, -6.0), (1, 6.0)]
    shop.apply({"b": fv.TableChanges(insert=pa.table({"k": [1], "y": [3]}))})
    version = shop.status()[0].version
    with pytest.raises(ArithmeticException):
        shop.refresh()
    assert shop.status()[0].version == version
    shop.apply({"b": fv.TableChanges(delete=[{"k": 1}], key=["k"])})
    assert shop.refresh()["quotients"].mode == INCREMENTAL
    assert rows(shop.read("quotients")) == []


def test_a_group_that_goes_is_not_evaluated(shop: fv.Warehouse) -> None:
    query = "SELECT city, 100 / count(*) AS share FROM orders GROUP BY city"
    shop.create_view("shares", query, policy="STRICT")
    shop.apply({"orders": fv.TableChanges(delete=[{"id": 2}, {"id": 3}], key=["id"])})
    assert shop.refresh()["shares"].mode == INCREMENTAL
    assert rows(shop.read("shares")) == [("Oslo", 100.0)]
    assert shop.check("shares").ok


def test_a_view_that_fails_does_not_stop_the_others(shop: fv.Warehouse) -> None:
    shop.create_view("bad", "SELECT id, 1 / (id - 9) AS q FROM orders", policy="INCREMENTAL")
    shop.create_view("above", "SELECT count(*) AS n FROM bad", policy="INCREMENTAL")
    shop.create_view("good", "SELECT count(*) AS n FROM orders", policy="INCREMENTAL")
    before = shop.epoch("good")
    shop.apply({"orders": fv.TableChanges(insert=[{"id": 9, "city": "Bern", "note": ""}])})
    with pytest.raises(ArithmeticException) as failed:
        shop.refresh()
    notes = "\n".join(failed.value.__notes__)
    assert "bad" in notes
    assert "above" in notes
    assert rows(shop.read("good")) == [(4,)]
    assert rows(shop.read("above")) == [(3,)]
    assert shop.epoch("good") == before + 1
    assert not {"bad", "above"} & set(shop.parts.epochs.read(before + 1).views)
    shop.apply({"orders": fv.TableChanges(delete=[{"id": 9}], key=["id"])})
    shop.refresh()
    assert all(shop.check(name).ok for name in ("bad", "above", "good"))


def test_a_view_keeps_the_settings_under_which_it_was_defined(shop: fv.Warehouse) -> None:
    spark, query = shop.spark, "SELECT id, 10 / (id - 1) AS q FROM orders"
    zone = "spark.sql.session.timeZone"
    shop.create_view("before", "SELECT hour(TIMESTAMP '2024-01-01 00:00:00Z') AS h FROM orders")
    before = spark.conf.get(zone)
    spark.conf.set(zone, "Asia/Tokyo")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        shop.create_view("after", query, policy="STRICT")
        hours = "SELECT hour(TIMESTAMP '2024-01-01 00:00:00Z') AS h FROM orders"
        shop.create_view("hours", hours, policy="STRICT")
        shop.apply({"orders": fv.TableChanges(insert=[{"id": 1, "city": "Bern", "note": ""}])})
        assert shop.refresh("after")["after"].mode == INCREMENTAL
        assert shop.refresh("hours")["hours"].mode == INCREMENTAL
        assert shop.check("after").ok
        assert set(rows(shop.read("hours"))) == {(9,)}
        with pytest.raises(SettingsDiffer):
            shop.refresh("before")
    finally:
        spark.conf.set(zone, before)
        spark.conf.unset("spark.sql.ansi.enabled")
    shop.refresh("before")
    assert set(rows(shop.read("before"))) == {(0,)}
    with pytest.raises(SettingsDiffer):
        shop.check("after")


def test_star_stays_what_it_was_when_a_column_is_added(shop: fv.Warehouse) -> None:
    shop.create_view("everything", "SELECT DISTINCT * FROM orders", policy="STRICT")
    table = f"delta.`{shop.root / 'tables' / 'orders'}`"
    shop.spark.sql(f"ALTER TABLE {table} ADD COLUMNS (extra int)")
    shop.spark.sql(f"INSERT INTO {table} VALUES (7, 'Bern', '', 1), (7, 'Bern', '', 2)")
    again = fv.open(shop.root, shop.spark)
    assert again.refresh()["everything"].mode == INCREMENTAL
    assert again.read("everything").columns == ["id", "city", "note"]
    assert again.read("everything").count() == 4
    assert again.check("everything").ok


def test_explain_tells_why_the_next_refresh_recomputes(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS, policy="FULL")
    shop.create_view("cheap", TOTALS)
    shop.apply({"orders": fv.TableChanges(insert=[{"id": 9, "city": "Bern", "note": ""}])})
    told = shop.explain("totals")
    assert told.reason is not None
    assert told.reason.code == "POLICY_FULL"
    assert told.stages == ("recompute totals in full and overwrite it (POLICY_FULL)",)
    with patch.object(Costs, "prefers_full", True):
        told = shop.explain("cheap")
    assert told.reason is not None
    assert told.reason.code == "RECOMPUTE_CHEAPER"
    updated = [{"id": 1, "city": "Oslo", "note": "other"}]
    shop.refresh()
    shop.apply({"orders": fv.TableChanges(update=updated, key=["id"])})
    assert shop.explain("cheap").stages == (
        "commit the consumed versions of cheap; no row changes",
    )


def test_a_transaction_that_a_table_refuses_is_taken_back(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS, policy="STRICT")
    path = shop.root / "tables" / "orders"
    shop.spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (id > 0)")
    before = rows(shop.table("lines"))
    lines = fv.TableChanges(insert=[{"id": 1, "price": Decimal("1.00")}])
    wrong = fv.TableChanges(insert=[{"id": -1, "city": "Bern", "note": ""}])
    with pytest.raises(InvalidChanges) as refused:
        shop.apply({"lines": lines, "orders": wrong})
    assert "positive" in str(refused.value).lower()
    assert rows(shop.table("lines")) == before
    shop.refresh()
    assert shop.check("totals").ok
    shop.apply({"lines": lines})
    twice = [{"id": 1, "city": "a", "note": ""}, {"id": 1, "city": "b", "note": ""}]
    with pytest.raises(InvalidChanges, match="key that another one has"):
        shop.apply({"lines": lines, "orders": fv.TableChanges(update=twice, key=["id"])})
    assert shop.refresh()["totals"].mode == INCREMENTAL
    assert shop.check("totals").ok


def test_a_lookup_in_a_counted_view_does_not_bring_its_copies_to_the_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = open_warehouse(tmp_path, spark)
    small.create_table("t", pa.table({"x": [1] * 100}))
    small.create_table("k", pa.table({"x": [1], "y": [1]}))
    limited = Warehouse(tmp_path, spark, storage_limits=StorageLimits(lookup_rows=50))
    limited.create_view("c", "SELECT x FROM t", policy="STRICT")
    joined = "SELECT k.y, count(*) AS n FROM c JOIN k ON c.x = k.x GROUP BY k.y"
    limited.create_view("j", joined, policy="STRICT")
    limited.apply({"k": fv.TableChanges(insert=pa.table({"x": [1], "y": [2]}))})
    report = limited.refresh()["j"]
    assert (report.mode, report.rows_read) == (INCREMENTAL, 1)
    assert rows(limited.read("j").orderBy("y")) == [(1, 100), (2, 100)]


def test_epochs_keep_views_that_agree(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS)
    first = shop.refresh(full=True).epoch
    shop.apply({"lines": fv.TableChanges(insert=[{"id": 2, "price": Decimal("1.00")}])})
    second = shop.refresh().epoch
    assert first is not None
    assert second == first + 1
    assert ("Rome", 1, Decimal("2.00")) in rows(shop.read("totals", epoch=first))
    assert ("Rome", 2, Decimal("3.00")) in rows(shop.read("totals", epoch=second))
    with pytest.raises(UnknownEpoch):
        shop.read("totals", epoch=999)


def test_bad_changes_write_nothing(shop: fv.Warehouse) -> None:
    before = shop.parts.sources.latest("orders")
    for bad in (
        fv.TableChanges(),
        fv.TableChanges(delete=[{"id": 1}]),
        fv.TableChanges(delete=[{"id": 1}], key=["nothing"]),
        fv.TableChanges(insert=[{"id": "x"}]),
        fv.TableChanges(insert=[{"unknown": 1}]),
    ):
        good = fv.TableChanges(insert=[{"id": 7, "price": Decimal("5.00")}])
        with pytest.raises(InvalidChanges):
            shop.apply({"lines": good, "orders": bad})
    assert shop.parts.sources.latest("orders") == before
    assert shop.table("lines").count() == 3


def test_statements(shop: fv.Warehouse) -> None:
    shop.sql(f"CREATE MATERIALIZED VIEW totals COMMENT 'per city' AS {TOTALS}")
    assert shop.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS SELECT 1 AS x") is None
    with pytest.raises(NameTaken):
        shop.sql("CREATE MATERIALIZED VIEW totals AS SELECT 1 AS x FROM orders")
    shop.sql("INSERT INTO lines VALUES (2, 10.00)")
    shop.sql("UPDATE orders SET city = 'Bonn' WHERE id = 2")
    shop.sql("DELETE FROM orders WHERE id = 3")
    shop.sql("ALTER MATERIALIZED VIEW totals SET POLICY STRICT")
    assert shop.sql("REFRESH MATERIALIZED VIEW totals").views[0].mode == INCREMENTAL
    assert rows(shop.sql("SELECT * FROM totals WHERE city = 'Bonn'")) == [
        ("Bonn", 2, Decimal("12.00"))
    ]
    assert isinstance(shop.sql("EXPLAIN MATERIALIZED VIEW totals"), Explanation)
    assert [s.view for s in shop.sql("SHOW MATERIALIZED VIEWS")] == ["totals"]
    shop.sql("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM totals")
    with pytest.raises(ViewInUse):
        shop.sql("DROP MATERIALIZED VIEW totals")
    shop.sql("DROP MATERIALIZED VIEW above")
    shop.sql("CREATE OR REPLACE MATERIALIZED VIEW totals AS SELECT count(*) AS n FROM orders")
    assert rows(shop.read("totals")) == [(2,)]
    shop.sql("DROP MATERIALIZED VIEW totals")
    shop.sql("DROP MATERIALIZED VIEW IF EXISTS totals")
    assert not list((shop.root / "views").glob("*"))


def test_statements_run_under_the_settings_of_the_session(shop: fv.Warehouse) -> None:
    def zone() -> str:
        return str(shop.sql("SELECT current_timezone()").first()[0])

    def divided() -> object:
        return shop.sql("SELECT 1 / 0").first()[0]

    before = {name: shop.spark.conf.get(name) for name in (ZONE, ANSI)}
    try:
        shop.spark.conf.set(ZONE, "Europe/Berlin")
        shop.spark.conf.set(ANSI, "false")
        assert (zone(), divided()) == ("Europe/Berlin", None)
        shop.sql(f"SET {ZONE} = Asia/Tokyo")
        assert zone() == "Asia/Tokyo", "what a statement sets stays"
        shop.spark.conf.set(ANSI, "true")
        assert zone() == "Asia/Tokyo"
        with pytest.raises(ArithmeticException):
            divided()
    finally:
        for name, value in before.items():
            shop.spark.conf.set(name, value or "")


def test_statements_find_the_tables_of_the_catalog(shop: fv.Warehouse, tmp_path: Path) -> None:
    """A warehouse that is made again in the same place; and views and tables without their files."""
    places = [tmp_path / "one", tmp_path / "two"]
    for number, place in enumerate(places):
        NativeStorage().create(str(place), pa.table({"id": [number]}))
    for number, place in enumerate(places):
        shutil.rmtree(shop.root)
        warehouse = fv.open(shop.root, shop.spark)
        warehouse.register("t", f"file://{place}")
        assert rows(warehouse.sql("SELECT * FROM t")) == [(number,)]
    warehouse.sql("INSERT INTO t VALUES (7)")
    assert NativeStorage().state(str(places[0])).version == 0
    assert rows(warehouse.table("t")) == [(1,), (7,)]
    with pytest.raises(NameTaken):
        warehouse.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS t AS SELECT 1 AS x")
    warehouse.register("u", places[0])
    for view, table in (("lost", "t"), ("kept", "t"), ("above", "u")):
        warehouse.create_view(view, f"SELECT id FROM {table}")
    shutil.rmtree(warehouse.parts.sources.path("lost"))
    shutil.rmtree(places[0])
    for opened in (warehouse, fv.open(shop.root, shop.spark)):
        assert rows(opened.sql("SELECT * FROM kept")) == [(1,), (7,)]
        assert rows(opened.sql("SELECT * FROM above")) == [(0,)]
        for name in ("lost", "u"):
            with pytest.raises(TableMissing):
                opened.sql(f"SELECT * FROM {name}").collect()


def test_definitions_that_are_refused_create_nothing(shop: fv.Warehouse) -> None:
    for query, error in (
        ("SELECT nothing FROM orders", DefinitionRejected),
        ("SELECT * FROM nowhere", DefinitionRejected),
        ("SELEC 1", DefinitionRejected),
        ("SELECT id, rand() AS r FROM orders", ViewNotMaintainable),
        ("SELECT id, current_date() AS d FROM orders", ViewNotMaintainable),
        ("SELECT id, count(*) FROM orders GROUP BY id", InvalidColumn),
        ("SELECT id AS a, id AS A FROM orders", InvalidColumn),
        ("SELECT id AS __rows FROM orders", InvalidColumn),
        (f"SELECT * FROM delta.`{shop.root / 'tables' / 'orders'}`", UnregisteredSource),
    ):
        with pytest.raises(error):
            shop.create_view("bad", query)
    assert "bad" not in shop.catalog
    assert not (shop.root / "views").exists()


def test_a_view_is_not_replaced_by_one_that_reads_it(shop: fv.Warehouse) -> None:
    shop.create_view("low", "SELECT id FROM orders")
    with pytest.raises(ViewCycle):
        shop.create_view("low", "SELECT id + 1 AS id FROM low", replace_existing=True)
    shop.create_view("high", "SELECT id FROM low")
    with pytest.raises(ViewCycle):
        shop.create_view("low", "SELECT id FROM high", replace_existing=True)
    with pytest.raises(ViewInUse):
        shop.create_view("low", "SELECT id FROM lines", replace_existing=True)
    assert sorted(view.name for view in shop.catalog.views()) == ["high", "low"]
    shop.refresh()


def test_views_agree_at_an_epoch_once_they_were_refreshed_together(shop: fv.Warehouse) -> None:
    with pytest.raises(NoCommonEpoch):
        shop.epoch()
    shop.create_view("first", "SELECT count(*) AS n FROM lines", policy="INCREMENTAL")
    shop.apply({"lines": fv.TableChanges(insert=[{"id": 3, "price": Decimal("4.00")}])})
    shop.create_view("second", "SELECT count(*) AS n FROM lines")
    with pytest.raises(NoCommonEpoch) as apart:
        shop.epoch("first", "second")
    assert apart.value.parameters == {"names": "first, second"}
    shop.refresh()
    epoch = shop.epoch("first", "second")
    assert rows(shop.read("first", epoch=epoch)) == rows(shop.read("second", epoch=epoch)) == [(4,)]


def test_check_finds_and_repairs_wrong_rows(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS)
    shop.create_view("joined", "SELECT city, price FROM orders JOIN lines USING (id)")
    for name, change in (("totals", "total = total + 1"), ("joined", "__count = 1")):
        path = shop.catalog.path(shop.catalog.view(name))
        shop.spark.sql(f"UPDATE delta.`{path}` SET {change} WHERE city = 'Oslo'")
        wrong = shop.check(name)
        assert not wrong.ok
        assert wrong.examples
        assert shop.check(name, repair_groups=True).repaired == 1
        assert shop.check(name).ok
        assert shop.check(name, sample=0.5).ok
    shop.apply({"lines": fv.TableChanges(insert=[{"id": 1, "price": Decimal("1.00")}])})
    shop.refresh(policy="STRICT")
    assert shop.check("totals").ok
    assert shop.check("joined").ok


def test_a_hidden_state_that_is_wrong_behind_a_right_value_is_repaired(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS)
    path = shop.catalog.path(shop.catalog.view("totals"))
    shop.spark.sql(f"UPDATE delta.`{path}` SET __rows = 99 WHERE city = 'Oslo'")
    assert shop.check("totals").ok
    assert shop.check("totals", repair_groups=True).repaired == 1


def test_tables_are_registered_by_path_and_by_catalog_name(shop: fv.Warehouse) -> None:
    path = shop.root.parent / "elsewhere"
    shop.spark.sql(f"CREATE TABLE delta.`{path}` (a INT) USING DELTA")
    shop.register("elsewhere", path)
    shop.spark.sql("CREATE TABLE IF NOT EXISTS default.named (a INT) USING DELTA")
    shop.register("named", table="default.named")
    shop.create_view("both", "SELECT * FROM elsewhere UNION ALL SELECT * FROM named")
    shop.spark.sql("INSERT INTO default.named VALUES (1), (1)")
    shop.refresh(policy="STRICT")
    assert rows(shop.read("both")) == [(1,), (1,)]
    shop.spark.sql("DROP TABLE default.named")


def test_nothing_changed_runs_no_spark_job(shop: fv.Warehouse) -> None:
    shop.create_view("totals", TOTALS)
    shop.refresh()
    tracker = shop.spark.sparkContext.statusTracker()
    before = max(tracker.getJobIdsForGroup(None), default=-1)
    assert [view.mode for view in shop.refresh().views] == [UNCHANGED]
    assert max(tracker.getJobIdsForGroup(None), default=-1) == before
