"""Import and lowering change no query: Spark gives the same bag for the text and for the algebra.

Both bags are compared whole, duplicates included, which is EXCEPT ALL being empty both ways. Only
values of type double are rounded, to nine significant digits, because the order in which doubles are
added up differs between two plans; decimals, counts and texts must be identical.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from freshview.algebra.traverse import scans
from freshview.frontend.catalyst import import_sql
from freshview.planner.lower import lower
from tests.tpc.database import QUERIES, Database
from tests.tpc.relaxed import RELAXED

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def bag(rows: Iterable[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row) for row in rows)


@pytest.mark.parametrize(("kind", "number"), QUERIES)
def test_the_algebra_gives_what_the_text_gives(
    kind: str, number: int, tpc: Callable[[str], Database]
) -> None:
    database = tpc(kind)
    rows = same(database, database.query(number))
    assert any(value for row in rows for value in row), "the query compares nothing"


@pytest.mark.parametrize(("kind", "number"), RELAXED)
def test_loosened_queries_agree_as_published_too(
    kind: str, number: int, tpc: Callable[[str], Database]
) -> None:
    database = tpc(kind)
    same(database, database.strict_query(number))


def same(database: Database, text: str) -> Counter[tuple[object, ...]]:
    """The rows of the text, after proving that its algebra has the same."""
    relation = import_sql(database.definitions, text)
    leaves = {scan: database.tables[scan.table] for scan in scans(relation)}
    got = lower(database.session, relation, leaves).dataframe
    expected = database.session.sql(text)
    assert [f.dataType.simpleString() for f in got.schema] == [
        f.dataType.simpleString() for f in expected.schema
    ]
    rows = bag(expected.collect())
    assert bag(got.collect()) == rows
    return rows
