"""``freshview suggest``: how a query would be kept, and rewrites of it that are kept better."""

from __future__ import annotations

from typing import Annotated

import typer

from freshview.cli.answer import failures, plain, refuse, succeed
from freshview.cli.options import HERE, AsJson, WarehousePath, opened


def suggest(
    query: Annotated[
        str | None,
        typer.Argument(metavar="[QUERY]", help="A query, or a CREATE MATERIALIZED VIEW."),
    ] = None,
    view: Annotated[
        str | None, typer.Option("--view", metavar="NAME", help="A view that is there.")
    ] = None,
    warehouse: WarehousePath = HERE,
    as_json: AsJson = False,
) -> None:
    """Propose definitions that are kept incrementally, or that read less.

    Each proposal is planned before it is shown; nothing is made.

    Example: freshview suggest "SELECT id, attributes FROM orders" --warehouse shop
    """
    if (query is None) == (view is None):
        refuse("Give a query, or --view with the name of a view.")
    with failures(as_json):
        advice = opened(warehouse).suggest(query, view=view)
    if as_json:
        succeed(**plain(advice))
    else:
        print(advice)
