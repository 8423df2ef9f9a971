"""DuckDB's texts of the TPC queries in Spark's dialect, with a total order under every LIMIT."""

from __future__ import annotations

import re

_STRING_OR_NAME = re.compile(r"'[^']*'|\"([^\"]*)\"")
_LIMIT = re.compile(r"\bLIMIT\s+\d+$", re.IGNORECASE)
_BRACKETS_AND_ORDER = re.compile(r"\(|\)|\border by\b", re.IGNORECASE)


def on_one_line(text: str) -> str:
    """The query without comments, line breaks and its final semicolon."""
    without_comments = re.sub(r"--[^\n]*", "", text)
    return re.sub(r"\s+", " ", without_comments).strip().removesuffix(";").strip()


def for_spark(text: str) -> str:
    """Names in double quotes are Spark's names in backticks; strings stay."""
    return _STRING_OR_NAME.sub(lambda m: m[0] if m[1] is None else f"`{m[1]}`", on_one_line(text))


def with_total_order(text: str, columns: int) -> str:
    """ORDER BY … LIMIT n with all output columns as tie-break.

    Where rows tie, which of them come before the limit is left open by SQL, and two right answers
    could differ. Rows that tie in all columns are equal, so with the tie-break the bag is determined.
    """
    limit = _LIMIT.search(text)
    if limit is None:
        return text
    query = text[: limit.start()].rstrip()
    ordered, depth = False, 0
    for part in _BRACKETS_AND_ORDER.findall(query):
        depth += {"(": 1, ")": -1}.get(part, 0)
        ordered = ordered or (depth == 0 and part not in "()")
    keys = ", ".join(str(position + 1) for position in range(columns))
    return f"{query}{',' if ordered else ' ORDER BY'} {keys} {limit[0]}"
