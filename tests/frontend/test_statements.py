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
    parse_statement,
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
        ("DROP MATERIALIZED VIEW v v", 1, 26),
        ("REFRESH MATERIALIZED VIEW 'v'", 1, 27),
        ("ALTER MATERIALIZED VIEW v RENAME TO w", 1, 27),
    ],
)
def test_a_mistake_has_a_place(text: str, line: int, column: int) -> None:
    with pytest.raises(InvalidStatement) as caught:
        parse_statement(text)
    found = caught.value.parameters
    assert (found["line"], found["column"]) == (line, column)
