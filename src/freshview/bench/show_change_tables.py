"""How the comparison of change tables, deltas and recomputes is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from freshview.bench.comparison import CHANGE_TABLE, RECOMPUTE, TECHNIQUES, VIEW, Refreshed
from freshview.bench.reads import Read
from freshview.bench.samples import Spread
from freshview.bench.show import plain_table
from freshview.runtime.report import INCREMENTAL

if TYPE_CHECKING:
    from freshview.bench.change_tables import ChangeTables


def way_name(way: str) -> str:
    """A technique, or the recompute, as it is printed."""
    return way.replace("_", " ")


def comparison_table(found: ChangeTables) -> RenderableType:
    """One line per view and way: milliseconds, and how the ways compare."""
    settings, machine = found.settings, found.machine
    table = plain_table(("view", "by", "ms", "recompute ÷ it", "it ÷ change table", "jobs"))
    notes = []
    for view in found.views:
        for way in (*TECHNIQUES, RECOMPUTE):
            refreshes = [] if way == RECOMPUTE else view.refreshes(way)
            note = _not_incremental(refreshes)
            if note:
                notes.append(f"{view.view} by {way_name(way)}: {note}")
            count = view.ms(way).count
            table.add_row(
                view.view if way == CHANGE_TABLE else "",
                way_name(way) + (" FULL" if note else ""),
                view.ms(way).text() + (f" ×{count}" if count < settings.repeat else ""),
                _ratio(view.ratio(RECOMPUTE, way)) if refreshes else "",
                _ratio(view.ratio(way, CHANGE_TABLE)) if way != CHANGE_TABLE else "",
                str(max(refreshed.jobs for refreshed in refreshes)) if refreshes else "",
            )
    title = (
        f"Views of [GM06], {settings.sales:,} sales, {settings.rows:,} inserted:"
        " median (least–greatest)"
    )
    turns = f"{settings.repeat} rounds, in turns (× says how often where it was fewer)"
    about = f"{turns}; {machine['cores']} cores, load {machine['load']}"
    wrong = ", ".join(found.wrong)
    check = f"DIFFERENT from a recompute: {wrong}" if wrong else "equal to a recompute"
    return Group(
        Text(title, style="bold"),
        Text(about),
        table,
        *map(Text, notes),
        Text(f"The views in the end: {check}"),
    )


def _ratio(ratio: Spread) -> str:
    """A ratio with two digits at least, also where the one that should win has lost."""
    return ratio.text(1 if ratio.median >= 1 else 2)


def _not_incremental(refreshes: list[Refreshed]) -> str:
    """How many refreshes were not incremental, and why; nothing if all were."""
    others = [r for r in refreshes if r.mode != INCREMENTAL]
    if not others:
        return ""
    why = ", ".join(sorted({f"{r.mode} {r.reason or ''}".strip() for r in others}))
    return f"{len(others)} of {len(refreshes)} refreshes were {why}"


def reads_table(found: ChangeTables) -> RenderableType:
    """What a refresh took in, read of each table and of its view, and set in it."""
    tables = tuple(found.table_rows)
    headers = [_broken(name) for name in tables]
    table = plain_table(("view", "by", "changes", *headers, "the view", "rows out"))
    for view in found.views:
        for technique in TECHNIQUES:
            refreshes = view.refreshes(technique)
            table.add_row(
                view.view if technique == CHANGE_TABLE else "",
                way_name(technique),
                f"{Spread.of(r.rows_in for r in refreshes).median:,.0f}",
                *(_reads([r.reads.get(name) for r in refreshes]) for name in (*tables, VIEW)),
                f"{Spread.of(r.rows_out for r in refreshes).median:,.0f}",
            )
    note = "* Spark has read all of it, once or more"
    return Group(Text("\nRows that a refresh reads, medians", style="bold"), table, Text(note))


def _broken(name: str) -> str:
    """A long name on two lines, for the head of a narrow column."""
    return name if len(name) <= 6 else f"{name[:-6]}-\n{name[-6:]}"


def _reads(reads: list[Read | None]) -> str:
    known = [read for read in reads if read is not None]
    if not known:
        return ""
    rows = f"{Spread.of(read.rows for read in known).median:,.0f}"
    return f"{rows}*" if any(read.scans for read in known) else rows
