"""What Spark's own catalog defines, a view may not use: its views and its functions in SQL.

They can be redefined there without any table changing, and no refresh could tell. Temporary views of
the session in which a definition is analyzed are our stand-ins, and have no database in their names.
"""

from __future__ import annotations

from collections.abc import Iterator

from freshview.errors import UnregisteredSource, UnsupportedExpression
from freshview.frontend.scala import CATALYST, JavaObject, Scala, found_in, items


def check_names(scala: Scala, plan: JavaObject) -> None:
    """Refuse one query, without those inside its expressions, that uses such a name."""
    pattern = scala.singleton(CATALYST + "trees.TreePattern").SQL_SCALAR_FUNCTION()
    for node in _nodes(plan):
        kind = node.nodeName()
        if kind == "View" and (named := node.desc().identifier()).database().isDefined():
            raise UnregisteredSource(source=str(named.unquotedString()))
        if kind == "SQLFunctionNode":
            raise _in_sql(node)
        for expression in items(node.expressions()):
            for function in found_in(expression, pattern, {"SQLScalarFunction"}):
                raise _in_sql(function)


def _in_sql(call: JavaObject) -> UnsupportedExpression:
    name = call.function().name().unquotedString()
    reason = "it is defined in SQL, and can be redefined without any table changing"
    return UnsupportedExpression(expression=f"{name}()", reason=reason)


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in items(plan.children()):
        yield from _nodes(child)
