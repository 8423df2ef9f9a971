"""Spark's analyzer as the front end: a query, as SQL text or as a DataFrame, becomes algebra.

Tables are presented to Spark as stand-ins without data, RDD-backed so that no rule folds them away.
Their columns carry the names of table and column in their metadata, by which a leaf of the analyzed
plan is known again even after the analyzer has given it new expression ids (in a self-join, say).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from freshview.errors import NotAQuery, UnsupportedExpression
from freshview.frontend.folded_clock import refuse_folded_clock
from freshview.frontend.leaves import COLUMN_MARK, TABLE_MARK, TYPE_MARK
from freshview.frontend.plans import PlanImport
from freshview.frontend.scala import analyzed_plan, java_context, java_session, scala_of
from freshview.frontend.sessions import merged_sessions
from freshview.frontend.statements import moving_literals, without_end

if TYPE_CHECKING:
    from freshview.algebra.relations import Relation

COPIED_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.session.timeZone",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.timestampType",
    "spark.sql.session.collation.default",
)
"""Settings that decide what a query means; a definition is analyzed under those of its user."""


def stand_in(spark: SparkSession, name: str, schema: StructType) -> DataFrame:
    """An empty DataFrame that stands for a table; every column is nullable."""
    marked = StructType([_marked(name, field) for field in schema.fields])
    types = scala_of(spark).type("org.apache.spark.sql.types.DataType")
    rows = java_context(spark).emptyRDD()
    empty = java_session(spark).createDataFrame(rows, types.fromJson(marked.json()))
    return DataFrame(empty, spark)


def _marked(table: str, field: StructField) -> StructField:
    kind = field.dataType.simpleString()
    marks = {TABLE_MARK: table, COLUMN_MARK: field.name, TYPE_MARK: kind}
    return StructField(field.name, field.dataType, True, {**field.metadata, **marks})


def definition_session(spark: SparkSession, tables: Mapping[str, StructType]) -> SparkSession:
    """A session in which each table is a temporary view over its stand-in."""
    session = spark.newSession()
    for setting in COPIED_SETTINGS:
        value = spark.conf.get(setting, None)
        if value is not None:
            session.conf.set(setting, value)
    for name, schema in tables.items():
        stand_in(session, name, schema).createOrReplaceTempView(name)
    return session


def import_dataframe(df: DataFrame) -> Relation:
    """The algebra of a DataFrame over stand-ins."""
    session = df.sparkSession
    plan = merged_sessions(session, analyzed_plan(df))
    return PlanImport(scala_of(session)).query(plan, df.columns)


def import_sql(session: SparkSession, text: str) -> Relation:
    """The algebra of one query. Anything but a query is refused before Spark runs it."""
    parser = java_session(session).sessionState().sqlParser()
    parsed = parser.parsePlan(text)
    try:
        parser.parseQuery(without_end(text))
    except ParseException:
        raise NotAQuery(statement=str(parsed.nodeName())) from None
    for moving in moving_literals(text):
        reason = (
            "Spark's parser makes it the day of the definition; in a filter current_date() and now()"
            " are kept as moving windows"
        )
        raise UnsupportedExpression(expression=moving, reason=reason)
    refuse_folded_clock(session, parsed)
    return import_dataframe(session.sql(text))
