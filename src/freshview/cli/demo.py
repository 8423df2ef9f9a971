"""``freshview demo``: a small warehouse, changes to it, and what each refresh costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freshview.cli.answer import FAILED, console, fail, failures, refuse, succeed
from freshview.cli.options import AsJson


def demo(
    path: Annotated[
        Path | None,
        typer.Option(
            "--path", help="Make the warehouse here and keep it; otherwise it is temporary."
        ),
    ] = None,
    sf: Annotated[
        float, typer.Option("--sf", min=0.001, max=10, help="TPC-H scale; 0.1 is 600,000 lines.")
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", help="Other changes for another number.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Make a TPC-H warehouse with four views, change its tables, and refresh after each change.

    Each refresh is printed beside a recompute by the same Spark; in the end every view is compared
    with its definition. Ends with 1 if one differs.

    Example: freshview demo --path shop
    """
    if path is not None and path.exists() and (path.is_file() or any(path.iterdir())):
        refuse(f"{path} is not empty: --path takes a new or empty folder")
    with failures(as_json):
        from freshview.demo.run import run_demo

        found = run_demo(path, sf=sf, seed=seed, console=None if as_json else console())
    if found.ok and as_json:
        succeed(demo=found.summary())
    elif not found.ok and as_json:
        wrong = ", ".join(found.wrong)
        fail("VIEW_DIFFERS", f"{wrong} differ", as_json=True, demo=found.summary())
    elif not found.ok:
        raise typer.Exit(FAILED)
