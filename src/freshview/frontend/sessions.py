"""``session_window()``: Spark merges sessions while it adds up; here they are merged by window functions.

The analyzer makes a column of each row's own session, from its time to its time and the gap, and groups by
it. Rows are in one session as long as each begins before the sessions of the rows before it have ended, or
right then. So over the rows of the other groups, in the order of their times:

    reached  the latest end of the rows that begin earlier
    number   how many rows, up to this one, begin after what was reached by then
    merged   the earliest start and the latest end of the rows of one number

and the rows are grouped by what is merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from freshview.frontend.rules import with_subqueries
from freshview.frontend.scala import JavaObject, Scala, alias, items, java_session, scala_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_MARK = "spark.sessionWindow"
"""The key in the metadata of a column that holds sessions to be merged."""


def merged_sessions(session: SparkSession, plan: JavaObject) -> JavaObject:
    """The analyzed plan with every grouping by sessions one by merged sessions."""
    scala = scala_of(session)

    def merged(part: JavaObject) -> JavaObject:
        found = [(node, _merged(session, scala, node)) for node in _with_sessions(part)]
        return part.transformDown(scala.map(found)) if found else part

    return with_subqueries(scala, plan, merged)


def _with_sessions(plan: JavaObject) -> Iterator[JavaObject]:
    if plan.nodeName() == "Aggregate" and any(map(_is_session, items(plan.groupingExpressions()))):
        yield plan
    for child in items(plan.children()):
        yield from _with_sessions(child)


def _is_session(group: JavaObject) -> bool:
    return group.nodeName() == "AttributeReference" and bool(
        group.metadata().contains(SESSION_MARK)
    )


def _merged(session: SparkSession, scala: Scala, aggregate: JavaObject) -> JavaObject:
    """The aggregate over rows whose column of sessions holds the merged ones."""
    child, groups = aggregate.child(), items(aggregate.groupingExpressions())
    columns = items(child.output())
    ids = [column.exprId().id() for column in columns]
    own = next(f"c{ids.index(g.exprId().id())}" for g in groups if _is_session(g))
    others = [group for group in groups if not _is_session(group)]
    named = [alias(scala, column, f"c{place}") for place, column in enumerate(columns)]
    named += [alias(scala, group, f"g{place}") for place, group in enumerate(others)]
    by = [f"g{place}" for place in range(len(others))]
    within = f"PARTITION BY {', '.join(by)} " if by else ""
    numbered = f"PARTITION BY {', '.join([*by, 'number'])}"
    rows = scala.singleton("org.apache.spark.sql.classic.Dataset").ofRows(
        java_session(session), scala.node("Project", scala.seq(named), child)
    )
    reached = (
        f"max({own}.end) OVER ({within}ORDER BY {own}.start"
        " RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '0.000001' SECOND PRECEDING) AS reached"
    )
    number = (
        f"sum(CASE WHEN {own}.start <= reached THEN 0 ELSE 1 END)"
        f" OVER ({within}ORDER BY {own}.start) AS number"
    )
    merged = (
        f"named_struct('start', min({own}.start) OVER ({numbered}),"
        f" 'end', max({own}.end) OVER ({numbered})) AS merged"
    )
    for step in (reached, number, merged):
        rows = rows.selectExpr(scala.seq(["*", step]))
    above = rows.queryExecution().analyzed()
    found = {str(column.name()): column for column in items(above.output())}
    kept = [
        alias(
            scala,
            found["merged" if f"c{place}" == own else f"c{place}"],
            str(column.name()),
            column.exprId(),
        )
        for place, column in enumerate(columns)
    ]
    return aggregate.withNewChildren(scala.seq([scala.node("Project", scala.seq(kept), above)]))
