"""Where the queries inside of a query are in its text."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from freshview.frontend.query_text import Place, QueryText, is_only_shown, query_text

spark_needed = pytest.mark.spark


def found(written: QueryText) -> list[tuple[Place, str]]:
    return [(piece.place, written.of(piece)) for piece in written.pieces]


@spark_needed
def test_every_place_is_found_inner_queries_first(spark: SparkSession) -> None:
    written = query_text(
        spark,
        "WITH a AS (SELECT '😀)' AS e, count(*) AS n FROM t /* ) */ GROUP BY 1),"
        " b(x) AS ( SELECT n FROM a )\n"
        "SELECT * FROM b JOIN (SELECT k FROM (SELECT DISTINCT k FROM r) i) AS j ON j.k = b.x"
        " WHERE x > (SELECT avg(w) FROM r) AND k IN (SELECT k FROM r GROUP BY k)"
        " ORDER BY x LIMIT 3 -- the end",
    )
    assert found(written)[:-1] == [
        (Place.CTE, "SELECT n FROM a"),
        (Place.EXPRESSION, "SELECT avg(w) FROM r"),
        (Place.FROM, "SELECT DISTINCT k FROM r"),
        (Place.EXPRESSION, "SELECT k FROM r GROUP BY k"),
        (Place.FROM, "SELECT k FROM (SELECT DISTINCT k FROM r) i"),
        (Place.CTE, "SELECT '😀)' AS e, count(*) AS n FROM t /* ) */ GROUP BY 1"),
    ]
    place, below = found(written)[-1]
    assert place is Place.LIMIT
    assert below.endswith("IN (SELECT k FROM r GROUP BY k)")
    assert {name.table for name in written.table_names} == {"t", "a", "b", "r"}
    assert written.ctes == {"a", "b"}


@spark_needed
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t",
        "SELECT a FROM t ORDER BY a",
        "(SELECT a FROM t ORDER BY a LIMIT 3)",
        "SELECT a FROM t AS x",
    ],
)
def test_what_has_no_pieces(text: str, spark: SparkSession) -> None:
    assert query_text(spark, text).pieces == ()


@spark_needed
def test_a_table_is_known_with_its_alias_or_without(spark: SparkSession) -> None:
    text = "SELECT 1 FROM t, `u` AS x, (SELECT 2 FROM w) y"
    names = query_text(spark, text).table_names
    assert {(n.table, text[n.start : n.stop], n.has_alias) for n in names} == {
        ("t", "t", False),
        ("u", "`u`", True),
        ("w", "w", False),
    }


@spark_needed
def test_a_piece_takes_along_the_ctes_that_it_names(spark: SparkSession) -> None:
    written = query_text(
        spark,
        "WITH T AS (SELECT k FROM t WHERE k > 1) SELECT * FROM (SELECT max(k) AS m FROM t),"
        " (SELECT max(k) AS n FROM r)",
    )
    cte, reads_cte, reads_table = (
        next(p for p in written.pieces if written.of(p).endswith(end))
        for end in ("k > 1", "m FROM t", "n FROM r")
    )
    assert written.alone(cte) == "SELECT k FROM t WHERE k > 1"
    assert written.alone(reads_cte).split("\n") == [
        "WITH T AS (SELECT k FROM t WHERE k > 1)",
        "SELECT max(k) AS m FROM t",
    ]
    assert written.alone(reads_table) == "SELECT max(k) AS n FROM r"


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("SELECT * FROM t", True),
        ("SELECT a, m FROM t", True),
        ("SELECT t.`M`, a FROM t", True),
        ("SELECT m AS x FROM t", True),
        ("SELECT x AS m FROM (SELECT DISTINCT m, a FROM t)", True),
        ("SELECT 'm' AS x FROM t -- m[1]", True),
        ("SELECT m[1] FROM t", False),
        ("SELECT m x FROM t", False),
        ("SELECT a, f(b, m, c) FROM t", False),
        ("SELECT a FROM t WHERE m IS NULL", False),
        ("SELECT m.key, a FROM t", False),
        ("SELECT count(*), a FROM (SELECT m, a FROM t)", True),
        ("SELECT row_number() OVER (PARTITION BY a) AS r, m FROM t", True),
        ("WITH c AS (SELECT m, a FROM t) SELECT m FROM c", True),
        ("SELECT m AS x FROM t ORDER BY x", False),
        ("SELECT x[1] FROM (SELECT m AS x FROM t)", False),
        ("SELECT to_json(x) AS j FROM (SELECT a, m AS `X` FROM t)", False),
        ("SELECT to_json(struct(*)) AS j, m FROM t", False),
        ("SELECT to_json(struct(t.*)) AS j FROM t", False),
        ("SELECT (SELECT m FROM t LIMIT 1)[1] AS x FROM u", False),
        ("SELECT (SELECT * FROM t LIMIT 1)[1] AS x FROM u", False),
        ("SELECT a, (SELECT m FROM t LIMIT 1)[1] AS x FROM u", False),
        ("SELECT element_at((SELECT m FROM t LIMIT 1), 1) AS x FROM u", False),
        ("SELECT a, m FROM u, (SELECT m FROM t) AS x", True),
        ("SELECT x[1] FROM (SELECT m FROM t) AS q(x)", False),
        ("SELECT x[1] FROM (SELECT m FROM t) q (x)", False),
        ("WITH c(x) AS (SELECT m FROM t) SELECT x[1] FROM c", False),
        ("SELECT i, x[1] AS s FROM t o(i, x)", False),
        ("SELECT x FROM u JOIN `t` `o`(i, x) ON i = u.i", False),
        ("SELECT a, m FROM range(3), t LEFT JOIN u ON coalesce(a, 1) = b AND abs(a) = 1", True),
    ],
)
def test_a_column_that_is_only_shown(text: str, only: bool) -> None:
    assert is_only_shown(text, "m") is only
