"""Sessions in which plain names stand for given DataFrames."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from freshview.frontend.scala import scala_of


def session_with(
    spark: SparkSession, named: Mapping[str, DataFrame], settings: Mapping[str, str]
) -> SparkSession:
    """A session of its own with these settings, and a temporary view for each DataFrame."""
    session = spark.newSession()
    for setting, value in settings.items():
        session.conf.set(setting, value)
    for name, rows in named.items():
        in_session(session, rows).createOrReplaceTempView(name)
    return session


def in_session(session: SparkSession, rows: DataFrame) -> DataFrame:
    """The same rows as a DataFrame of another session."""
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public way
    dataset = scala_of(session).type("org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)  # noqa: SLF001
