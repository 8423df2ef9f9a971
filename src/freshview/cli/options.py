"""The options that several commands share, and opening the warehouse they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freshview.algebra.clock import is_clock
from freshview.algebra.clock_time import shown_clock

if TYPE_CHECKING:
    from freshview.runtime.warehouse import Warehouse

WarehousePath = Annotated[
    Path,
    typer.Option(
        "--warehouse",
        "-w",
        envvar="FRESHVIEW_WAREHOUSE",
        metavar="PATH",
        help="The folder of the warehouse.",
    ),
]

AsJson = Annotated[
    bool, typer.Option("--json", help="Answer with one JSON object on standard output.")
]

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="The moment for views that filter by current_date() or now(), as in"
        " 2026-11-16T08:00:00+00:00, to repeat a refresh or to try one; now, if not given.",
    ),
]

HERE = Path()


def version_text(source: str, version: int) -> str:
    """The version of a source; of the clock, the day or the moment."""
    return shown_clock(source, version) if is_clock(source) else str(version)


def opened(path: Path, at: str | None = None) -> Warehouse:
    """The warehouse at a path, which has to be one already. Spark starts when it is needed."""
    from freshview.runtime.clock import fixed_clock
    from freshview.runtime.warehouse import open_warehouse

    clock = None if at is None else fixed_clock(at)
    return open_warehouse(path, create=False, clock=clock)
