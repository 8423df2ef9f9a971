"""Statements on materialized views: what they say, and where a mistake is."""

from __future__ import annotations

import pytest

from freshview.errors import InvalidStatement
from freshview.frontend.statements import (
    AlterPolicy,
    CreateView,
    DropView,
    ExplainView,
    RefreshViews,
    ShowViews,
    SparkStatement,
    moving_literals,
    parse_statement,
    without_end,
)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (
            "CREATE MATERIALIZED VIEW v AS SELECT a AS b FROM t;",
            CreateView("v", "SELECT a AS b FROM t"),
        ),
        (
            "create or replace materialized view v comment 'it''s' policy strict as\nWITH x AS (SELECT 1) SELECT * FROM x",
            CreateView(
                "v", "WITH x AS (SELECT 1) SELECT * FROM x", "STRICT", "it's", or_replace=True
            ),
        ),
        (
            "CREATE /* a ; b */ MATERIALIZED -- AS\n VIEW IF NOT EXISTS `v` AS SELECT ';' AS x -- end",
            CreateView("v", "SELECT ';' AS x -- end", if_not_exists=True),
        ),
        (
            "CREATE MATERIALIZED VIEW v (a, `b c`) AS SELECT 1, 2 -- two\n; -- end",
            CreateView("v", "SELECT * FROM (\nSELECT 1, 2 -- two\n) AS `v`(`a`, `b c`)"),
        ),
        ("DROP MATERIALIZED VIEW v", DropView("v")),
        ("DROP MATERIALIZED VIEW IF EXISTS v ;", DropView("v", if_exists=True)),
        ("REFRESH MATERIALIZED VIEW a, b", RefreshViews(("a", "b"))),
        ("REFRESH MATERIALIZED VIEW ALL FULL", RefreshViews((), full=True)),
        ("ALTER MATERIALIZED VIEW v SET POLICY full", AlterPolicy("v", "FULL")),
        ("ALTER MATERIALIZED VIEW v POLICY AUTO", AlterPolicy("v", "AUTO")),
        ("EXPLAIN MATERIALIZED VIEW v", ExplainView("v")),
        ("SHOW MATERIALIZED VIEWS", ShowViews()),
        ("SELECT 1", SparkStatement("SELECT 1")),
        ("CREATE VIEW v AS SELECT 1", SparkStatement("CREATE VIEW v AS SELECT 1")),
    ],
)
def test_parses(text: str, statement: object) -> None:
    assert parse_statement(text) == statement


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("CREATE MATERIALIZED VIEW AS SELECT 1", 1, 29),
        ("CREATE MATERIALIZED VIEW v\n  POLICY sometimes AS SELECT 1", 2, 10),
        ("CREATE MATERIALIZED VIEW v AS", 1, 30),
        ("CREATE MATERIALIZED VIEW v () AS SELECT 1", 1, 29),
        ("CREATE MATERIALIZED VIEW v (a b) AS SELECT 1", 1, 31),
        ("DROP MATERIALIZED VIEW v v", 1, 26),
        ("REFRESH MATERIALIZED VIEW 'v'", 1, 27),
        ("ALTER MATERIALIZED VIEW v RENAME TO w", 1, 27),
        ("ALTER MATERIALIZED VIEW v POLICY FULL /* not yet", 1, 39),
        ("DROP MATERIALIZED VIEW v /* /* */ , w; SELECT 1", 1, 26),
    ],
)
def test_a_mistake_has_a_place(text: str, line: int, column: int) -> None:
    with pytest.raises(InvalidStatement) as caught:
        parse_statement(text)
    found = caught.value.parameters
    assert (found["line"], found["column"]) == (line, column)


def test_the_end_of_a_statement_goes_with_its_comments() -> None:
    assert without_end("SELECT ';' ; -- a ; b\n ;") == "SELECT ';' "
    assert without_end("SELECT 1 -- kept") == "SELECT 1 -- kept"


def test_literals_that_move_with_the_clock_are_found() -> None:
    text = "SELECT date 'today', TIMESTAMP ' Now UTC', date'2020-01-01', 'date', 'today' FROM t"
    assert moving_literals(text) == ("DATE 'today'", "TIMESTAMP ' Now UTC'")
    escaped = (
        r"""SELECT `date` r'now', date /* of */ '\164oday', date ' -0044-03-15', date"+1-1-1" """
    )
    assert moving_literals(escaped) == ("DATE r'now'", r"DATE '\164oday'")


def test_comments_end_where_spark_ends_them() -> None:
    text = "SELECT /*+ BROADCAST(t) */ a /* b /* c */ ; ' */ FROM t -- d \\\n ; '\r, s /* open"
    assert without_end(f"{text} */ ;") == f"{text} */ "
    star = "SELECT /*+ BROADCAST(t) */* , DATE 'today' FROM t"
    assert moving_literals(star) == ("DATE 'today'",)
    assert without_end(f"{star};") == star
    assert moving_literals("DATE /* /* */ '1 */ 'today' -- '\rDATE 'now'") == (
        "DATE 'today'",
        "DATE 'now'",
    )
