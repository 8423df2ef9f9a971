"""``freshview refresh``: bring views to the newest state of their tables."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from freshview.cli.answer import failures, plain, refuse, show, succeed
from freshview.cli.options import HERE, AsJson, At, WarehousePath, opened
from freshview.runtime.catalog import Policy


class PolicyName(StrEnum):
    """The policies as they are written on the command line."""

    auto = Policy.AUTO.value.lower()
    incremental = Policy.INCREMENTAL.value.lower()
    strict = Policy.STRICT.value.lower()
    full = Policy.FULL.value.lower()


def refresh(
    views: Annotated[
        list[str] | None, typer.Argument(metavar="[VIEW]...", help="The views; all if none given.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute, whatever it costs.")] = False,
    policy: Annotated[
        PolicyName | None,
        typer.Option(
            "--policy",
            case_sensitive=False,
            help="For this refresh: auto takes the cheaper way, incremental recomputes only if it"
            " must, strict fails instead, full always recomputes.",
        ),
    ] = None,
    at: At = None,
    warehouse: WarehousePath = HERE,
    as_json: AsJson = False,
) -> None:
    """Bring views, and the views they read, to the newest state of their tables.

    Example: freshview refresh revenue --policy incremental --warehouse shop
    """
    if full and policy is not None:
        refuse("--full is --policy full: give one of them")
    chosen = None if policy is None else Policy(policy.value.upper())
    with failures(as_json):
        report = opened(warehouse, at).refresh(*(views or ()), policy=chosen, full=full)
    if as_json:
        succeed(**plain(report))
    elif report.views:
        show(report.table())
    else:
        print("There are no views yet: make one with CREATE MATERIALIZED VIEW.")
