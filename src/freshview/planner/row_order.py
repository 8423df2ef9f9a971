"""One order of the rows for aggregate functions of their sequence, whatever the plan and its size.

The rows of a group are brought into one partition and sorted there by every column that such functions
read. Spark then adds each group up in one task and in that order; rows that are equal in all of these
columns are the same to the functions. So FIRST, COLLECT_LIST, STDDEV and the like are functions of the
bag of rows, and a group that is computed again comes out as it did before.
"""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.aggregates import DOUBLES, OR_NULL, PYTHONS, WITHOUT_ORDER
from freshview.algebra.relations import Aggregate
from freshview.algebra.schema import Attribute
from freshview.delta.exactness import is_orderable, order_of
from freshview.frontend.scala import CATALYST, JavaObject, Scala
from freshview.planner.lower_expressions import ExpressionLowering, References

NOT_SORTED_FOR = WITHOUT_ORDER | {"try_sum", "try_avg", *OR_NULL.values()}
"""Spark takes a sort away below an aggregate that has none but such functions, though a sum that is NULL when
it overflows on the way depends on the order. What lies between hides the sort from it."""

ORDERING = CATALYST + "expressions."


def needs_order(aggregate: Aggregate) -> bool:
    return any(output.call.depends_on_order for output in aggregate.aggregates)


def apart(aggregate: Aggregate) -> list[Aggregate]:
    """Aggregates of the same groups that together have its calls: one, if no order is at stake.

    Spark takes Python's functions in an aggregate of their own only. For DISTINCT it adds all functions up
    per group and distinct value first, and then these partial results in no order. So where functions of
    the sequence are among the calls, DISTINCT calls are computed by themselves; and those of them that are
    such functions over rows that are there once.
    """
    calls = tuple(o for o in aggregate.aggregates if o.call.function != PYTHONS)
    pythons = tuple(o for o in aggregate.aggregates if o.call.function == PYTHONS)
    if pythons and calls:
        others = apart(replace(aggregate, aggregates=calls))
        return [*others, replace(aggregate, aggregates=pythons)]
    if not needs_order(aggregate) or not any(o.call.distinct for o in calls):
        return [aggregate]
    plain = tuple(o for o in calls if not o.call.distinct)
    counted = tuple(o for o in calls if o.call.distinct and not o.call.depends_on_order)
    found = [replace(aggregate, aggregates=part) for part in (plain, counted) if part]
    for output in calls:
        if output.call.distinct and output.call.depends_on_order:
            columns = tuple(dict.fromkeys((*aggregate.group, *order_of(output.call))))
            once = Aggregate(aggregate.child, columns, ())
            call = replace(output.call, distinct=False)
            found.append(Aggregate(once, aggregate.group, (replace(output, call=call),)))
    return found


def in_one_order(
    plan: JavaObject,
    columns: References,
    aggregate: Aggregate,
    expressions: ExpressionLowering,
    scala: Scala,
) -> tuple[JavaObject, References]:
    """The child's plan with the rows of each group together and in the order of their values.

    The columns are those of the plan that is returned.
    """
    group = [columns[a.id] for a in aggregate.group]
    parts = scala.none if group else scala.some(1)
    together = scala.node("RepartitionByExpression", scala.seq(group), plan, parts, scala.none)
    read = [a for o in aggregate.aggregates if o.call.depends_on_order for a in order_of(o.call)]
    order = [
        key
        for a in dict.fromkeys((*aggregate.group, *read))
        if is_orderable(a.type)
        for key in _keys(a, columns[a.id], expressions, scala)
    ]
    if not order:
        return together, columns
    ascending = scala.singleton(ORDERING + "Ascending")
    nulls_first = scala.singleton(ORDERING + "NullsFirst")
    sorted_by = [
        scala.expression("SortOrder", key, ascending, nulls_first, scala.seq([])) for key in order
    ]
    ordered = scala.node("Sort", scala.seq(sorted_by), False, together, scala.none)
    if not all(o.call.function in NOT_SORTED_FOR for o in aggregate.aggregates):
        return ordered, columns
    held = {attribute_id: column.newInstance() for attribute_id, column in columns.items()}
    as_they_are = scala.seq([scala.seq(list(columns.values()))])
    return scala.node("Expand", as_they_are, scala.seq(list(held.values())), ordered), held


def _keys(
    attribute: Attribute, column: JavaObject, expressions: ExpressionLowering, scala: Scala
) -> list[JavaObject]:
    """A column, and what tells values apart that it calls equal: −0.0 and 0.0, 'a' and 'A'."""
    if attribute.type in DOUBLES:
        value = expressions.cast_to(column, "double")
        bits = scala.expression(
            "objects.StaticInvoke",
            scala.jvm.java.lang.Class.forName("java.lang.Double"),
            expressions.type("bigint"),
            "doubleToLongBits",
            scala.seq([value]),
            scala.seq([]),
            True,
            True,
            True,
            scala.none,
        )
        return [column, bits]
    if attribute.type.startswith("string collate"):
        return [column, expressions.cast_to(column, "binary")]
    if any(part in attribute.type for part in (*DOUBLES, "collate")):
        return [column, expressions.cast_to(column, "string")]
    return [column]
