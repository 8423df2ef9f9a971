"""A query around a query, which shows some of its columns in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshview.algebra.schema import Attribute, quoted
from freshview.frontend.statements import without_end

Shown = Callable[[Attribute], str | None]
"""The expression by which a column is shown; None for the column itself."""


def around(name: str, query: str, columns: Sequence[Attribute], shown: Shown) -> str:
    """SELECT a, f(b) AS b, … FROM (query) AS name.

    The query is on lines of its own, because it may end with a comment.
    """
    body = without_end(query).strip()
    return f"SELECT {listed(columns, shown)}\nFROM (\n{body}\n) AS {quoted(name)}"


def listed(columns: Sequence[Attribute], shown: Shown) -> str:
    """The columns under their names, for a SELECT."""
    found = []
    for attribute in columns:
        column, expression = quoted(attribute.name), shown(attribute)
        found.append(column if expression is None else f"{expression} AS {column}")
    return ", ".join(found)
