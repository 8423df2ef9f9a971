"""MAP and VARIANT columns: Spark cannot compare them, so they are shown as what it can."""

from __future__ import annotations

from collections.abc import Iterator

from freshview.advice.json_text import json_text
from freshview.advice.shown_columns import around, listed
from freshview.advice.suggestion import Case, Definition, Draft, Planning
from freshview.algebra.schema import Attribute, quoted
from freshview.frontend.query_text import is_only_shown
from freshview.frontend.statements import without_end

RULE = "comparable columns"
_ORDER_OPEN = ("LIMIT_ORDER_OPEN", "WINDOW_ORDER_OPEN")


def comparable_columns(case: Case, planning: Planning) -> Iterator[Draft]:
    """A map is shown as its sorted entries, any other value without equality as its JSON text.

    UNGROUPABLE_COLUMN: in a query around the view's. Where an order is open because of such a column
    it is turned where its table is read, below the LIMIT or the window, if the query does nothing
    with it but to list it: ``FROM t`` becomes ``FROM (SELECT …, sort_array(map_entries(m)) AS m FROM
    t) AS t``.
    """
    name, query = case.definition.name, case.definition.query
    if case.code == "UNGROUPABLE_COLUMN":
        yield _draft(name, around(name, query, case.columns, comparable), case.columns)
    elif case.code in _ORDER_OPEN:
        query = without_end(query)
        written = planning.text(query)
        turned: list[Attribute] = []
        for used in sorted(written.table_names, key=lambda used: -used.start):
            columns = () if used.table.lower() in written.ctes else planning.columns(used.table)
            found = [column for column in columns if comparable(column) is not None]
            if not found or not all(is_only_shown(query, column.name) for column in found):
                continue
            inner = f"(SELECT {listed(columns, comparable)} FROM {quoted(used.table)})"  # noqa: S608 - names in backticks
            alias = "" if used.has_alias else f" AS {quoted(used.table)}"
            written = planning.text(written.replaced(used.start, used.stop, inner + alias))
            turned += found
        if turned:
            yield _draft(name, written.text, turned)


def comparable(attribute: Attribute) -> str | None:
    """The expression that shows a value as one with equality; None if it has that already."""
    column = quoted(attribute.name)
    holds = attribute.type.count("map<") + attribute.type.count("variant")
    if not holds:
        return None
    if attribute.type.startswith("map<") and holds == 1:
        return f"sort_array(map_entries({column}))"
    return json_text(attribute)


def _draft(name: str, query: str, columns: tuple[Attribute, ...] | list[Attribute]) -> Draft:
    turned = [column for column in columns if comparable(column) is not None]
    names = ", ".join(dict.fromkeys(column.name for column in turned))
    why = (
        f"Spark compares neither MAP nor VARIANT; {names} is shown as sorted entries or as JSON text,"
        " which it compares"
    )
    return Draft(RULE, why, (Definition(name, query),))
