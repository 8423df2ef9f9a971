"""The clock where Spark makes a constant of it while it analyzes: nothing in the plan shows it then.

The numbers of LIMIT, OFFSET and TABLESAMPLE, the arguments of ``range()`` and the values of PIVOT must be
constants, so ``month(current_date())`` is computed once, when the query is defined. These places are looked
at in the plan that is only parsed, each expression by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from freshview.errors import FreshviewError, UnsupportedExpression
from freshview.frontend.plans import PlanImport
from freshview.frontend.reasons import clock_refusals, refusals
from freshview.frontend.scala import JavaObject, alias, items, java_session, scala_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Offset"})
_FOLDED = (
    "Spark makes a constant of it where the query is defined, so that it would not move; in a filter"
    " current_date() and now() are kept as moving windows"
)


def refuse_folded_clock(session: SparkSession, parsed: JavaObject) -> None:
    """Raise UnsupportedExpression if one of these places is not the same at any time."""
    for expression in _constants(parsed):
        reason = _why_not(session, expression)
        if reason is not None:
            raise UnsupportedExpression(expression=str(expression.sql()), reason=reason)


def _constants(plan: JavaObject) -> Iterator[JavaObject]:
    """The expressions at such places, in a parsed plan and in all queries inside of it."""
    kind = str(plan.nodeName())
    if kind in _LIMITS:
        yield from items(plan.expressions())
    elif kind == "UnresolvedTableValuedFunction":
        yield from items(plan.functionArgs())
    elif kind == "Pivot":
        yield from items(plan.pivotValues())
    elif kind == "UnresolvedWith":
        for cte in items(plan.cteRelations()):
            yield from _constants(cte.productElement(1))
    for below in (*items(plan.children()), *items(plan.subqueries())):
        yield from _constants(below)


def _why_not(session: SparkSession, expression: JavaObject) -> str | None:
    """Why an expression without columns is not a constant; None if it is, or has columns."""
    if expression.nodeName() == "Literal":
        return None
    scala = scala_of(session)
    named = scala.seq([alias(scala, expression, "value")])
    alone = scala.node("Project", named, scala.node("OneRowRelation"))
    datasets = scala.singleton("org.apache.spark.sql.classic.Dataset")
    try:
        analyzed = datasets.ofRows(java_session(session), alone).queryExecution().analyzed()
        relation = PlanImport(scala).query(analyzed, ["value"])
    except (Py4JJavaError, PySparkException, FreshviewError):
        return None  # it has columns; the whole query says what else is wrong
    if clock_refusals(relation):
        return _FOLDED
    found = refusals(relation)
    return found[0].why if found else None
