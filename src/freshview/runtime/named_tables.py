"""Names of tables: in sessions where they stand for given DataFrames, and in Spark's own catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from freshview.algebra.schema import quoted
from freshview.errors import InvalidCatalogName, NameTaken, TableMissing, first_line
from freshview.frontend.scala import scala_of

_PART = re.compile(r"`(?:[^`]|``)+`|[A-Za-z0-9_]+")
_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern})){{0,2}}")


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


def location_of(spark: SparkSession, table: str) -> str:
    """Where a Delta table of Spark's catalog is. Its name goes into SQL part by part, each quoted."""
    if not _NAME.fullmatch(table):
        reason = "it is not one to three names joined by dots, with nothing around them"
        raise InvalidCatalogName(table=table, reason=reason)
    parts = [_unquoted(part) for part in _PART.findall(table)]
    try:
        detail = spark.sql(f"DESCRIBE DETAIL {'.'.join(map(quoted, parts))}").collect()[0]
    except PySparkException as problem:
        raise TableMissing(path=table, reason=first_line(problem)) from problem
    if detail["format"] != "delta":
        raise TableMissing(path=table, reason=f"its format is {detail['format']}")
    # A path and not a URL, whatever its beginning says: nothing in it is encoded.
    return str(detail["location"]).removeprefix("file://").removeprefix("file:")


def place_of(session: SparkSession, database: str, table: str) -> str:
    """Where a table of the session's catalog is said to be.

    Raises NameTaken if its files are Spark's own: they would go with its name.
    """
    state = session._jsparkSession.sessionState()  # noqa: SLF001 - PySpark has no public way
    name = state.sqlParser().parseTableIdentifier(f"{quoted(database)}.{quoted(table)}")
    found = state.catalog().getTableMetadata(name)
    location = found.location()
    if found.tableType().name() == "MANAGED":
        raise NameTaken(name=f"{database}.{table}")
    return str(location.getPath() if location.getScheme() == "file" else location.toString())


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part
