"""Catalyst's orders, window functions and frames to ours."""

from __future__ import annotations

from collections.abc import Iterable

from freshview.algebra.expressions import Expression, integer
from freshview.algebra.relations import Limit, Project, Relation, Select, Sort, keep
from freshview.algebra.schema import Attribute
from freshview.algebra.windows import Frame, Ordering, WindowCall, total_order
from freshview.frontend.expressions import ExpressionImport, Scope, is_steady, type_name
from freshview.frontend.scala import JavaObject, items

_EDGES = {"UnboundedPreceding$": None, "UnboundedFollowing$": None, "CurrentRow$": 0}


def orderings(
    expressions: ExpressionImport, sources: JavaObject, scope: Scope
) -> tuple[Ordering, ...]:
    """The keys of an ORDER BY."""
    return tuple(
        Ordering(
            expressions.expression(source.child(), scope),
            str(source.direction().toString()) == "Descending",
            str(source.nullOrdering().toString()) == "NullsLast",
        )
        for source in items(sources)
    )


def window_call(expressions: ExpressionImport, source: JavaObject, scope: Scope) -> WindowCall:
    """One WindowExpression; its partition and order are those of the node that it is in."""
    function = called = source.windowFunction()
    if function.nodeName() == "AggregateExpression":
        called = function.aggregateFunction()
    children = items(called.children())
    arguments = tuple(expressions.expression(child, scope) for child in children)
    return WindowCall(
        str(called.prettyName()),
        arguments,
        type_name(source.dataType()),
        _frame(source.windowSpec().frameSpecification()),
        expressions.text(called.nodeName(), called, len(children)),
        is_steady(called.nodeName(), called, children),
        function,
    )


def _frame(source: JavaObject) -> Frame:
    by_rows = str(source.frameType().toString()) == "RowFrame"
    start, end = (_edge(edge, by_rows) for edge in (source.lower(), source.upper()))
    if start is NotImplemented or end is NotImplemented:
        return Frame(by_rows, None, None, str(source.sql()), source)
    return Frame(by_rows, start, end, "", source)


def _edge(edge: JavaObject, by_rows: bool) -> int | None:
    """The offset of an edge; NotImplemented for a distance in values."""
    name = str(edge.getClass().getSimpleName())
    if name in _EDGES:
        return _EDGES[name]
    return int(edge.eval(None)) if by_rows else NotImplemented


def limited(
    relation: Relation, columns: Iterable[Attribute], count: int | None, offset: int
) -> Relation:
    """The first rows of a relation, in the order it is in and then by all its columns.

    A limit without an order takes the first rows by its columns. The order may be below σ and Π,
    which keep it; such a projection then comes after the limit.
    """
    match relation:
        case Limit(child, None, skipped, order) if count is not None and not offset:
            return Limit(child, count, skipped, order)
        case Limit(_, _, _, order):
            return Limit(relation, count, offset, order)
        case Sort(child, order):
            return Limit(child, count, offset, total_order(order, columns))
        case Project(child, outputs) if _is_ordered(child):
            return Project(limited(child, child.attributes, count, offset), outputs)
        case Select(child):
            order = total_order(order_of(child), relation.attributes)
            return Limit(relation, count, offset, order)
        case _:
            return Limit(relation, count, offset, total_order((), columns))


def order_below(relation: Relation) -> Sort | None:
    """The order for row numbers without one: of a sort below, by columns that are not shown.

    Spark's rule for ``(SELECT … ORDER BY … LIMIT n)`` with a correlation leaves it there.
    """
    match relation:
        case Project(Sort() as ordered, outputs) if all(o == keep(o.attribute) for o in outputs):
            return ordered
        case _:
            return None


def certain_order(
    partition: tuple[Expression, ...], columns: Iterable[Attribute]
) -> tuple[Ordering, ...]:
    """The order for row numbers that nothing gives one: of a LIMIT alone in a correlated subquery.

    By all columns that the partition leaves; a constant where it leaves none, since rows are then equal.
    """
    by = tuple(map(Ordering, partition))
    return total_order(by, columns)[len(by) :] or (Ordering(integer(1)),)


def order_of(relation: Relation) -> tuple[Ordering, ...]:
    """The order in which a relation's rows are; empty if in none."""
    match relation:
        case Sort(_, order) | Limit(_, _, _, order):
            return order
        case Select(child):
            return order_of(child)
        case _:
            return ()


def _is_ordered(relation: Relation) -> bool:
    if isinstance(relation, Project):
        return _is_ordered(relation.child)
    return bool(order_of(relation))
