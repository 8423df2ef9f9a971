"""``freshview register``: make a Delta table known to a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshview.cli.answer import failures, succeed
from freshview.cli.options import HERE, AsJson, WarehousePath, opened


def register(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What views call the table.")],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the Delta table.")],
    warehouse: WarehousePath = HERE,
    as_json: AsJson = False,
) -> None:
    """Make an existing Delta table known, so that views can read it by its name.

    The table stays where it is, and nobody has to write it through freshview.

    Example: freshview register orders data/orders --warehouse shop
    """
    with failures(as_json):
        opened(warehouse).register(name, path)
    if as_json:
        succeed(name=name, path=str(path.absolute()))
    else:
        print(f"{name} is the Delta table at {path}.")
