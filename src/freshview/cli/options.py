"""The options that several commands share, and opening the warehouse they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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

HERE = Path()


def opened(path: Path) -> Warehouse:
    """The warehouse at a path, which has to be one already. Spark starts when it is needed."""
    from freshview.runtime.warehouse import open_warehouse

    return open_warehouse(path, create=False)
