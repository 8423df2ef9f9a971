"""TPC queries as views under STRICT, through five batches of changes of all tables.

Each day three others of TPC-DS and one of TPC-H, so that 33 days see them all; on the days that TPC-H has
none left, one of it over doubles. FRESHVIEW_TPC_TURN names a day.
``make coverage`` runs all of them at once.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tests.tpc.database import DOUBLES, QUERY_COUNTS, Database
from tests.tpc.kept import Keeping, Kept, failures, published_and_loosened, queries

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TURNS = 33
TURN = int(os.environ.get("FRESHVIEW_TPC_TURN", dt.datetime.now(dt.UTC).toordinal())) % TURNS
BATCHES = 5
OVER_DOUBLES = (1, 3, 5, 6, 7, 9, 10, 11, 14, 15, 18)
"""Queries of TPC-H with sums and averages, one for each day from the 23rd on."""
QUERIES = [
    (kind, number, loosened)
    for kind, count in QUERY_COUNTS.items()
    for number, loosened in published_and_loosened(kind, range(1, count + 1))
    if number % TURNS == TURN
]
QUERIES += [
    ("tpch" + DOUBLES, number, False)
    for day, number in enumerate(OVER_DOUBLES, start=QUERY_COUNTS["tpch"] + 1)
    if day % TURNS == TURN
]


@pytest.fixture(scope="module")
def kept(
    tpc: Callable[[str], Database],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], dict[tuple[int, bool], Kept]]:
    """A function that gives what became of a database's views after all batches."""
    done: dict[str, dict[tuple[int, bool], Kept]] = {}

    def keep_once(kind: str) -> dict[tuple[int, bool], Kept]:
        if kind not in done:
            chosen = [(number, loosened) for k, number, loosened in QUERIES if k == kind]
            wanted = queries(tpc(kind), chosen)
            keeping = Keeping(tpc(kind), wanted, tmp_path_factory.mktemp(kind), spark, TURN)
            for batch in range(1, BATCHES + 1):
                keeping.step(batch)
            keeping.explain()
            keeping.read_log()
            done[kind] = {(k.query.number, k.query.loosened): k for k in keeping.kept.values()}
        return done[kind]

    return keep_once


@pytest.mark.parametrize(("kind", "number", "loosened"), QUERIES)
def test_a_query_is_kept_incrementally_and_equal(
    kind: str,
    number: int,
    loosened: bool,
    kept: Callable[[str], dict[tuple[int, bool], Kept]],
) -> None:
    found = kept(kind)[number, loosened]
    assert failures(found) == []
    assert len(found.modes) == BATCHES
    assert len(found.rows) == BATCHES + 1
