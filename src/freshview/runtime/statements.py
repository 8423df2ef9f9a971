"""Runs statements: those on materialized views by the warehouse, all others by Spark.

For Spark's statements the warehouse's tables are tables of a database of their own, so that INSERT,
UPDATE, DELETE and MERGE work on them, and views are temporary views over their visible columns.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from freshview.algebra.schema import quoted
from freshview.errors import FreshviewError, InvalidStatement, TableMissing, TableUnreadable
from freshview.frontend.catalyst import COPIED_SETTINGS
from freshview.frontend.statements import (
    AlterPolicy,
    AlterTechnique,
    CreateView,
    DropView,
    ExplainView,
    RefreshViews,
    ShowViews,
    SparkStatement,
    parse_statement,
)
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.definitions import is_too_deep, settings_of
from freshview.runtime.explanation import Explanation
from freshview.runtime.named_tables import in_session, place_of
from freshview.runtime.report import Report
from freshview.runtime.status import ViewStatus

if TYPE_CHECKING:
    from freshview.runtime.warehouse import Warehouse

Answer = DataFrame | Report | Explanation | tuple[ViewStatus, ...] | None


def run_statement(warehouse: Warehouse, text: str) -> Answer:
    """The answer of one statement."""
    _check_text(text)
    match parse_statement(text):
        case CreateView(name, query, policy, comment, or_replace, if_not_exists, technique):
            views = {view.name for view in warehouse.catalog.views()}
            if if_not_exists and name in views:
                return None
            return warehouse.create_view(
                name,
                query,
                policy=policy,
                technique=technique,
                replace_existing=or_replace,
                comment=comment,
            )
        case DropView(name, if_exists):
            if not (if_exists and name not in warehouse.catalog):
                warehouse.drop_view(name)
            return None
        case RefreshViews(names, full):
            return warehouse.refresh(*names, full=full)
        case AlterPolicy(name, policy):
            warehouse.set_policy(name, policy)
            return None
        case AlterTechnique(name, technique):
            warehouse.set_technique(name, technique)
            return None
        case ExplainView(name):
            return warehouse.explain(name)
        case ShowViews():
            return warehouse.status()
        case SparkStatement(statement):
            return _by_spark(warehouse, statement)


def _by_spark(warehouse: Warehouse, statement: str) -> DataFrame:
    """Spark's answer; a statement that reads what has no files gets our error, not Spark's."""
    session, lost = _session(warehouse)
    try:
        return session.sql(statement)
    except AnalysisException as problem:
        named = (problem.getMessageParameters() or {}).get("relationName", "").strip("`").lower()
        if named in lost:
            raise lost[named] from problem
        raise
    except Py4JJavaError as problem:
        if not is_too_deep(problem):
            raise
        expected = "a statement that is nested less deeply"
        raise InvalidStatement(line=1, column=1, expected=expected, found="this one") from problem


def _check_text(text: str) -> None:
    """A text that can be sent to Spark. Raises InvalidStatement."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        before = text[: problem.start]
        raise InvalidStatement(
            line=before.count("\n") + 1,
            column=len(before) - before.rfind("\n"),
            expected="a character",
            found=f"half of one: {text[problem.start]!a}",
        ) from problem


def _session(warehouse: Warehouse) -> tuple[SparkSession, dict[str, FreshviewError]]:
    """A session in which the warehouse's tables and views have their names, and those it lacks."""
    session, sources = warehouse.statement_session, warehouse.parts.sources
    settings = settings_of(warehouse.spark, COPIED_SETTINGS)
    for setting, value in settings.items() - warehouse.settings_taken_over.items():
        session.conf.set(setting, value)
    warehouse.settings_taken_over = settings
    database = "freshview_" + hashlib.sha256(str(warehouse.root).encode()).hexdigest()[:12]
    session.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    session.sql(f"USE {database}")
    shown = session.sql("SHOW TABLES").collect()
    known = {row["tableName"] for row in shown if not row["isTemporary"]}
    views = {view.name for view in warehouse.catalog.views()}
    for name in warehouse.named_views - views:  # dropped since the last statement
        session.catalog.dropTempView(name)
    warehouse.named_views = views
    lost: dict[str, FreshviewError] = {}
    for entry in warehouse.catalog:
        name, path = entry.name, warehouse.catalog.path(entry)
        try:
            latest = sources.latest(name)
            if isinstance(entry, ViewEntry):
                rows = in_session(session, sources.read(name, latest))
                rows.createOrReplaceTempView(name)
                continue
        except (TableMissing, TableUnreadable) as problem:
            lost[name.lower()] = problem
            session.catalog.dropTempView(name)
            path = ""
        place = place_of(session, database, name) if name.lower() in known else ""
        if place == path:
            continue
        if place:
            session.sql(f"DROP TABLE {quoted(name)}")
        if path:
            session.sql(f"CREATE TABLE {quoted(name)} USING DELTA LOCATION {_text(path)}")
    return session, lost


def _text(value: str) -> str:
    """A text as a literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
