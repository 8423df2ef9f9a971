"""The generators: the same query from the same seed, every operator, and everything valid in DuckDB."""

from __future__ import annotations

from collections import Counter

import duckdb

from tests.random_queries import pure
from tests.random_queries.data import SCHEMAS
from tests.random_queries.generator import MOST_LEAVES, drawn
from tests.random_queries.kept import DEPTH
from tests.random_queries.soak import OPERATORS_OF_SQL

SEEDS = range(300)


def test_a_seed_is_a_query() -> None:
    assert [drawn(seed, DEPTH) for seed in SEEDS] == [drawn(seed, DEPTH) for seed in SEEDS]
    assert pure.shown(5) == pure.shown(5)


def test_every_operator_occurs_above_and_below_others() -> None:
    queries = [drawn(seed, DEPTH, spark_only=seed % 2 == 0) for seed in SEEDS]
    operators = Counter(operator for query in queries for operator in query.operators)
    assert len(operators) == OPERATORS_OF_SQL, sorted(operators)
    assert min(operators.values()) >= 3
    assert max(query.leaves for query in queries) == MOST_LEAVES


def test_duckdb_reads_all_that_is_not_for_spark_alone() -> None:
    with duckdb.connect() as other:
        for table, schema in SCHEMAS.items():
            other.register(table, schema.empty_table())
        for seed in SEEDS:
            query = drawn(seed, DEPTH)
            columns = [column[0] for column in other.execute(query.text).description or ()]
            assert columns == [column.name for column in query.columns]


def test_views_in_plain_python_are_of_every_operator() -> None:
    outcome = pure.run(range(60))
    assert outcome.wrong == {}
    assert len(outcome.operators) >= 17, sorted(outcome.operators)
