"""How the benchmark prints: plain tables, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freshview.bench.samples import Spread, by_stage

if TYPE_CHECKING:
    from freshview.bench.basics import Basics


def scenario_table(found: Basics) -> RenderableType:
    """Refresh beside recompute for each kind and size of change, then refreshes of nothing."""
    settings, machine = found.settings, found.machine
    table = plain_table(("changed rows", "refresh ms", "recompute ms", "ratio", "jobs"))
    for scenario in found.scenarios:
        pairs = scenario.pairs
        table.add_row(
            f"{scenario.rows:,} {scenario.kind}",
            Spread.of(p.refresh_ms for p in pairs).text(),
            Spread.of(p.recompute_ms for p in pairs).text(),
            Spread.of(p.ratio for p in pairs).text(1),
            str(max(p.jobs for p in pairs)),
        )
    idle = Spread.of(ms for ms, _ in found.unchanged)
    table.add_row("none", idle.text(1), "", "", str(max(jobs for _, jobs in found.unchanged)))
    title = f"Refresh and recompute, TPC-H SF {settings.sf:g}: median (least–greatest)"
    notes = (
        f"{settings.repeat} pairs each, in turns; {machine['cores']} cores, load {machine['load']}"
    )
    check = "equal to a recompute" if found.ok else "DIFFERENT from a recompute"
    return Group(
        Text(title, style="bold"), Text(notes), table, Text(f"The view in the end: {check}")
    )


def stage_table(columns: Sequence[tuple[str, Sequence[Mapping[str, float]]]]) -> RenderableType:
    """Where the time of a refresh goes: one column per kind of refresh, one line per stage."""
    stages = [by_stage(samples) for _, samples in columns]
    names = dict.fromkeys(name for spreads in stages for name in spreads)
    ordered = [name for name in names if name != "rest"] + ["rest"]
    table = plain_table(("stage, ms", *(name for name, _ in columns)))
    for name in ordered:
        cells = [f"{spreads[name].median:,.1f}" if name in spreads else "" for spreads in stages]
        table.add_row(name, *cells)
    return Group(Text("\nStages of a refresh, medians", style="bold"), table)


def memory_table(found: Basics) -> RenderableType:
    """The peak of Python and JVM at both scales, and the difference."""
    table = plain_table(("scale", "Python MB", "JVM heap MB", "together MB"))
    for sf, measured in found.memory.items():
        top = max(measured, key=lambda memory: memory.total_mb)
        table.add_row(
            f"SF {sf:g}", f"{top.python_mb:,.0f}", f"{top.heap_mb:,.0f}", f"{top.total_mb:,.0f}"
        )
    rows = f"{max(found.settings.sizes):,} mixed rows"
    return Group(
        Text(f"\nPeak memory of a refresh after {rows}, own process", style="bold"),
        table,
        Text(f"Ten times the tables: {found.memory_growth_mb():+,.0f} MB"),
    )


def plain_table(columns: Sequence[str]) -> Table:
    """A table without lines, its first column to the left and numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=True)
    return table
