"""Expressions and nodes that our own rules make, which have no Catalyst template, mean what Spark does."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Call, Column, Expression, Literal, cast, coalesce, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Changes,
    Expand,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Output,
    Project,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Union,
    Values,
    keep,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.windows import Ordering
from freshview.planner.lower import lower, prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

K, V, D = Attribute("k", 1, "bigint"), Attribute("v", 2, "int"), Attribute("d", 3, "decimal(12,2)")
T = Scan("t", (K, V, D))
ROWS = [
    (1, 5, Decimal("1.50")),
    (1, None, Decimal("2.25")),
    (2, 7, None),
    (None, -3, Decimal("-9999999999.99")),
]
OUT = Attribute("out", 100, "bigint")


def result(spark: SparkSession, relation: Relation) -> list[tuple[Any, ...]]:
    df = spark.createDataFrame(ROWS, "k bigint, v int, d decimal(12,2)")
    rows = lower(spark, relation, {T: df}).dataframe.collect()
    return sorted((tuple(row) for row in rows), key=repr)


def values(spark: SparkSession, expression: Expression, over: Relation = T) -> list[Any]:
    """An expression's values over the rows of t, in the order of their text."""
    out = Attribute("out", 100, expression.type)
    return [row[0] for row in result(spark, Project(over, (Output(out, expression),)))]


def call(operation: str, *arguments: Expression, kind: str = "boolean") -> Call:
    return Call(operation, arguments, kind)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call("=", Column(K), integer(1)), [False, None, True, True]),
        (call("<=>", Column(K), integer(1)), [False, False, True, True]),
        (call("<", Column(K), integer(2)), [False, None, True, True]),
        (call(">=", Column(K), integer(2)), [False, False, None, True]),
        (call("is null", Column(V)), [False, False, False, True]),
        (call("is not null", Column(V)), [False, True, True, True]),
        (call("not", call("=", Column(K), integer(1))), [False, False, None, True]),
        (call("in", Column(K), integer(1), integer(7)), [False, None, True, True]),
        (call("+", Column(K), integer(5), kind="bigint"), [6, 6, 7, None]),
        (call("-", Column(K), integer(5), kind="bigint"), [-3, -4, -4, None]),
        (call("*", Column(K), integer(5), kind="bigint"), [10, 5, 5, None]),
        (coalesce(Column(K), integer(0)), [0, 1, 1, 2]),
        (call("abs", Column(V), kind="int"), [3, 5, 7, None]),
        (cast(Column(V), "string"), ["-3", "5", "7", None]),
        (
            call("if", call("is null", Column(V)), integer(1), integer(2), kind="bigint"),
            [1, 2, 2, 2],
        ),
    ],
)
def test_operations(spark: SparkSession, expression: Call, expected: list[Any]) -> None:
    assert values(spark, expression) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "boolean"),
        (7, "tinyint"),
        (7, "smallint"),
        (-7, "int"),
        (2**62, "bigint"),
        (Decimal("-1.50"), "decimal(12,2)"),
        (0, "decimal(38,0)"),
        ('it\'s a \\ "text"\n', "string"),
        (dt.date(1969, 7, 20), "date"),
        (1.5, "double"),
        (float("inf"), "double"),
        (None, "array<struct<a:int>>"),
        (None, "timestamp_ntz"),
    ],
)
def test_literals_have_their_declared_type(spark: SparkSession, value: object, kind: str) -> None:
    out = Attribute("out", 100, kind)
    one = Project(Values((), ((),)), (Output(out, Literal(value, kind, str(value))),))
    df = lower(spark, one, {}).dataframe
    assert df.schema["out"].dataType.simpleString() == kind
    assert df.collect()[0][0] == value


@pytest.mark.parametrize(("argument", "kind"), [(D, "decimal(16,6)"), (V, "double")])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_average_from_sum_and_count_is_sparks_own(
    spark: SparkSession, argument: Attribute, kind: str, ansi: str
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    sum_type = "decimal(22,2)" if argument is D else "bigint"
    total, count = Attribute("s", 10, sum_type), Attribute("n", 11, "bigint")
    calls = (
        AggregateOutput(total, AggregateCall("sum", (Column(argument),), sum_type)),
        AggregateOutput(count, AggregateCall("count", (Column(argument),), "bigint")),
    )
    average = Call("average", (Column(total), Column(count)), kind)
    ours = Project(Aggregate(T, (K,), calls), (keep(K), Output(Attribute("a", 12, kind), average)))
    df = session.createDataFrame(ROWS, "k bigint, v int, d decimal(12,2)")
    got = lower(session, ours, {T: df}).dataframe
    expected = df.groupBy("k").agg({argument.name: "avg"})
    assert got.schema["a"].dataType == expected.schema[1].dataType
    assert sorted(got.collect(), key=repr) == sorted(
        (type(row)(k=row[0], a=row[1]) for row in expected.collect()), key=repr
    )


def test_a_negative_count_is_an_error(spark: SparkSession) -> None:
    count = Call("nonnegative", (Column(V),), "int")
    positive = Select(T, call(">", Column(V), Literal(0, "int", "0")))
    assert values(spark, count, positive) == [5, 7]
    with pytest.raises(Exception, match="a count became negative"):
        values(spark, count)


def test_arithmetic_overflows_as_the_session_says(spark: SparkSession) -> None:
    huge = Literal(2**63 - 1, "bigint", str(2**63 - 1))
    relation = Project(T, (Output(OUT, call("+", Column(K), huge, kind="bigint")),))
    from pyspark.errors import ArithmeticException

    df = spark.createDataFrame(ROWS, "k bigint, v int, d decimal(12,2)")
    with pytest.raises(ArithmeticException):
        lower(spark, relation, {T: df}).dataframe.collect()


def single_value(over: Relation) -> Relation:
    out = AggregateOutput(OUT, AggregateCall("single_value", (Column(K),), "bigint"))
    return Aggregate(over, (), (out,))


def test_the_single_value_of_none_one_and_several_rows(spark: SparkSession) -> None:
    def where(value: int) -> Relation:
        return Select(T, call("=", Column(K), integer(value)))

    assert result(spark, single_value(where(9))) == [(None,)]
    assert result(spark, single_value(where(2))) == [(2,)]
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        result(spark, single_value(where(1)))


def test_repeat_gives_rows_as_often_as_said(spark: SparkSession) -> None:
    repeated = Repeat(Project(T, (keep(K), keep(V))), Column(V))
    assert result(spark, repeated) == [(1, 5)] * 5 + [(2, 7)] * 7


def test_a_delta_is_a_leaf_with_its_count(spark: SparkSession) -> None:
    changes = Changes("t", (K,))
    df = spark.createDataFrame([(1, -1), (2, 3)], "k bigint, __n bigint")
    rows = lower(spark, changes, {changes: df}).dataframe
    assert rows.columns == ["k", "__n"]
    assert sorted(tuple(row) for row in rows.collect()) == [(1, -1), (2, 3)]


def other(first: int) -> Scan:
    """Another occurrence of t."""
    return Scan("t", tuple(Attribute(a.name, first + a.id, a.type) for a in T.attributes))


def test_joins_of_every_kind(spark: SparkSession) -> None:
    right = other(10)
    on = call("=", Column(K), Column(right.attributes[0]))
    df = spark.createDataFrame(ROWS, "k bigint, v int, d decimal(12,2)")
    leaves = {T: df, right: df}
    mark = Attribute("exists", 50, "boolean")

    def count(relation: Relation) -> int:
        return lower(spark, relation, leaves).dataframe.count()

    assert count(Join(T, right, on)) == 5
    assert count(Join(T, right)) == 16
    assert count(OuterJoin(T, right, on, keeps_left=True, keeps_right=False)) == 6
    assert count(OuterJoin(T, right, on, keeps_left=False, keeps_right=True)) == 6
    assert count(OuterJoin(T, right, on, keeps_left=True, keeps_right=True)) == 7
    assert count(Semijoin(T, right, on)) == 3
    assert count(Semijoin(T, right, on, anti=True)) == 1
    marked = lower(spark, MarkJoin(T, right, on, mark), leaves).dataframe
    assert sorted(row["exists"] for row in marked.collect()) == [False, True, True, True]


def test_columns_of_one_name_are_told_apart(spark: SparkSession) -> None:
    right = other(10)
    df = spark.createDataFrame(ROWS, "k bigint, v int, d decimal(12,2)")
    lowered = lower(spark, Join(T, right), {T: df, right: df})
    assert lowered.columns[K] == "c1"
    assert lowered.dataframe.columns == ["c1", "c2", "c3", "c11", "c12", "c13"]


def test_one_leaf_twice_in_a_union(spark: SparkSession) -> None:
    renamed = Attribute("k", 60, "bigint")
    only = Project(T, (keep(K),))
    assert len(result(spark, Union((only, only), (renamed,)))) == 8


def test_expand_and_limit(spark: SparkSession) -> None:
    group = Attribute("g", 70, "bigint")
    expanded = Expand(
        Project(T, (keep(K),)),
        ((Column(K), integer(0)), (Literal(None, "bigint", "null"), integer(1))),
        (Attribute("k", 71, "bigint"), group),
    )
    assert len(result(spark, expanded)) == 8
    assert len(result(spark, Limit(expanded, 3, 6, (Ordering(Column(group)),)))) == 2


def test_empty_values(spark: SparkSession) -> None:
    empty = Values((K, V), ())
    df = lower(spark, empty, {}).dataframe
    assert df.columns == ["k", "v"]
    assert df.count() == 0


def test_a_prepared_plan_is_evaluated_over_changing_leaves(spark: SparkSession) -> None:
    prepared = prepare(spark, Project(T, (keep(K),)))
    assert prepared.leaves == (T,)
    for rows in (ROWS, ROWS[:1], []):
        df = spark.createDataFrame(rows, "k bigint, v int, d decimal(12,2)")
        assert prepared.dataframe({T: df}).count() == len(rows)
