"""Import, lower, run: the same bag, names and types as Spark gives for the query itself.

Each query also runs twice as a small plan in the driver, over Arrow tables: the second run uses the
plan of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from freshview.algebra.traverse import scans
from freshview.frontend.catalyst import definition_session, import_dataframe, import_sql
from freshview.planner.lower import lower
from freshview.planner.small_plans import SmallPlans
from tests.frontend.samples import QUERIES, bag, schemas, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BY_QUERY = {"uncorrelated_exists", "not_in_with_nulls", "not_in_without_nulls"}
BY_QUERY |= {"existence_in_select", "uncorrelated_not_exists"}
"""Joins without an equality need a broadcast, so these small plans are ordinary queries."""


class Spark:
    """A session with the tables, one with their stand-ins, and small plans."""

    def __init__(self, spark: SparkSession) -> None:
        self.session = spark.newSession()
        self.session.conf.set("spark.sql.codegen.wholeStage", "false")
        self.session.conf.set("spark.sql.adaptive.enabled", "false")
        self.tables: dict[str, DataFrame] = tables(self.session)
        self.arrow = {name: table.toArrow() for name, table in self.tables.items()}
        self.definitions = definition_session(self.session, schemas())
        self.small = SmallPlans(self.session)


@pytest.fixture(scope="module")
def prepared(spark: SparkSession) -> Spark:
    return Spark(spark)


@pytest.mark.parametrize("name", QUERIES)
def test_the_algebra_gives_what_the_text_gives(name: str, prepared: Spark) -> None:
    text = QUERIES[name]
    expected = prepared.session.sql(text)
    rows = bag(expected.toArrow())
    relation = import_sql(prepared.definitions, text)
    assert [a.name for a in relation.attributes] == expected.columns

    leaves = {scan: prepared.tables[scan.table] for scan in scans(relation)}
    got = lower(prepared.session, relation, leaves).dataframe
    kinds = [field.dataType.simpleString() for field in expected.schema]
    assert [field.dataType.simpleString() for field in got.schema] == kinds
    assert [attribute.type for attribute in relation.attributes] == kinds
    assert bag(got.toArrow()) == rows

    plan = prepared.small.prepare(relation)
    assert plan.runs_in_driver == (name not in BY_QUERY)
    arrow = {leaf: prepared.arrow[leaf.table] for leaf in plan.leaves}
    for _ in range(2):
        assert bag(plan.run(arrow)) == rows


def test_small_plans_over_no_rows(prepared: Spark) -> None:
    relation = import_sql(prepared.definitions, QUERIES["simple_aggregates"])
    plan = prepared.small.prepare(relation)
    plan.warm()
    assert plan.run(dict.fromkeys(plan.leaves, prepared.arrow["orders"][:0])).num_rows == 0
    total = prepared.small.prepare(import_sql(prepared.definitions, QUERIES["counts"]))
    empty = dict.fromkeys(total.leaves, prepared.arrow["lines"][:0])
    assert set(total.run(empty).to_pylist()[0].values()) == {0}


def test_a_python_function_goes_the_same_way(prepared: Spark) -> None:
    from pyspark.sql import functions as sf

    longer = sf.udf(lambda text, times: None if text is None else text * times, "string")

    def query(session: SparkSession) -> DataFrame:
        made = longer("prio", sf.lit(2)).alias("twice")
        return session.table("orders").select("o_id", made).where("twice <> 'lolo'")

    expected = bag(query(prepared.session).toArrow())
    assert expected.total() == 2
    relation = import_dataframe(query(prepared.definitions))
    leaves = {scan: prepared.tables[scan.table] for scan in scans(relation)}
    assert bag(lower(prepared.session, relation, leaves).dataframe.toArrow()) == expected
    plan = prepared.small.prepare(relation)
    assert not plan.runs_in_driver
    assert bag(plan.run({leaf: prepared.arrow[leaf.table] for leaf in plan.leaves})) == expected
