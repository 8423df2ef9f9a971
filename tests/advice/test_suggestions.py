"""Suggestions: each is planned, and each means what the query that it is for means.

The meaning is compared by Spark over one small warehouse with nulls and duplicates: the query itself
against the view that the suggested statements make, before and after a change of the tables.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import DefinitionRejected, NotAQuery, StrictImpossible
from freshview.frontend.statements import CreateView, parse_statement
from freshview.runtime.report import INCREMENTAL
from freshview.runtime.suggesting import Advice

pytestmark = pytest.mark.spark

MAPS = pa.map_(pa.string(), pa.int64())
T = pa.schema({"id": pa.int64(), "k": pa.string(), "v": pa.int64(), "m": MAPS})
R = pa.schema({"k": pa.string(), "w": pa.int64()})
ROWS = [
    {"id": 1, "k": "a", "v": 5, "m": [("y", 2), ("x", 1)]},
    {"id": 1, "k": "a", "v": 5, "m": [("x", 1), ("y", 2)]},
    {"id": 2, "k": None, "v": 7, "m": None},
    {"id": 2, "k": None, "v": None, "m": []},
    {"id": None, "k": "b", "v": -1, "m": [("x", None)]},
]
MORE = [
    {"id": 3, "k": "b", "v": 9, "m": [("z", 0)]},
    {"id": 3, "k": None, "v": 9, "m": [("z", 0)]},
    {"id": 4, "k": "c", "v": None, "m": None},
]
OTHERS = [{"k": "a", "w": 1}, {"k": "a", "w": 1}, {"k": None, "w": 3}, {"k": "b", "w": None}]


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> fv.Warehouse:
    warehouse = fv.open(tmp_path_factory.mktemp("advice") / "warehouse", spark)
    warehouse.create_table("t", pa.Table.from_pylist(ROWS, T))
    warehouse.create_table("r", pa.Table.from_pylist(OTHERS, R))
    return warehouse


def rules(advice: Advice) -> list[str]:
    return [suggestion.rule for suggestion in advice.suggestions]


def plain(row: Any) -> Any:
    """A row that can be compared: maps as sorted entries, as the suggestions show them."""
    if isinstance(row, dict):
        return tuple(sorted(map(plain, row.items()), key=repr))
    return tuple(map(plain, row)) if isinstance(row, list | tuple) else row


AGGREGATED = "SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k"
SAME = {
    "maps": ("comparable columns", "SELECT id, m FROM t"),
    "maps below a limit": (
        "comparable columns",
        "SELECT id, v, m FROM t ORDER BY v DESC NULLS LAST, id LIMIT 3",
    ),
    "void": ("typed columns", "SELECT NULL AS nothing, k, v FROM t"),
    "names": ("named columns", "SELECT k, count(*), sum(v), k FROM t GROUP BY k"),
    "subquery": ("views on views", f"SELECT k, n FROM ({AGGREGATED}) AS x WHERE s > 5 OR s IS NULL"),
    "cte twice": (
        "views on views",
        f"""WITH a AS ({AGGREGATED}), b AS (SELECT max(s) AS most FROM a)
        SELECT a.k, a.n, b.most FROM a JOIN b ON a.s <=> b.most""",
    ),
    "shadowing cte": (
        "views on views",
        """WITH t AS (SELECT k, w AS v FROM r)
        SELECT x.k, x.s FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) x WHERE x.s > 0""",
    ),
    "limit": ("views on views", f"{AGGREGATED} ORDER BY n DESC, k LIMIT 2 -- the most"),
    "window": (
        "views on views",
        f"SELECT *, rank() OVER (ORDER BY n DESC) AS place FROM ({AGGREGATED})",
    ),
    "in": (
        "views on views",
        "SELECT id, k FROM t WHERE k IN (SELECT k FROM r GROUP BY k HAVING count(*) > 1)",
    ),
    "scalar": ("views on views", "SELECT id, v FROM t WHERE v > (SELECT max(w) FROM r)"),
}  # fmt: skip


def test_suggestions_mean_the_same_and_are_kept_incrementally(shop: fv.Warehouse) -> None:
    made: dict[str, str] = {}
    for number, (rule, query) in enumerate(SAME.values()):
        advice = shop.suggest(f"CREATE MATERIALIZED VIEW view{number} POLICY STRICT AS {query}")
        assert rules(advice) == [rule], query
        for statement in advice.suggestions[0].statements:
            shop.sql(statement)
        made[f"view{number}"] = query
    assert_same(shop, made)
    shop.apply(
        {
            "t": fv.TableChanges(
                insert=pa.Table.from_pylist(MORE, T), delete=[{"id": 1}], key=["id"]
            ),
            "r": fv.TableChanges(insert=[{"k": "b", "w": 2}, {"k": "c", "w": 9}]),
        }
    )
    report = shop.refresh(policy="STRICT")
    assert INCREMENTAL in {view.mode for view in report.views}
    assert_same(shop, made)
    for view in reversed(report.views):
        shop.drop_view(view.view)


def assert_same(shop: fv.Warehouse, made: dict[str, str]) -> None:
    for name, query in made.items():
        expected = Counter(plain(row) for row in shop.sql(query).collect())
        found = Counter(plain(row) for row in shop.read(name).collect())
        assert found == expected, (query, found - expected, expected - found)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT id, element_at(m, 'x') AS e, m FROM t ORDER BY id LIMIT 3", "LIMIT_ORDER_OPEN"),
        ("SELECT m[id] AS e, m FROM (SELECT *, map(id, k) AS n FROM t) LIMIT 1", "LIMIT_ORDER_OPEN"),
        ("SELECT id, rand() AS x FROM t", "NOT_DETERMINISTIC"),
        ("SELECT id FROM t TABLESAMPLE (10 PERCENT)", "UNSUPPORTED_OPERATOR"),
        ("SELECT k, v FROM t WHERE v > 3", None),
        ("SELECT k, sum(v) AS s FROM t GROUP BY k", None),
        ("SELECT id, k FROM t ORDER BY id LIMIT 3", None),
        ("FROM t |> AGGREGATE sum(v) AS s GROUP BY k |> ORDER BY s |> LIMIT 3", None),
        ("WITH a AS (SELECT id, k FROM t WHERE v > 1) SELECT k, count(*) AS n FROM a GROUP BY k", None),
        ("SELECT k, (SELECT count(*) FROM r WHERE r.k = t.k) AS n FROM t", None),
    ],
)  # fmt: skip
def test_nothing_is_suggested_that_is_not_the_same_or_no_better(
    query: str, code: str | None, shop: fv.Warehouse
) -> None:
    advice = shop.suggest(query)
    assert (advice.reason.code if advice.reason else None) == code
    assert advice.suggestions == ()
    assert "no suggestion" in str(advice)


def test_a_window_over_a_map_is_turned_below_the_window(shop: fv.Warehouse) -> None:
    query = "SELECT x.id, m, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t AS x, r"
    advice = shop.suggest("SELECT id, m, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM t")
    assert advice.reason is not None
    assert (advice.reason.code, rules(advice)) == ("WINDOW_ORDER_OPEN", ["comparable columns"])
    inner = "(SELECT `id`, `k`, `v`, sort_array(map_entries(`m`)) AS `m` FROM `t`)"
    assert advice.suggestions[0].definitions[-1].query.endswith(f" FROM {inner} AS `t`")
    aliased = shop.suggest(query.replace(" k ", " x.k "))
    assert aliased.suggestions[0].definitions[-1].query.endswith(f" FROM {inner} AS x, r")


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("SELECT id, parse_json(k) AS j FROM t", "to_json(`j`, "),
        ("SELECT id, array(m) AS a FROM t", "to_json(`a`, "),
        ("SELECT id, map(k, m) AS a FROM t", "to_json(`a`, "),
        ("SELECT INTERVAL 3 DAYS AS i, id FROM t", "CAST(`i` AS STRING)"),
        ("SELECT NULL AS i FROM t", "CAST(`i` AS STRING)"),
        ("SELECT id, struct(k COLLATE UTF8_LCASE AS c) AS s FROM t", "to_json(`s`, "),
    ],
)
def test_a_value_that_cannot_be_kept_is_shown_otherwise(
    query: str, shown: str, shop: fv.Warehouse
) -> None:
    (suggestion,) = shop.suggest(query).suggestions
    assert shown in suggestion.definitions[-1].query


def test_moments_in_json_are_told_apart_to_the_microsecond(shop: fv.Warehouse) -> None:
    moments = "timestamp'2024-05-01 00:00:00.123456Z', timestamp'2024-05-01 00:00:00.123999Z'"
    local = "timestamp_ntz'2024-05-01 00:00:00.123456'"
    for values in (moments, f"{local}, {local} + INTERVAL 1 MICROSECOND"):
        query = (
            f"SELECT array(map('a', at)) AS l FROM t LATERAL VIEW explode(array({values})) e AS at"
        )
        (suggestion,) = shop.suggest(query).suggestions
        shown = shop.sql(f"SELECT DISTINCT l FROM ({suggestion.definitions[-1].query})")
        assert shown.count() == 2


def test_names_that_are_taken_are_not_given_again(shop: fv.Warehouse) -> None:
    shop.sql("CREATE MATERIALIZED VIEW q_1 AS SELECT id FROM t")
    try:
        query = f"WITH q_2 AS (SELECT 1 AS x) SELECT k, x FROM ({AGGREGATED}), q_2 WHERE s > 1"
        (suggestion,) = shop.suggest(f"CREATE MATERIALIZED VIEW q AS {query}").suggestions
        assert [d.name for d in suggestion.definitions] == ["q_3", "q"]
    finally:
        shop.drop_view("q_1")


def test_a_view_that_is_there_is_replaced_with_what_it_had(shop: fv.Warehouse) -> None:
    comment = "it's a map"
    shop.create_view("maps", "SELECT id, m FROM t", policy="INCREMENTAL", comment=comment)
    try:
        (suggestion,) = shop.suggest(view="maps").suggestions
        statement = parse_statement(suggestion.statements[-1])
        assert isinstance(statement, CreateView)
        assert (statement.or_replace, statement.policy) == (True, "INCREMENTAL")
        assert (statement.name, statement.comment) == ("maps", comment)
        explanation = shop.explain("maps")
        assert explanation.suggestion == suggestion
        assert "suggested rewrite\n" in str(explanation)
        shown = json.loads(explanation.to_json())["suggestion"]
        assert shown["statements"] == list(suggestion.statements)
        shop.sql(suggestion.statements[-1])
        assert shop.explain("maps").suggestion is None
    finally:
        shop.drop_view("maps")


def test_the_advice_on_a_view_of_a_function_has_its_reason(shop: fv.Warehouse) -> None:
    @shop.view
    def tagged() -> Any:
        return shop.table("t").select("id", "m")

    try:
        advice = shop.suggest(view="tagged")
        assert advice.reason is not None
        assert (advice.reason.code, advice.suggestions) == ("UNGROUPABLE_COLUMN", ())
        assert shop.explain("tagged").suggestion is None
    finally:
        shop.drop_view("tagged")


def test_what_is_no_query_is_an_error(shop: fv.Warehouse) -> None:
    with pytest.raises(DefinitionRejected):
        shop.suggest("SELECT nothing FROM t")
    with pytest.raises(NotAQuery):
        shop.suggest("DROP TABLE t")


def in_folder(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_strict_is_refused_where_every_refresh_would_be_an_error(shop: fv.Warehouse) -> None:
    query = "SELECT id, m FROM t"
    before, names = in_folder(shop.root / "views"), {entry.name for entry in shop.catalog}

    def of_function() -> Any:
        return shop.table("t").select("id", "m")

    makes: list[Callable[[], object]] = [
        lambda: shop.create_view("strict", query, policy="STRICT"),
        lambda: shop.sql(f"CREATE OR REPLACE MATERIALIZED VIEW strict POLICY STRICT AS {query}"),
        lambda: shop.view(of_function, policy="STRICT"),
    ]
    for make in makes:
        with pytest.raises(StrictImpossible) as refused:
            make()
        assert refused.value.parameters["reason"] == "UNGROUPABLE_COLUMN"
        assert "freshview suggest" in refused.value.do
    assert in_folder(shop.root / "views") == before
    assert {entry.name for entry in shop.catalog} == names
    shop.create_view("strict", query)
    try:
        with pytest.raises(StrictImpossible):
            shop.sql("ALTER MATERIALIZED VIEW strict SET POLICY STRICT")
        assert shop.catalog.view("strict").policy.value == "AUTO"
    finally:
        shop.drop_view("strict")
