"""``freshview sql``: run statements in a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from freshview.cli.answer import fail, failures, refuse, show, succeed
from freshview.cli.options import HERE, AsJson, WarehousePath, opened
from freshview.cli.rows import Rows, cell, rows_of
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

    With --json a row is an object by column; of columns with one name the second gets _2 behind
    it, the third _3. Dates, times and intervals are the texts that Spark writes.

    Example: freshview sql --warehouse shop "SELECT * FROM revenue ORDER BY month"
    """
    if (statement is None) == (file is None):
        refuse("give either a statement or --file")
    with failures(as_json):
        text = _text_of(file, as_json) if file is not None else statement or ""
    if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
        refuse("the statement is not UTF-8")
    statements = split(text)
    if not statements:
        refuse("there is no statement")
    answers = []
    with failures(as_json):
        opened_warehouse = opened(warehouse)
        for one in statements:
            found = _found(opened_warehouse.sql(one), limit, as_json)
            if as_json:
                answers.append({"statement": one, **_answer(found)})
            else:
                _show(found)
    if as_json and file is None and len(answers) == 1:
        succeed(**answers[0])
    elif as_json:
        succeed(results=answers)


def _text_of(file: Path, as_json: bool) -> str:
    found = file.read_bytes()
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as error:
        before = found[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        byte = f"0x{found[error.start]:02x}"
        why = f"statements are read as UTF-8, and the byte {byte} there is none ({error.reason})"
        do = "save the file as UTF-8"
        text = f"FILE_ERROR: {file}, line {line}, column {column}: this is no text."
        where = {"path": str(file), "line": line, "column": column, "byte": byte}
        text = f"{text}\n  why: {why}\n  do:  {do}"
        fail("FILE_ERROR", text, as_json=as_json, parameters=where, why=why, do=do)


def _found(result: Any, limit: int, as_json: bool) -> Any:
    """What a statement gave, by its kind: rows, a report, an explanation, states, or nothing."""
    if hasattr(result, "toArrow"):
        return rows_of(result, limit, times_with_t=as_json) if result.columns else None
    return list(result) if isinstance(result, tuple) else result


def _answer(found: Any) -> dict[str, Any]:
    if found is None:
        return {}
    return found.answer() if isinstance(found, Rows) else {"result": found}


def _show(found: Any) -> None:
    if isinstance(found, Rows):
        show(table(found.columns, [[cell(value) for value in row] for row in found.rows]))
        if found.truncated:
            show(f"(the first {len(found.rows)} rows; --limit shows more)")
    elif found is None:
        show("done")
    elif hasattr(found, "table"):
        show(found.table())
    elif isinstance(found, list):
        show(status_table(found) if found else "There are no views yet.")
    else:
        print(found)
