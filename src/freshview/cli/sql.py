"""``freshview sql``: run statements in a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from freshview.cli.answer import failures, refuse, show, succeed
from freshview.cli.options import HERE, AsJson, WarehousePath, opened
from freshview.cli.statements import split
from freshview.cli.status import status_table
from freshview.cli.tables import table


def sql(
    statement: Annotated[
        str | None, typer.Argument(metavar="[STATEMENT]", help="One or more statements.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", exists=True, dir_okay=False, help="A file of statements, ended by ;."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Show at most this many rows of a query.")
    ] = 100,
    warehouse: WarehousePath = HERE,
    as_json: AsJson = False,
) -> None:
    """Run SQL statements: those on materialized views by freshview, all others by Spark.

    Example: freshview sql --warehouse shop "SELECT * FROM revenue ORDER BY month"
    """
    if (statement is None) == (file is None):
        refuse("give either a statement or --file")
    text = file.read_text(encoding="utf-8") if file is not None else statement
    statements = split(text or "")
    if not statements:
        refuse("there is no statement")
    answers = []
    with failures(as_json):
        opened_warehouse = opened(warehouse)
        for one in statements:
            found = _found(opened_warehouse.sql(one), limit)
            answers.append({"statement": one, **found})
            if not as_json:
                _show(found)
    if as_json and file is None and len(answers) == 1:
        succeed(**answers[0])
    elif as_json:
        succeed(results=answers)


def _found(result: Any, limit: int) -> dict[str, Any]:
    """What a statement gave, by its kind: rows, a report, an explanation, states, or nothing."""
    if result is None:
        return {}
    if hasattr(result, "toArrow"):
        return _rows(result, limit)
    return {"result": list(result) if isinstance(result, tuple) else result}


def _rows(frame: Any, limit: int) -> dict[str, Any]:
    if not frame.columns:
        return {}
    rows = [row.asDict(recursive=True) for row in frame.take(limit + 1)]
    return {"columns": frame.columns, "rows": rows[:limit], "truncated": len(rows) > limit}


def _show(found: dict[str, Any]) -> None:
    if "rows" in found:
        cells = [[_cell(row[column]) for column in found["columns"]] for row in found["rows"]]
        show(table(found["columns"], cells))
        if found["truncated"]:
            show(f"(the first {len(cells)} rows; --limit shows more)")
        return
    result = found.get("result")
    if result is None:
        show("done")
    elif hasattr(result, "table"):
        show(result.table())
    elif isinstance(result, list):
        show(status_table(result) if result else "There are no views yet.")
    else:
        print(result)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else str(value)
