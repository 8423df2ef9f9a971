"""How the demo prints: plain tables, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freshview.runtime.check import CheckResult
from freshview.runtime.report import Report

_REFRESH = ("view", "mode", "rows in", "rows out", "rows read", "ms", "recompute ms", "ratio")
_CHECK = ("view", "result", "rows missing", "rows extra", "ms")


def banner(rows: Mapping[str, int], setup_ms: Mapping[str, float]) -> RenderableType:
    """What was made, and what that took."""
    tables = ", ".join(f"{name} {count:,}" for name, count in rows.items())
    times = ", ".join(f"{name} {ms / 1000:.1f} s" for name, ms in setup_ms.items())
    return Group(
        Text(f"TPC-H tables (rows): {tables}"),
        Text(
            "Views: revenue (3-way join, aggregate), open_lines (join), nation_revenue (on revenue),"
        ),
        Text("       big_orders (a Python function)"),
        Text(f"Set-up: {times}"),
        Text("Each refresh beside Spark's recompute and overwrite of the same view, same data:"),
    )


def refresh_table(
    number: int, title: str, report: Report, recompute_ms: Mapping[str, float]
) -> RenderableType:
    """One refresh: each view's way, rows and time beside the time of its recompute.

    A view that was found unchanged or not affected has no recompute beside it: none would be needed.
    """
    table = _table(_REFRESH, left=2)
    for view in report.views:
        spent = recompute_ms.get(view.view)
        table.add_row(
            view.view,
            view.mode,
            f"{view.rows_in:,}",
            f"{view.rows_out:,}",
            f"{view.rows_read:,}",
            f"{view.ms:,.0f}",
            *_beside(view.ms, spent),
        )
    total = sum(recompute_ms.values()) or None
    table.add_row("all", "", "", "", "", f"{report.ms:,.0f}", *_beside(report.ms, total))
    return Group(Text(""), Text(f"{number}. {title}", style="bold"), table)


def _beside(ms: float, recompute_ms: float | None) -> tuple[str, str]:
    """The recompute's time and how many refreshes fit into it."""
    if recompute_ms is None:
        return "–", "–"
    return f"{recompute_ms:,.0f}", f"{recompute_ms / ms:,.1f} ×"


def checks_table(checks: Sequence[CheckResult], total_ms: float) -> RenderableType:
    """Each view compared with its definition, and how long everything took."""
    table = _table(_CHECK, left=2)
    for check in checks:
        table.add_row(
            check.view,
            "equal" if check.ok else "DIFFERS",
            f"{check.missing:,}",
            f"{check.extra:,}",
            f"{check.ms:,.0f}",
        )
    title = "Check: each view against its definition, evaluated by Spark from the tables"
    last = Text(f"\n{total_ms / 1000:.0f} s in all.")
    return Group(Text(""), Text(title, style="bold"), table, last)


def _table(columns: Sequence[str], left: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left else "right", no_wrap=True)
    return table
