"""``freshview init``: make a folder a warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshview.cli.answer import failures, succeed
from freshview.cli.options import AsJson
from freshview.runtime.catalog import Catalog


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder; made if missing.")],
    as_json: AsJson = False,
) -> None:
    """Make a folder a warehouse. One that is a warehouse already stays as it is.

    Example: freshview init shop
    """
    with failures(as_json):
        root = path.absolute()
        new = not Catalog(root).exists()
        Catalog.create(root)
    if as_json:
        succeed(path=str(root), created=new)
    else:
        print(f"{path} {'is now' if new else 'already was'} a warehouse.")
