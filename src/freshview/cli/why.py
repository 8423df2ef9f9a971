"""``freshview why``: the base rows that rows of a view come from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freshview.cli.answer import failures, refuse, show, succeed
from freshview.cli.options import HERE, AsJson, WarehousePath, opened
from freshview.cli.rows import cell, distinct, rows_of
from freshview.cli.tables import table

if TYPE_CHECKING:
    from freshview.runtime.why import TableRows

_QUOTED = re.compile(r"'((?:[^']|'')*)'")


def why(
    view: Annotated[str, typer.Argument(metavar="VIEW", help="The view.")],
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="COLUMN=VALUE", help="Only rows with this value; may be repeated."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Show at most this many rows of each table.")
    ] = 20,
    warehouse: WarehousePath = HERE,
    as_json: AsJson = False,
) -> None:
    """List the base rows that rows of a view come from, as of its last refresh.

    A value is written as SQL shows it; NULL is no value, and a text in single quotes is that text.
    Without --key all rows of the view are traced.

    Example: freshview why revenue --key region=EU --key year=2024 --warehouse shop
    """
    wanted = _parsed(key or [])
    with failures(as_json):
        found = opened(warehouse).why(view, wanted, limit=limit)
        shown = [_Shown.of(one, limit, as_json) for one in (found.view, *found.tables)]
    more = found.absent_count - len(found.absent)
    if as_json:
        rows, *tables = [one.answer() for one in shown]
        succeed(view=rows, tables=tables, absent=found.absent, absent_count=found.absent_count)
        return
    for place, one in enumerate(shown):
        show(*[""] * bool(place))
        one.show()
    show(*[""] * bool(found.absent), *found.absent)
    if more:
        show(f"… and {more:,} more like this")


def _parsed(keys: list[str]) -> dict[str, str | None]:
    """The key by column; called wrongly if a part of it is not column=value, or names one twice."""
    found: dict[str, str | None] = {}
    for text in keys:
        column, sign, value = text.partition("=")
        if not sign or not column:
            refuse(f"--key takes column=value, and {text!r} is not that")
        if column.lower() in {known.lower() for known in found}:
            refuse(f"--key names {column} twice")
        found[column] = _value(value)
    return found


def _value(text: str) -> str | None:
    """None for the word NULL, in any case; what is in single quotes without them, '' as one."""
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return quoted[1].replace("''", "'")
    return None if text.upper() == "NULL" else text


@dataclass(frozen=True, slots=True)
class _Shown:
    """The first rows of a table in values that can be printed, each with its copies."""

    of_table: TableRows
    columns: tuple[str, ...]
    rows: list[list[Any]]
    copies: list[int]

    @classmethod
    def of(cls, one: TableRows, limit: int, as_json: bool) -> _Shown:
        found = rows_of(one.rows, limit, times_with_t=as_json)
        rows, copies = [row[:-1] for row in found.rows], [int(row[-1]) for row in found.rows]
        return cls(one, found.columns[:-1], rows, copies)

    @property
    def more(self) -> int:
        return self.of_table.count - sum(self.copies)

    def answer(self) -> dict[str, Any]:
        names, one = distinct(self.columns), self.of_table
        rows = [
            {"row": dict(zip(names, row, strict=True)), "copies": copies}
            for row, copies in zip(self.rows, self.copies, strict=True)
        ]
        answer = {"table": one.table, "version": one.version, "via": one.via, "count": one.count}
        return {**answer, "rows": rows, "truncated": self.more > 0}

    def show(self) -> None:
        one = self.of_table
        via = f", via {' and '.join(one.via)}" if one.via else ""
        rows = "1 row" if one.count == 1 else f"{one.count:,} rows"
        show(f"{one.table} at version {one.version}{via}: {rows}")
        if self.rows:
            counted = any(copies > 1 for copies in self.copies)
            columns = (*self.columns, "copies") if counted else self.columns
            cells = [
                [cell(value) for value in row] + [f"{copies:,}"] * counted
                for row, copies in zip(self.rows, self.copies, strict=True)
            ]
            show(table(columns, cells, right=("copies",) if counted else ()))
        if self.more:
            show(f"… and {self.more:,} more")
