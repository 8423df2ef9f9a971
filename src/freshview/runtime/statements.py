"""Runs statements: those on materialized views by the warehouse, all others by Spark.

For Spark's statements the warehouse's tables are tables of a database of their own, so that INSERT,
UPDATE, DELETE and MERGE work on them, and views are temporary views over their visible columns.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from freshview.algebra.schema import quoted
from freshview.frontend.statements import (
    AlterPolicy,
    CreateView,
    DropView,
    ExplainView,
    RefreshViews,
    ShowViews,
    SparkStatement,
    parse_statement,
)
from freshview.runtime.explanation import Explanation
from freshview.runtime.named_tables import in_session
from freshview.runtime.report import Report
from freshview.runtime.status import ViewStatus

if TYPE_CHECKING:
    from freshview.runtime.warehouse import Warehouse

Answer = DataFrame | Report | Explanation | tuple[ViewStatus, ...] | None


def run_statement(warehouse: Warehouse, text: str) -> Answer:
    """The answer of one statement."""
    match parse_statement(text):
        case CreateView(name, query, policy, comment, or_replace, if_not_exists):
            if if_not_exists and name in warehouse.catalog:
                return None
            return warehouse.create_view(
                name, query, policy=policy, replace_existing=or_replace, comment=comment
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
        case ExplainView(name):
            return warehouse.explain(name)
        case ShowViews():
            return warehouse.status()
        case SparkStatement(statement):
            return _session(warehouse).sql(statement)


def _session(warehouse: Warehouse) -> SparkSession:
    """A session of the warehouse in which its tables and views have their names."""
    session = warehouse.statement_session
    database = "freshview_" + hashlib.sha256(str(warehouse.root).encode()).hexdigest()[:12]
    session.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    session.sql(f"USE {database}")
    shown = session.sql("SHOW TABLES").collect()
    known = {row["tableName"] for row in shown if not row["isTemporary"]}
    for table in warehouse.catalog.tables():
        if table.name.lower() not in known:
            path = _text(warehouse.catalog.path(table))
            session.sql(f"CREATE TABLE {quoted(table.name)} USING DELTA LOCATION {path}")
    for view in warehouse.catalog.views():
        rows = warehouse.parts.sources.read(view.name, warehouse.parts.sources.latest(view.name))
        in_session(session, rows).createOrReplaceTempView(view.name)
    return session


def _text(value: str) -> str:
    """A text as a literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
