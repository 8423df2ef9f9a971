"""Columns of a type that a Delta table cannot hold, or by which no row is found again: cast."""

from __future__ import annotations

from collections.abc import Iterator

from freshview.advice.json_text import json_text
from freshview.advice.shown_columns import around
from freshview.advice.suggestion import Case, Definition, Draft, Planning
from freshview.algebra.schema import Attribute, quoted
from freshview.planner.kept_columns import is_storable

RULE = "typed columns"
_CODES = ("COLUMN_WITHOUT_TYPE", "INVALID_COLUMN_TYPE")


def typed_columns(case: Case, _: Planning) -> Iterator[Draft]:
    """NULL without a type, intervals, times and collated texts are shown as STRING.

    COLUMN_WITHOUT_TYPE and INVALID_COLUMN_TYPE: ``CAST(x AS STRING) AS x`` in a query around the
    view's.
    """
    if case.code not in _CODES:
        return
    name = case.definition.name
    query = around(name, case.definition.query, case.columns, _as_text)
    names = ", ".join(column.name for column in case.columns if _as_text(column) is not None)
    why = f"{names} as STRING is a column that Delta holds and rows are found by"
    yield Draft(RULE, why, (Definition(name, query),))


def _as_text(attribute: Attribute) -> str | None:
    if attribute.type != "void" and is_storable(attribute):
        return None
    if attribute.type.startswith(("array<", "map<", "struct<")):
        return json_text(attribute)
    return f"CAST({quoted(attribute.name)} AS STRING)"
