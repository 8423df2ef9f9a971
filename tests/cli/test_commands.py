"""The commands on a warehouse with a view, from its definition to a repaired fault."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.cli.run import in_process, own_process

pytestmark = pytest.mark.spark

SALES = "SELECT city, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY city"


@pytest.fixture(scope="module")
def original(spark, tmp_path_factory):
    """A warehouse with a registered table and a view on it."""
    shop = tmp_path_factory.mktemp("original") / "shop"
    assert in_process("init", shop).status == 0
    orders = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"], "amount": [10, 20, 30]})
    write_deltalake(shop / "orders", orders)
    registered = in_process("register", "orders", shop / "orders", "-w", shop, "--json")
    assert registered.answer["ok"] is True
    created = in_process("sql", "-w", shop, f"CREATE MATERIALIZED VIEW sales AS {SALES}")
    assert created.status == 0
    return shop


@pytest.fixture
def shop(original, tmp_path):
    """A copy of the warehouse, which is a folder that may stand anywhere."""
    return shutil.copytree(original, tmp_path / "shop")


def sell(shop, amount):
    row = pa.table({"id": [9], "city": ["Rome"], "amount": [amount]})
    write_deltalake(shop / "orders", row, mode="append")


def rows(shop):
    found = in_process("sql", "-w", shop, "SELECT * FROM sales ORDER BY city", "--json").answer
    assert found["ok"] is True
    return [tuple(row.values()) for row in found["rows"]]


def test_refresh_brings_a_view_up_to_date(shop):
    sell(shop, 5)
    behind = in_process("status", "-w", shop, "--json").answer["views"][0]
    assert (behind["view"], behind["fresh"], behind["pending"]) == (
        "sales",
        False,
        {"orders": [0, 1]},
    )
    assert "behind: orders 0→1" in in_process("status", "-w", shop).out
    refreshed = in_process("refresh", "--policy", "incremental", "-w", shop, "--json").answer
    assert refreshed["ok"] is True
    assert [(v["view"], v["mode"], v["rows_in"]) for v in refreshed["views"]] == [
        ("sales", "incremental", 1)
    ]
    assert rows(shop) == [("Oslo", 2, 40), ("Rome", 2, 25)]
    assert "fresh" in in_process("status", "-w", shop).out
    again = in_process("refresh", "sales", "-w", shop)
    assert "unchanged" in again.out


def test_full_recomputes(shop):
    found = in_process("refresh", "sales", "--full", "-w", shop, "--json").answer
    assert [(v["mode"], v["reason"]) for v in found["views"]] == [("full", "POLICY_FULL")]


def test_explain_tells_the_stages(shop):
    sell(shop, 5)
    found = in_process("explain", "sales", "-w", shop)
    assert found.status == 0
    assert "read changes of orders from version 0 to 1" in found.out
    answer = in_process("explain", "sales", "-w", shop, "--json").answer
    assert (answer["ok"], answer["view"]) == (True, "sales")
    assert any(stage.startswith("read changes of orders") for stage in answer["stages"])


def test_check_finds_a_fault_and_repair_mends_it(shop):
    assert in_process("check", "-w", shop).status == 0
    (backing,) = (shop / "views").iterdir()
    DeltaTable(backing).update({"total": "total + 1"}, predicate="city = 'Oslo'")
    found = in_process("check", "-w", shop)
    assert found.status == 1
    assert "differs" in found.out
    answer = in_process("check", "sales", "-w", shop, "--json")
    assert answer.status == 1
    assert (answer.answer["ok"], answer.answer["code"]) == (False, "VIEW_DIFFERS")
    assert answer.answer["views"][0]["missing"] == 1
    repaired = in_process("check", "--repair", "-w", shop, "--json")
    assert repaired.status == 0
    assert repaired.answer["views"][0]["repaired"] == 1
    assert in_process("check", "--sample", "1", "-w", shop).status == 0


def test_queries_show_tables_and_limits(shop):
    found = in_process("sql", "-w", shop, "--limit", "1", "SELECT * FROM sales ORDER BY city")
    assert found.status == 0
    assert [line.split() for line in found.out.splitlines()[:2]] == [
        ["city", "orders", "total"],
        ["Oslo", "2", "40"],
    ]
    assert "the first 1 rows" in found.out


def test_statements_on_views_answer_as_their_commands_do(shop):
    shown = in_process("sql", "-w", shop, "SHOW MATERIALIZED VIEWS")
    assert shown.out == in_process("status", "-w", shop).out
    explained = in_process("sql", "-w", shop, "EXPLAIN MATERIALIZED VIEW sales")
    assert explained.out == in_process("explain", "sales", "-w", shop).out
    assert in_process("sql", "-w", shop, "DROP MATERIALIZED VIEW sales").out == "done\n"
    assert in_process("sql", "-w", shop, "SHOW MATERIALIZED VIEWS", "--json").answer == {
        "ok": True,
        "statement": "SHOW MATERIALIZED VIEWS",
        "result": [],
    }


def test_a_file_of_statements(shop, tmp_path):
    file = tmp_path / "script.sql"
    file.write_text("-- two;\nREFRESH MATERIALIZED VIEW sales;\nSELECT count(*) AS n FROM sales;")
    found = in_process("sql", "-w", shop, "--file", file, "--json").answer
    assert found["ok"] is True
    assert len(found["results"]) == 2
    assert found["results"][1]["rows"] == [{"n": 2}]


def test_errors_of_spark_have_no_traceback(shop):
    found = own_process("sql", "-w", shop, "SELECT * FROM nowhere")
    assert (found.status, found.out) == (1, "")
    assert "TABLE_OR_VIEW_NOT_FOUND" in found.err
    assert "Traceback" not in found.err
    answer = in_process("sql", "-w", shop, "SELECT * FROM nowhere", "--json")
    assert answer.status == 1
    assert answer.answer["code"].startswith("TABLE_OR_VIEW_NOT_FOUND")


def test_definitions_that_spark_rejects(shop):
    found = in_process(
        "sql", "-w", shop, "CREATE MATERIALIZED VIEW v AS SELECT nothing FROM orders", "--json"
    )
    assert found.status == 1
    assert found.answer["code"] == "DEFINITION_REJECTED"
