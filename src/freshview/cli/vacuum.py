"""``freshview vacuum``: remove what nobody needs any more."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from freshview.cli.answer import failures, refuse, show, succeed
from freshview.cli.options import HERE, AsJson, WarehousePath, opened
from freshview.cli.tables import table

if TYPE_CHECKING:
    from rich.table import Table

    from freshview.runtime.vacuum import Leftover


def vacuum(
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove it; without this it is only listed.")
    ] = False,
    hours: Annotated[
        float,
        typer.Option(
            "--older-than",
            metavar="HOURS",
            help="Keep what is younger. Earlier versions and epochs are readable as long.",
        ),
    ] = 168.0,
    warehouse: WarehousePath = HERE,
    as_json: AsJson = False,
) -> None:
    """List, or remove, what interrupted work and old versions of views have left behind.

    Base tables are not touched, and what is in use at the moment is left for the next time.

    Example: freshview vacuum --older-than 24 --remove --warehouse shop
    """
    if not (isfinite(hours) and hours >= 1):
        refuse("--older-than takes a number of hours, 1 or more")
    with failures(as_json):
        found = opened(warehouse).vacuum(hours, remove=remove)
    size = sum(leftover.bytes for leftover in found)
    if as_json:
        listed = [{"kind": x.kind, "path": str(x.path), "bytes": x.bytes} for x in found]
        succeed(removed=remove, bytes=size, leftovers=listed)
    elif not found:
        print(f"There is nothing older than {hours:g} hours to remove.")
    else:
        show(leftovers_table(found))
        done = "Removed" if remove else "Nothing was removed; --remove would free"
        print(f"{done}: {size:,} bytes in {len(found):,} files and folders.")


def leftovers_table(found: list[Leftover]) -> Table:
    """One line per kind: how many and how much."""
    kinds = dict.fromkeys(leftover.kind for leftover in found)
    rows = []
    for kind in kinds:
        these = [leftover for leftover in found if leftover.kind == kind]
        rows.append(
            (kind, f"{len(these):,}", f"{sum(x.bytes for x in these):,}", these[0].path.name)
        )
    return table(("what", "number", "bytes", "such as"), rows, right=("number", "bytes"))
