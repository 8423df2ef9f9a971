"""The refresh operators as printed in [GM06], on lists of rows: for examples, and to show where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[Any, ...]
Match = Callable[[Row, Row], bool]


def refresh(
    view: list[Row], change: list[Row], j1: Match, j2: Match, update: Callable[[Row, Row], Row]
) -> list[Row]:
    """V ⊔_θ^U □V, section 4: each row of □V meets at most one row of V and the other way round.

    A match by J₁ is updated by U, one by J₂ deleted; a row of □V without a match is inserted.
    """
    left = list(view)
    result: list[Row] = []
    for row in change:
        met = next((v for v in left if j1(v, row) or j2(v, row)), None)
        if met is None:
            result.append(row)
            continue
        left.remove(met)
        if j1(met, row):
            result.append(update(met, row))
    return left + result


def merge(
    view: list[Row], change: list[Row], j1: Match, update: Callable[[Row, Row], Row]
) -> list[Row]:
    """What MERGE does: every matching row of the view is updated by the one row that matches it."""
    result = []
    for v in view:
        met = [row for row in change if j1(v, row)]
        assert len(met) <= 1, "MERGE fails when several rows match one"
        result.append(update(v, met[0]) if met else v)
    return result + [row for row in change if not any(j1(v, row) for v in view)]


def oj_deletion(
    view: list[Row], change: list[Row], width: int, set_wise: bool = False
) -> list[Row]:
    """Algorithm 1 for rows (r, s) with r of ``width`` columns: □V has (r, s, l).

    Sequential as printed, or with each row of □V deciding on the view as it was.
    """
    rows, before = list(view), list(view)
    for *values, copies in change:
        row = tuple(values)
        matched = [v for v in rows if v == row][:copies]
        others = list(before if set_wise else rows)
        for v in matched:
            others.remove(v)
        has_other = any(v[width:] == row[width:] for v in others)
        for v in matched:
            rows.remove(v)
            if not has_other:
                rows.append((None,) * width + v[width:])
    return rows
