"""What a refresh did, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.table import Table

UNCHANGED = "unchanged"
INCREMENTAL = "incremental"
ADVANCED = "no effect"
FULL = "full"
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ViewReport:
    """One view's refresh: how, how much came in, was read and went out, and where time went."""

    view: str
    mode: str
    technique: str
    version: int
    rows_in: int = 0
    rows_read: int = 0
    rows_out: int = 0
    ms: float = 0.0
    reason: str | None = None
    why: str | None = None
    incremental_ms: float | None = None
    full_ms: float | None = None
    served_by: str = ""
    moment: str | None = None
    """The day or moment for which a view that reads the clock was refreshed."""
    stages_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """A refresh of some views, in the order in which they were refreshed."""

    views: tuple[ViewReport, ...]
    ms: float
    epoch: int | None

    def __getitem__(self, view: str) -> ViewReport:
        return next(report for report in self.views if report.view == view)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    def table(self) -> Table:
        """The report as a table: view, mode, rows, time, and why."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("view", "mode"):
            table.add_column(column)
        for column in ("rows in", "rows read", "rows out", "ms"):
            table.add_column(column, justify="right")
        moving = any(view.moment is not None for view in self.views)
        if moving:
            table.add_column("for")
        table.add_column("reason")
        for view in self.views:
            table.add_row(
                view.view,
                view.mode,
                f"{view.rows_in:,}",
                f"{view.rows_read:,}",
                f"{view.rows_out:,}",
                f"{view.ms:,.0f}",
                *([view.moment or ""] if moving else []),
                view.reason or "",
            )
        return table

    def show(self) -> None:
        """Print the report."""
        Console(markup=False).print(self.table())
