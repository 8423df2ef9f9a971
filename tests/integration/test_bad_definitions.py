"""Definitions and names that cannot be: each has its error code and leaves the warehouse as it was."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

import freshview as fv
from freshview.runtime.report import INCREMENTAL
from tests.unchanged import fingerprint, refused, unchanged

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> fv.Warehouse:
    """Two tables, a view, and a view on it."""
    warehouse = fv.open(tmp_path_factory.mktemp("bad") / "shop", spark)
    warehouse.create_table("orders", pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    warehouse.create_table("lines", pa.table({"id": [1, 1], "price": [3, 4]}))
    warehouse.create_view("cities", "SELECT city, count(*) AS n FROM orders GROUP BY city")
    warehouse.create_view("above", "SELECT n FROM cities")
    return warehouse


REJECTED = {
    "unknown table": ("SELECT a FROM nowhere", "`nowhere`"),
    "unknown column": ("SELECT amount FROM orders", "`amount`"),
    "ambiguous column": ("SELECT id FROM orders JOIN lines ON true", "`id` is ambiguous"),
    "syntax": ("SELEC 1", "Syntax error"),
    "two statements": ("SELECT id FROM orders; DROP TABLE orders", "Syntax error"),
    "NUL": ("SELECT id FROM or\0ders", "Syntax error"),
    "half a character": ("SELECT '\udcff' AS a FROM orders", "character 9"),
    "too deep": ("SELECT " + "(" * 3000 + "1" + ")" * 3000 + " AS a FROM orders", "too "),
    "too long": ("SELECT " + "+".join(["id"] * 3000) + " AS a FROM orders", "too "),
    "unknown function": ("SELECT nothing(id) AS a FROM orders", "`nothing`"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_queries_that_spark_cannot_analyze(shop: fv.Warehouse, case: str) -> None:
    query, said = REJECTED[case]
    error = refused(
        shop.root, "DEFINITION_REJECTED", lambda: shop.create_view("bad", query), "bad", said
    )
    assert "nothing was created" in error.do
    assert "bad" not in shop.catalog


UNMAINTAINABLE = {
    "rand()": "NOT_DETERMINISTIC",
    "uuid()": "NOT_DETERMINISTIC",
    "shuffle(array(id))": "NOT_DETERMINISTIC",
    "reflect('java.lang.System', 'exit', 1)": "NOT_DETERMINISTIC",
    "java_method('java.lang.System', 'exit', 1)": "NOT_DETERMINISTIC",
    "monotonically_increasing_id()": "DEPENDS_ON_STORAGE",
    "input_file_name()": "DEPENDS_ON_STORAGE",
    "now()": "CLOCK_OUTSIDE_FILTER",
    "current_timestamp()": "CLOCK_OUTSIDE_FILTER",
    "current_date()": "CLOCK_OUTSIDE_FILTER",
    "cast('to' || 'day' AS DATE)": "DEPENDS_ON_CLOCK",
    "cast(trim(' now CET') AS TIMESTAMP)": "DEPENDS_ON_CLOCK",
    "try_cast('now' AS TIMESTAMP)": "DEPENDS_ON_CLOCK",
    "to_date(lower('TODAY'))": "DEPENDS_ON_CLOCK",
    "cast('\\u0001today\\u007f' AS DATE)": "DEPENDS_ON_CLOCK",
    "cast(' 10:00:00' AS TIMESTAMP)": "DEPENDS_ON_CLOCK",
    "to_timestamp('T12:30')": "DEPENDS_ON_CLOCK",
    "timestamp '2020-01-01' > '1:30'": "DEPENDS_ON_CLOCK",
    "aes_encrypt(city, '0000111122223333')": "NOT_DETERMINISTIC",
    "aes_encrypt(city, '0000111122223333', 'CBC')": "NOT_DETERMINISTIC",
    "aes_encrypt(city, '0000111122223333', 'CBC', 'PKCS', cast(city AS BINARY))": "NOT_DETERMINISTIC",
    "current_user()": "DEPENDS_ON_SESSION",
    "version()": "DEPENDS_ON_SESSION",
}


@pytest.mark.parametrize("expression", UNMAINTAINABLE)
def test_values_that_no_table_decides(shop: fv.Warehouse, expression: str) -> None:
    query = f"SELECT id, {expression} AS x FROM orders"
    error = refused(
        shop.root, "VIEW_NOT_MAINTAINABLE", lambda: shop.create_view("bad", query), "bad"
    )
    assert error.parameters["reason"] == UNMAINTAINABLE[expression]


OTHERS = {
    "SELECT id FROM delta.`{root}/tables/orders`": "UNREGISTERED_SOURCE",
    "SELECT * FROM text.`{root}/_freshview/catalog.json`": "UNREGISTERED_SOURCE",
    "SELECT id, DATE r'today' AS x FROM orders": "UNSUPPORTED_EXPRESSION",
    "SELECT id, DATE '\\u0074oday' AS x FROM orders": "UNSUPPORTED_EXPRESSION",
    'SELECT id, TIMESTAMP"now" AS x FROM orders': "UNSUPPORTED_EXPRESSION",
    "SELECT id, -- a comment\rDATE 'today' AS x FROM orders": "UNSUPPORTED_EXPRESSION",
    "SELECT id -- to be\\\n ' continued\n, DATE 'today' AS x FROM orders WHERE city <> ''": "UNSUPPORTED_EXPRESSION",
    "SELECT id, DATE 'today' AS x FROM orders /* /* */ ' */": "UNSUPPORTED_EXPRESSION",
    "SELECT id FROM orders /* /* */ ' */ WHERE DATE 'today' > DATE '2020-01-01' OR city = ''": "UNSUPPORTED_EXPRESSION",
    "SELECT id, TIMESTAMP '10:00:00' AS x FROM orders": "UNSUPPORTED_EXPRESSION",
    "SELECT id FROM orders ORDER BY id LIMIT month(current_date())": "UNSUPPORTED_EXPRESSION",
    "SELECT id FROM orders ORDER BY id LIMIT 9 OFFSET day(now())": "UNSUPPORTED_EXPRESSION",
    "SELECT id FROM orders TABLESAMPLE (day(current_date) ROWS)": "UNSUPPORTED_EXPRESSION",
    "SELECT id FROM range(0, CAST(unix_timestamp() % 40 AS INT))": "UNSUPPORTED_EXPRESSION",
    "SELECT id FROM range(datediff(CAST('today' AS DATE), DATE'2026-01-01'))": "UNSUPPORTED_EXPRESSION",
    "SELECT * FROM (SELECT id, city FROM orders) PIVOT (count(city) FOR id IN (day(now()) AS x))": "UNSUPPORTED_EXPRESSION",
    "WITH c AS (SELECT id FROM orders ORDER BY id LIMIT day(now())) SELECT id FROM orders WHERE id IN"
    " (SELECT id FROM c)": "UNSUPPORTED_EXPRESSION",
    "DROP TABLE orders": "NOT_A_QUERY",
    "INSERT INTO orders VALUES (1, 'x')": "NOT_A_QUERY",
    "SELECT id AS a, id AS A FROM orders": "INVALID_COLUMN",
    "SELECT id, id FROM orders": "INVALID_COLUMN",
    "SELECT id AS ` ` FROM orders": "INVALID_COLUMN",
    "SELECT id AS `a;b` FROM orders": "INVALID_COLUMN",
    "SELECT id AS `a\nb` FROM orders": "INVALID_COLUMN",
    "SELECT id AS __rows FROM orders": "INVALID_COLUMN",
}


@pytest.mark.parametrize("query", OTHERS)
def test_queries_that_freshview_refuses(shop: fv.Warehouse, query: str) -> None:
    text = query.replace("{root}", str(shop.root))
    refused(shop.root, OTHERS[query], lambda: shop.create_view("bad", text))


def test_what_spark_can_redefine_is_no_part_of_a_view(shop: fv.Warehouse) -> None:
    shop.spark.sql("CREATE FUNCTION default.plus(x BIGINT) RETURNS BIGINT RETURN x + 1")
    shop.spark.sql("CREATE FUNCTION default.one() RETURNS TABLE (x INT) RETURN SELECT 1")
    shop.spark.sql("CREATE VIEW default.two AS SELECT 2 AS x")
    shop.spark.sql("CREATE GLOBAL TEMPORARY VIEW three AS SELECT 3 AS x")
    named = {
        "SELECT default.plus(id) AS x FROM orders": ("UNSUPPORTED_EXPRESSION", "default.plus"),
        "SELECT max(id) AS m, (SELECT max(default.plus(id)) FROM lines) AS x FROM orders": (
            "UNSUPPORTED_EXPRESSION",
            "default.plus",
        ),
        "SELECT id, x FROM orders CROSS JOIN one()": ("UNSUPPORTED_EXPRESSION", "default.one"),
        "SELECT id, x FROM orders CROSS JOIN default.two": ("UNREGISTERED_SOURCE", "default.two"),
        "SELECT id, x FROM orders, global_temp.three": ("UNREGISTERED_SOURCE", "global_temp.three"),
        "WITH c AS (SELECT x FROM default.two) SELECT id FROM orders WHERE id IN (TABLE c)": (
            "UNREGISTERED_SOURCE",
            "default.two",
        ),
    }
    try:
        for query, (code, name) in named.items():
            refused(shop.root, code, lambda query=query: shop.create_view("bad", query), name)
    finally:
        for made in ("FUNCTION default.plus", "FUNCTION default.one", "VIEW default.two"):
            shop.spark.sql(f"DROP {made}")
        shop.spark.catalog.dropGlobalTempView("three")


WORDS_BELOW = {
    "projection": "SELECT id, try_cast(d AS DATE) AS x FROM (SELECT id, 'today' AS d FROM orders)",
    "filter": "SELECT id FROM (SELECT id, 'now' AS d FROM orders) WHERE try_cast(d AS TIMESTAMP) > now_not",
    "join": "SELECT id, try_cast(d AS TIMESTAMP) AS x FROM orders CROSS JOIN (SELECT 'now' AS d)",
    "union": "SELECT id, try_cast(d AS DATE) AS x FROM (SELECT id, 'today' AS d FROM orders UNION ALL"
    " SELECT id, '2020-02-02' FROM orders)",
    "epoch": "SELECT id, try_cast(d AS DATE) AS x, CAST('epoch' AS DATE) AS y FROM"
    " (SELECT id, 'epoch' AS d FROM orders)",
    "nowhere": "SELECT id, try_cast('nowhere' AS DATE) AS x FROM orders",
    "groups": "SELECT try_cast(d AS TIMESTAMP_NTZ) AS x, count(*) AS n FROM"
    " (SELECT 'to' || 'day' AS d FROM orders) GROUP BY 1",
}


@pytest.mark.parametrize("case", WORDS_BELOW)
def test_a_word_of_the_clock_from_a_query_below_is_a_word(shop: fv.Warehouse, case: str) -> None:
    """Spark reads it as a moment only where it is written in the cast, and that is refused."""
    query = WORDS_BELOW[case].replace("now_not", "TIMESTAMP '2020-01-01'")
    shop.create_view("words", query, policy="STRICT")
    assert shop.check("words").ok
    try:
        shop.apply({"orders": fv.TableChanges(insert=[{"id": 3, "city": "Rome"}])})
        assert shop.refresh("words")["words"].mode == INCREMENTAL
        assert shop.check("words").ok
    finally:
        shop.drop_view("words")


def test_a_view_cannot_come_to_read_itself(shop: fv.Warehouse) -> None:
    text = "CREATE OR REPLACE MATERIALIZED VIEW {} AS SELECT n FROM {}"
    refused(
        shop.root, "VIEW_CYCLE", lambda: shop.sql(text.format("above", "above")), "above → above"
    )
    refused(
        shop.root,
        "VIEW_CYCLE",
        lambda: shop.sql(text.format("cities", "above")),
        "cities → above → cities",
    )


def test_a_view_that_others_read_stays_as_it_is(shop: fv.Warehouse) -> None:
    refused(shop.root, "VIEW_IN_USE", lambda: shop.drop_view("cities"), "cities", "above")
    replacing = "CREATE OR REPLACE MATERIALIZED VIEW cities AS SELECT id AS n FROM lines"
    refused(shop.root, "VIEW_IN_USE", lambda: shop.sql(replacing), "cities", "above")


def test_names_that_are_taken(shop: fv.Warehouse) -> None:
    query = "SELECT id FROM orders"
    for name in ("cities", "CITIES", "orders", "Orders"):
        refused(shop.root, "NAME_TAKEN", lambda name=name: shop.create_view(name, query), name)
        refused(
            shop.root,
            "NAME_TAKEN",
            lambda name=name: shop.create_table(name, pa.table({"a": [1]})),
            name,
        )
    place = shop.root / "tables" / "orders"
    refused(shop.root, "NAME_TAKEN", lambda: shop.register("Cities", place), "Cities")
    replacing = "CREATE OR REPLACE MATERIALIZED VIEW {} AS SELECT id FROM lines"
    for name in ("orders", "Above"):
        refused(shop.root, "NAME_TAKEN", lambda name=name: shop.sql(replacing.format(name)), name)


def test_names_that_are_not_known(shop: fv.Warehouse) -> None:
    acts = {
        "refresh": lambda: shop.refresh("nothing"),
        "drop": lambda: shop.drop_view("nothing"),
        "check": lambda: shop.check("nothing"),
        "explain": lambda: shop.explain("nothing"),
        "read": lambda: shop.read("nothing"),
        "policy": lambda: shop.set_policy("nothing", "FULL"),
        "apply": lambda: shop.apply({"nothing": fv.TableChanges(insert=[{"a": 1}])}),
        "statement": lambda: shop.sql("DROP MATERIALIZED VIEW nothing"),
    }
    for act in acts.values():
        refused(shop.root, "UNKNOWN_NAME", act, "'nothing'", "orders")
    refused(shop.root, "UNKNOWN_NAME", lambda: shop.drop_view("orders"), "above, cities")
    refused(shop.root, "UNKNOWN_NAME", lambda: shop.refresh("CITIES"), "'CITIES'")


def test_policies_and_epochs_that_are_not_there(shop: fv.Warehouse) -> None:
    query = "SELECT id FROM orders"
    for act in (
        lambda: shop.create_view("bad", query, policy="sometimes"),
        lambda: shop.set_policy("cities", "sometimes"),
        lambda: shop.refresh(policy="sometimes"),
    ):
        refused(shop.root, "UNKNOWN_POLICY", act, "'sometimes'", "AUTO, INCREMENTAL, STRICT, FULL")
    wrong = "ALTER MATERIALIZED VIEW cities SET POLICY sometimes"
    refused(shop.root, "INVALID_STATEMENT", lambda: shop.sql(wrong), "sometimes")
    for epoch in (99, 0, -1):
        refused(
            shop.root,
            "UNKNOWN_EPOCH",
            lambda epoch=epoch: shop.read("cities", epoch=epoch),
            str(epoch),
            "known epochs: 1",
        )


HOSTILE = (
    "",
    " ",
    "a b",
    "a'b",
    'a"b',
    "a`b",
    "a;b",
    "a--b",
    "a/*b",
    "..",
    "../a",
    "a/b",
    "/a",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\n",
    "a.b",
    "1a",
    "a" * 64,
    "a" * 100_000,
    "\u043erders",
    "orders\u200b",
    "\u202eorders",
    "ﬁle",
    "😀",
    "a$(id)",
    "file:a",
    "%2e%2e",
)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:20])
def test_hostile_names_of_tables_and_views(shop: fv.Warehouse, name: str) -> None:
    before = fingerprint(shop.root.parent)
    query, rows = "SELECT id FROM orders", pa.table({"a": [1]})
    acts = (
        lambda: shop.create_view(name, query),
        lambda: shop.create_view(name, query, replace_existing=True),
        lambda: shop.create_table(name, rows),
        lambda: shop.register(name, shop.root / "tables" / "orders"),
        lambda: shop.view(lambda: shop.table("orders"), name=name or " "),
    )
    for act in acts:
        error = refused(shop.root, "INVALID_NAME", act, "letters, digits and _")
        assert error.parameters["name"] in (name, " ")
    refused(shop.root, "UNKNOWN_NAME", lambda: shop.refresh(name))
    refused(shop.root, "UNKNOWN_NAME", lambda: shop.drop_view(name))
    assert fingerprint(shop.root.parent) == before


def test_keywords_are_names_like_others(shop: fv.Warehouse) -> None:
    shop.create_table("select", pa.table({"from": [1], "where": [2]}))
    shop.create_view("table", "SELECT `from`, `where` FROM `select`")
    shop.apply({"select": fv.TableChanges(insert=[{"from": 3, "where": 4}])})
    shop.refresh(policy="STRICT")
    assert sorted(map(tuple, shop.sql("SELECT * FROM `table`").collect())) == [(1, 2), (3, 4)]
    shop.drop_view("table")


@pytest.mark.parametrize(
    "column", ["", "a b", "a,b", "a;b", "a{b", "a(b", "a\nb", "a\tb", "a=b", "__n"]
)
def test_hostile_names_of_columns(shop: fv.Warehouse, column: str) -> None:
    rows = pa.table({column: [1]})
    refused(shop.root, "INVALID_COLUMN", lambda: shop.create_table("bad", rows), "bad")
    refused(shop.root, "INVALID_COLUMN", lambda: shop.create_table("bad", rows.schema), "bad")


def test_a_table_needs_columns_that_differ(shop: fv.Warehouse) -> None:
    refused(shop.root, "INVALID_COLUMN", lambda: shop.create_table("bad", pa.schema([])))
    twice = pa.schema([("a", pa.int64()), ("A", pa.int64())])
    refused(shop.root, "INVALID_COLUMN", lambda: shop.create_table("bad", twice), "'A'")
    held = shop.spark.range(1).selectExpr("id AS `a b`")
    refused(shop.root, "INVALID_COLUMN", lambda: shop.create_table("bad", held), "'a b'")


def test_statements_that_break_off(shop: fv.Warehouse) -> None:
    for text in (
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW v AS",
        "CREATE MATERIALIZED VIEW 'v' AS SELECT 1 AS a",
        "DROP MATERIALIZED VIEW cities; DROP MATERIALIZED VIEW above",
        "REFRESH MATERIALIZED VIEW cities,",
        "DROP MATERIALIZED VIEW cities -- \n above",
    ):
        refused(shop.root, "INVALID_STATEMENT", lambda text=text: shop.sql(text), "line")
    for text in ("SELECT '\udcff'", "SELECT " + "(" * 3000 + "1" + ")" * 3000):
        refused(shop.root, "INVALID_STATEMENT", lambda text=text: shop.sql(text), "line 1")


def test_arguments_of_other_types(shop: fv.Warehouse) -> None:
    nothing: Any = None
    refused(shop.root, "INVALID_NAME", lambda: shop.create_view(nothing, "SELECT 1 AS a"))
    text: Any = "newest"
    refused(shop.root, "UNKNOWN_EPOCH", lambda: shop.read("cities", epoch=text))


def test_changes_that_do_not_fit(shop: fv.Warehouse) -> None:
    good = fv.TableChanges(insert=[{"id": 7, "price": 5}])
    for said, bad in {
        "nothing to insert": fv.TableChanges(),
        "need a key": fv.TableChanges(delete=[{"id": 1}]),
        "no column nothing": fv.TableChanges(delete=[{"id": 1}], key=["nothing"]),
        "'unknown'": fv.TableChanges(insert=[{"unknown": 1}]),
        "int64": fv.TableChanges(insert=[{"id": "x"}]),
        "1 of its updates": fv.TableChanges(delete=[{"id": 1}, {"id": 1}], key=["id"]),
    }.items():
        changes = {"lines": good, "orders": bad}
        refused(shop.root, "INVALID_CHANGES", lambda c=changes: shop.apply(c), "orders", said)
    with unchanged(shop.root):
        assert {view.mode for view in shop.refresh().views} == {"unchanged"}


def test_a_table_with_a_column_that_freshview_adds(shop: fv.Warehouse, spark: SparkSession) -> None:
    path = shop.root.parent / "counted"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS SELECT 1L AS k, 5L AS __n")
    shop.register("counted", path)
    refused(
        shop.root,
        "INVALID_COLUMN",
        lambda: shop.create_view("bad", "SELECT sum(__n) AS s FROM counted"),
        "counted cannot have a column named '__n'",
    )


def test_encryption_and_constants_that_are_no_clock(shop: fv.Warehouse) -> None:
    start = "unhex('000102030405060708090a0b0c0d0e0f')"
    text = f"""SELECT id, aes_encrypt(city, '0000111122223333', 'ECB') AS a,
        aes_encrypt(city, '0000111122223333', 'CBC', 'PKCS', {start}) AS b,
        cast(cast('2020-01-01' AS STRING) AS DATE) AS c FROM orders"""
    shop.create_view("fixed", text)
    assert shop.check("fixed").ok
    shop.drop_view("fixed")
    failing = "SELECT id, cast(cast(1 / 0 AS STRING) AS DATE) AS x FROM orders"
    with unchanged(shop.root), pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        shop.create_view("bad", failing)  # as any view that divides by zero
