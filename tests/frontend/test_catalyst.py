"""What the import makes of queries: the same algebra from SQL and DataFrames, and clear refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from freshview.algebra.expressions import Opaque
from freshview.algebra.relations import Aggregate, Project, Scan
from freshview.algebra.render import render
from freshview.algebra.traverse import expressions, scans, walk
from freshview.errors import (
    NotAQuery,
    TooManyConstants,
    UnregisteredSource,
    UnsupportedExpression,
    UnsupportedOperator,
)
from freshview.frontend.catalyst import definition_session, import_dataframe, import_sql, stand_in
from freshview.frontend.leaves import CONSTANT_ROWS_MAX
from freshview.frontend.reasons import clock_refusals, refusals
from freshview.frontend.rules import FILTERING, FINISHING, JOINING, PULLING, VALUING
from freshview.frontend.scala import CATALYST, scala_of
from tests.frontend.samples import QUERIES, schemas
from tests.goldens import check_golden

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def definitions(spark: SparkSession) -> SparkSession:
    return definition_session(spark, schemas())


@pytest.mark.parametrize(
    "name",
    [
        "correlated_exists",
        "correlated_scalars_in_select",
        "except_all",
        "filtered_aggregate_over_lambda",
        "grouping_sets",
        "in_under_or",
        "lateral_top",
        "not_in_with_nulls",
        "self_join",
        "single_join",
        "uncorrelated_exists",
        "uncorrelated_scalars",
        "windows",
    ],
)
def test_golden(name: str, definitions: SparkSession) -> None:
    relation = import_sql(definitions, QUERIES[name])
    check_golden(f"import/{name}", f"{QUERIES[name]}\n\n{render(relation)}")


def test_the_same_text_gives_the_same_algebra(definitions: SparkSession) -> None:
    for name, text in QUERIES.items():
        assert import_sql(definitions, text) == import_sql(definitions, text), name


def test_sql_and_dataframe_give_the_same_algebra(definitions: SparkSession) -> None:
    from pyspark.sql import functions as sf

    orders, lines = definitions.table("orders"), definitions.table("lines")
    df = (
        orders.join(lines, orders.o_id == lines.o_id)
        .where(sf.col("qty") > 1)
        .groupBy("prio")
        .agg(sf.sum("price").alias("total"), sf.count("*").alias("n"))
    )
    text = """SELECT prio, sum(price) AS total, count(*) AS n FROM orders JOIN lines
              ON orders.o_id = lines.o_id WHERE qty > 1 GROUP BY prio"""
    assert import_dataframe(df) == import_sql(definitions, text)


def test_a_self_join_has_two_occurrences_with_ids_of_their_own(definitions: SparkSession) -> None:
    relation = import_sql(definitions, QUERIES["self_join"])
    left, right = scans(relation)
    assert left.table == right.table == "orders"
    assert not set(left.attributes) & set(right.attributes)
    assert [a.name for a in left.attributes] == [a.name for a in right.attributes]


def test_ids_count_from_one_in_order_of_appearance(definitions: SparkSession) -> None:
    (scan,) = scans(import_sql(definitions, "SELECT qty + 1 AS more FROM lines"))
    assert [a.id for a in scan.attributes] == [1, 2, 3, 4, 5]
    relation = import_sql(definitions, "SELECT qty + 1 AS more FROM lines")
    assert [a.id for a in relation.attributes] == [6]


def test_a_column_keeps_the_name_it_was_asked_for(definitions: SparkSession) -> None:
    relation = import_sql(definitions, "SELECT O_ID, Prio AS p FROM ORDERS")
    assert [a.name for a in relation.attributes] == ["O_ID", "p"]
    (scan,) = scans(relation)
    assert scan.attributes[0].name == "o_id"


def test_every_column_of_a_stand_in_is_nullable(spark: SparkSession) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    strict = StructType([StructField("a", LongType(), nullable=False)])
    assert stand_in(spark, "t", strict).schema.fields[0].nullable


def test_an_aggregate_holds_only_attributes_and_calls(definitions: SparkSession) -> None:
    relation = import_sql(
        definitions, "SELECT o_id + 1, sum(qty * 2) + count(*) FROM lines GROUP BY o_id + 1"
    )
    (aggregate,) = (node for node in walk(relation) if isinstance(node, Aggregate))
    assert isinstance(aggregate.child, Project)
    assert [output.call.function for output in aggregate.aggregates] == ["sum", "count"]
    assert aggregate.aggregates[1].call.counts_rows
    assert isinstance(relation, Project)


def test_equal_aggregates_are_computed_once(definitions: SparkSession) -> None:
    relation = import_sql(
        definitions, "SELECT sum(qty) AS a, sum(qty) + 1 AS b FROM lines HAVING sum(qty) > 0"
    )
    (aggregate,) = (node for node in walk(relation) if isinstance(node, Aggregate))
    assert len(aggregate.aggregates) == 1


def test_opaque_expressions_differ_by_their_options(definitions: SparkSession) -> None:
    def texts(query: str) -> set[str]:
        found = expressions(import_sql(definitions, query))
        return {e.text for e in found if isinstance(e, Opaque)}

    one = texts("SELECT from_json(js, 'x int', map('mode', 'PERMISSIVE')) FROM orders")
    two = texts("SELECT from_json(js, 'x int', map('mode', 'FAILFAST')) FROM orders")
    assert one != two


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE orders",
        "INSERT INTO lines SELECT * FROM lines",
        "WITH a AS (SELECT 1) INSERT INTO lines SELECT * FROM lines",
        "SHOW TABLES",
        "SET spark.sql.ansi.enabled = false",
        "CREATE TEMPORARY VIEW v AS SELECT 1",
    ],
)
def test_only_queries_define_views(statement: str, definitions: SparkSession) -> None:
    with pytest.raises(NotAQuery):
        import_sql(definitions, statement)


def test_two_statements_are_a_syntax_error(definitions: SparkSession) -> None:
    from pyspark.errors import ParseException

    with pytest.raises(ParseException):
        import_sql(definitions, "SELECT 1; DROP TABLE orders")


def test_a_final_semicolon_is_no_statement(definitions: SparkSession) -> None:
    assert import_sql(definitions, "SELECT 1 AS a;\n") == import_sql(definitions, "SELECT 1 AS a")


def test_a_literal_that_moves_with_the_clock_is_refused(definitions: SparkSession) -> None:
    with pytest.raises(UnsupportedExpression) as caught:
        import_sql(definitions, "SELECT * FROM orders WHERE day < DATE 'today'")
    assert caught.value.parameters["expression"] == "DATE 'today'"


def test_a_comment_may_follow_the_final_semicolon(definitions: SparkSession) -> None:
    assert import_sql(definitions, "SELECT 1 AS a; -- one") == import_sql(
        definitions, "SELECT 1 AS a"
    )


def test_a_source_that_is_not_registered_is_named(definitions: SparkSession) -> None:
    df = definitions.createDataFrame(definitions.sparkContext.parallelize([(1,)]), "a int")
    with pytest.raises(UnregisteredSource) as caught:
        import_dataframe(df)
    assert "a#" in str(caught.value.parameters["source"])


def test_operators_without_algebra_are_named(definitions: SparkSession) -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        import_sql(definitions, "SELECT * FROM orders TABLESAMPLE (10 PERCENT)")
    assert caught.value.parameters["operator"] == "Sample"


PROGRAMS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "MapInPandas": lambda df: df.mapInPandas(lambda rows: rows, "a int"),
    "MapInArrow": lambda df: df.mapInArrow(lambda rows: rows, "a int"),
    "FlatMapGroupsInPandas": lambda df: df.groupBy("a").applyInPandas(lambda g: g, "a int"),
    "FlatMapGroupsInArrow": lambda df: df.groupBy("a").applyInArrow(lambda g: g, "a int"),
    "FlatMapCoGroupsInPandas": lambda df: (
        df.groupBy("a").cogroup(df.groupBy("a")).applyInPandas(lambda g, _: g, "a int")
    ),
    "FlatMapCoGroupsInArrow": lambda df: (
        df.groupBy("a").cogroup(df.groupBy("a")).applyInArrow(lambda g, _: g, "a int")
    ),
    "ScriptTransformation": lambda df: df.sparkSession.sql(
        "SELECT TRANSFORM(a) USING 'cat' AS (a INT) FROM {df}", df=df
    ),
}


@pytest.mark.parametrize("operator", PROGRAMS)
def test_programs_over_rows_are_refused_by_name(operator: str, definitions: SparkSession) -> None:
    df = definitions.createDataFrame([(1,)], "a int")
    with pytest.raises(UnsupportedOperator) as caught:
        import_dataframe(PROGRAMS[operator](df))
    assert caught.value.parameters["operator"] == operator
    assert "a pandas aggregate" in str(caught.value.parameters["reason"])


def test_constants_are_limited(definitions: SparkSession) -> None:
    rows = pa.table({"a": range(CONSTANT_ROWS_MAX + 1)})
    with pytest.raises(TooManyConstants):
        import_dataframe(definitions.createDataFrame(rows))
    with pytest.raises(TooManyConstants):
        import_sql(definitions, f"SELECT * FROM range({CONSTANT_ROWS_MAX + 1})")


def test_a_registered_table_beside_a_constant_relation(definitions: SparkSession) -> None:
    text = "SELECT * FROM VALUES (1, 'a'), (NULL, 'b') AS t(k, v) JOIN lines ON k = qty"
    relation = import_sql(definitions, text)
    assert [type(node).__name__ for node in walk(relation)].count("Values") == 1
    assert len([node for node in walk(relation) if isinstance(node, Scan)]) == 1


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("rand()", "NOT_DETERMINISTIC"),
        ("uuid()", "NOT_DETERMINISTIC"),
        ("current_timestamp()", "CLOCK_OUTSIDE_FILTER"),
        ("now()", "CLOCK_OUTSIDE_FILTER"),
        ("current_date()", "CLOCK_OUTSIDE_FILTER"),
        ("localtimestamp()", "CLOCK_OUTSIDE_FILTER"),
        ("unix_timestamp()", "CLOCK_OUTSIDE_FILTER"),
        ("current_time()", "DEPENDS_ON_CLOCK"),
        ("current_timezone()", "DEPENDS_ON_CLOCK"),
        ("cast('now' AS timestamp)", "DEPENDS_ON_CLOCK"),
        ("current_user()", "DEPENDS_ON_SESSION"),
        ("monotonically_increasing_id()", "DEPENDS_ON_STORAGE"),
        ("input_file_name()", "DEPENDS_ON_STORAGE"),
    ],
)
def test_what_is_no_function_of_the_tables_is_refused(
    expression: str, code: str, definitions: SparkSession
) -> None:
    relation = import_sql(definitions, f"SELECT o_id, {expression} AS x FROM orders")
    assert code in {reason.code for reason in (*refusals(relation), *clock_refusals(relation))}


def test_python_functions_say_whether_they_are_deterministic(definitions: SparkSession) -> None:
    from pyspark.sql import functions as sf

    double = sf.udf(lambda value: value, "bigint")
    orders = definitions.table("orders")
    kept = import_dataframe(orders.select(double("o_id").alias("x")))
    assert refusals(kept) == ()
    refused = import_dataframe(orders.select(double.asNondeterministic()("o_id").alias("x")))
    assert [reason.code for reason in refusals(refused)] == ["NOT_DETERMINISTIC"]


def test_every_rule_exists_in_this_spark(spark: SparkSession) -> None:
    for rule in (*FINISHING, *PULLING, *VALUING, *FILTERING, *JOINING):
        assert scala_of(spark).singleton(CATALYST + rule.name) is not None
        assert rule.reason
