"""The commands on a warehouse with a view, from its definition to a repaired fault."""

from __future__ import annotations

import json
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
    policy = "ALTER MATERIALIZED VIEW sales POLICY INCREMENTAL"
    assert in_process("sql", "-w", shop, policy).status == 0
    found = in_process("explain", "sales", "-w", shop)
    assert found.status == 0
    assert "read changes of orders from version 0 to 1" in found.out
    answer = in_process("explain", "sales", "-w", shop, "--json").answer
    assert (answer["ok"], answer["view"]) == (True, "sales")
    assert any(stage.startswith("read changes of orders") for stage in answer["stages"])


def test_suggest_proposes_statements_that_can_be_run(shop):
    query = "SELECT city, map(city, id) AS ids FROM orders"
    found = in_process("suggest", query, "-w", shop)
    assert found.status == 0
    assert "UNGROUPABLE_COLUMN" in found.out
    answer = in_process("suggest", query, "-w", shop, "--json").answer
    assert (answer["ok"], answer["technique"]) == (True, "full recompute")
    (suggestion,) = answer["suggestions"]
    assert suggestion["techniques"] == ["counting"]
    for statement in suggestion["statements"]:
        assert all(line in found.out for line in statement.split("\n"))
        assert in_process("sql", "-w", shop, statement).status == 0
    assert in_process("suggest", "--view", "my_view", "-w", shop, "--json").answer["reason"] is None
    assert in_process("suggest", "--view", "nothing", "-w", shop).status == 1


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


# Each with the cells that people see, and with the row in JSON.
QUERIES = {
    "SELECT 1 AS a, 1.50BD AS b, 0.5D AS c, 'x' AS d, true AS e, NULL AS f, x'00ff' AS g": (
        ["1", "1.50", "0.5", "x", "True", "NULL", "00ff"],
        {"a": 1, "b": "1.50", "c": 0.5, "d": "x", "e": True, "f": None, "g": "00ff"},
    ),
    "SELECT date'2020-01-31' AS a, date'-0044-03-15' AS b, timestamp'2020-01-31 12:00:00' AS c,"
    " timestamp_ntz'9999-12-31 23:59:59.999999' AS d": (
        ["2020-01-31", "-0044-03-15", "2020-01-31 12:00:00", "9999-12-31 23:59:59.999999"],
        {
            "a": "2020-01-31",
            "b": "-0044-03-15",
            "c": "2020-01-31T12:00:00",
            "d": "9999-12-31T23:59:59.999999",
        },
    ),
    "SELECT interval 2 month AS a, parse_json('[1]') AS b, time'01:02:03' AS c": (
        ["INTERVAL '2' MONTH", "[1]", "01:02:03"],
        {"a": "INTERVAL '2' MONTH", "b": "[1]", "c": "01:02:03"},
    ),
    "SELECT map(date'-0044-03-15', 1) AS a, map(array(1), array(date'2020-01-31')) AS b,"
    " map(x'ff', NULL) AS c, CAST(NULL AS map<int, date>) AS d": (
        ['{"-0044-03-15": 1}', '{"[1]": ["2020-01-31"]}', '{"ff": null}', "NULL"],
        {"a": {"-0044-03-15": 1}, "b": {"[1]": ["2020-01-31"]}, "c": {"ff": None}, "d": None},
    ),
    "SELECT array(1, NULL) AS a, array(named_struct('x`y', date'2020-01-31'), NULL) AS b,"
    " named_struct('x', 1, 'x', 2) AS c": (
        ["[1, null]", '[{"x`y": "2020-01-31"}, null]', '{"x": 1, "x_2": 2}'],
        {"a": [1, None], "b": [{"x`y": "2020-01-31"}, None], "c": {"x": 1, "x_2": 2}},
    ),
    "SELECT double('NaN') AS a, double('Infinity') AS b, array(float('-Infinity')) AS c": (
        ["nan", "inf", '["-Infinity"]'],
        {"a": "NaN", "b": "Infinity", "c": ["-Infinity"]},
    ),
    "SELECT 1 AS a, 2 AS a, 3 AS a, 4 AS a_2": (
        ["1", "2", "3", "4"],
        {"a": 1, "a_3": 2, "a_4": 3, "a_2": 4},
    ),
}


def test_rows_are_shown_whatever_their_types_and_names(shop, tmp_path):
    def refused(constant):
        raise AssertionError(f"{constant} is no JSON")

    file = tmp_path / "script.sql"
    file.write_text(";".join(QUERIES))
    shown = in_process("sql", "-w", shop, "--file", file).out.splitlines()
    cells = [" ".join(cells) for cells, _ in QUERIES.values()]
    assert [" ".join(line.split()) for line in shown[1::2]] == cells
    written = in_process("sql", "-w", shop, "--file", file, "--json").out
    results = json.loads(written, parse_constant=refused)["results"]
    assert [result["rows"] for result in results] == [[row] for _, row in QUERIES.values()]
    assert results[-1]["columns"] == ["a", "a_3", "a_4", "a_2"]


def test_names_and_values_that_look_like_marks_are_shown_as_they_are(shop):
    found = in_process("sql", "-w", shop, "SELECT '[red]:x:' AS `[/x]`, 2 AS `a[red]b`, 3 AS `c>`")
    assert [line.split() for line in found.out.splitlines()] == [
        ["[/x]", "a[red]b", "c>"],
        ["[red]:x:", "2", "3"],
    ]
    (backing,) = (shop / "views").iterdir()
    DeltaTable(backing).update({"city": "'[/b]:x:'"}, predicate="city = 'Oslo'")
    checked = in_process("check", "-w", shop)
    assert checked.status == 1
    assert "[/b]:x:" in checked.out


def test_errors_of_spark_have_no_traceback(shop):
    """And what a process of its own logs beside the error repeats no value of a row."""
    statement = "SELECT CAST(concat('value ', 4711 + id) AS INT) FROM range(1)"
    shown = in_process("sql", "-w", shop, statement).err
    found = own_process("sql", "-w", shop, statement)
    assert (found.status, found.out) == (1, "")
    assert shown in found.err
    assert found.err.count("value 4711") == shown.count("value 4711") == 1
    assert "Traceback" not in found.err
    below = "SELECT (SELECT max(CAST(concat('x', id) AS INT)) FROM range(1)) + id FROM range(1)"
    wrapped = in_process("sql", "-w", shop, below, "--json")
    assert (wrapped.status, wrapped.answer["code"]) == (1, "CAST_INVALID_INPUT")
    answer = in_process("sql", "-w", shop, "SELECT * FROM nowhere", "--json")
    assert answer.status == 1
    assert answer.answer["code"].startswith("TABLE_OR_VIEW_NOT_FOUND")


def test_definitions_that_spark_rejects(shop):
    found = in_process(
        "sql", "-w", shop, "CREATE MATERIALIZED VIEW v AS SELECT nothing FROM orders", "--json"
    )
    assert found.status == 1
    assert found.answer["code"] == "DEFINITION_REJECTED"
