"""A query at a moment: the functions of the clock in Catalyst's plan, replaced by their values then.

Spark itself would evaluate them now. A check compares a view with its definition at the moment that
the view was refreshed for.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from freshview.algebra.clock_time import internal_value
from freshview.frontend.expressions import CLOCK_FUNCTIONS, clock_function
from freshview.frontend.leaves import internal_literal
from freshview.frontend.rules import with_subqueries
from freshview.frontend.scala import (
    CATALYST,
    JavaObject,
    Scala,
    analyzed_plan,
    found_in,
    items,
    java_session,
    scala_of,
)


def at_moment(rows: DataFrame, versions: Mapping[str, int]) -> DataFrame:
    """The query with each clock at its version; one that has none stays, since nobody reads it."""
    if not versions:
        return rows
    session = rows.sparkSession
    scala = scala_of(session)
    plan = with_subqueries(scala, analyzed_plan(rows), lambda part: _fixed(scala, part, versions))
    dataset = scala.singleton("org.apache.spark.sql.classic.Dataset")
    return DataFrame(dataset.ofRows(java_session(session), plan), session)


def _fixed(scala: Scala, plan: JavaObject, versions: Mapping[str, int]) -> JavaObject:
    pattern = scala.singleton(CATALYST + "trees.TreePattern").CURRENT_LIKE()
    found: list[JavaObject] = []
    _collect(plan, pattern, found)
    values = []
    for function in found:
        table = clock_function(function).text
        if table in versions:
            value = internal_value(table, versions[table])
            kind = function.dataType()
            name = str(kind.catalogString())
            values.append((function, internal_literal(scala, value, kind, name)))
    return plan.transformAllExpressions(scala.map(values)) if values else plan


def _collect(node: JavaObject, pattern: JavaObject, found: list[JavaObject]) -> None:
    if not node.containsPattern(pattern):
        return
    for expression in items(node.expressions()):
        found.extend(found_in(expression, pattern, CLOCK_FUNCTIONS))
    for child in items(node.children()):
        _collect(child, pattern, found)
