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
    """One refresh: each view's way, rows and time beside the time of its recompute."""
    table = _table(_REFRESH, left=2)
    for view in report.views:
        table.add_row(
            view.view,
            view.mode,
            f"{view.rows_in:,}",
            f"{view.rows_out:,}",
            f"{view.rows_read:,}",
            f"{view.ms:,.0f}",
            f"{recompute_ms[view.view]:,.0f}",
            f"{recompute_ms[view.view] / max(view.ms, 0.1):,.0f} ×",
        )
    spent = sum(recompute_ms.values())
    table.add_row(
        "all", "", "", "", "", f"{report.ms:,.0f}", f"{spent:,.0f}", f"{spent / report.ms:,.0f} ×"
    )
    return Group(Text(""), Text(f"{number}. {title}", style="bold"), table)


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
