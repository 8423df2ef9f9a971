"""Every TPC query becomes algebra, and the same text always becomes the same algebra."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from freshview.algebra.traverse import tables, walk
from freshview.frontend.catalyst import import_sql
from tests.tpc.database import QUERIES, Database

pytestmark = [pytest.mark.spark]

NODES = {"Scan", "Select", "Project", "Join", "OuterJoin", "Semijoin", "MarkJoin", "Aggregate"}
NODES |= {"Union", "Intersection", "Difference", "Window", "Expand", "Sort", "Limit"}


@pytest.mark.parametrize(("kind", "number"), QUERIES)
def test_a_query_becomes_algebra(kind: str, number: int, tpc: Callable[[str], Database]) -> None:
    database = tpc(kind)
    text = database.written(number)
    relation = import_sql(database.definitions, text)
    assert [a.name for a in relation.attributes] == database.session.sql(text).columns
    assert set(tables(relation)) <= set(database.tables)
    assert {type(node).__name__ for node in walk(relation)} <= NODES


def test_the_import_is_deterministic(tpc: Callable[[str], Database]) -> None:
    database = tpc("tpcds")
    for number in (14, 39, 70):
        text = database.written(number)
        assert import_sql(database.definitions, text) == import_sql(database.definitions, text)
