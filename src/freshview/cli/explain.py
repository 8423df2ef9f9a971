"""``freshview explain``: how a view is kept, and what its next refresh would do."""

from __future__ import annotations

from typing import Annotated

import typer

from freshview.cli.answer import failures, plain, succeed
from freshview.cli.options import HERE, AsJson, At, WarehousePath, opened


def explain(
    view: Annotated[str, typer.Argument(metavar="VIEW", help="The view.")],
    warehouse: WarehousePath = HERE,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Print the derivation step by step, in the papers' letters."),
    ] = False,
    at: At = None,
    as_json: AsJson = False,
) -> None:
    """Tell how a view is kept, and list the stages of the refresh that is due now.

    Example: freshview explain revenue --warehouse shop
    """
    with failures(as_json):
        explanation = opened(warehouse, at).explain(view, paper=paper)
    if as_json:
        succeed(**plain(explanation))
    else:
        print(explanation)
