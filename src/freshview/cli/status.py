"""``freshview status``: which views are fresh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from freshview.cli.answer import failures, plain, show, succeed
from freshview.cli.options import HERE, AsJson, WarehousePath, opened, version_text
from freshview.cli.tables import table

if TYPE_CHECKING:
    from rich.table import Table

    from freshview.runtime.status import ViewStatus


def status(warehouse: WarehousePath = HERE, as_json: AsJson = False) -> None:
    """List the views: how each is kept, its size, and the changes it has not seen yet.

    Example: freshview status --warehouse shop
    """
    with failures(as_json):
        found = opened(warehouse).status()
    if as_json:
        succeed(views=[{**plain(view), "fresh": view.fresh} for view in found])
    elif found:
        show(status_table(found))
    else:
        print("There are no views yet: make one with CREATE MATERIALIZED VIEW.")


def status_table(views: Sequence[ViewStatus]) -> Table:
    """One line per view; its state names the sources that moved on, with both versions."""
    moving = any(view.moment is not None for view in views)
    columns = ("view", "technique", "policy", "version", "rows", *["for"] * moving, "state")
    rows = [_row(view, moving) for view in views]
    return table(columns, rows, right=("version", "rows"))


def _row(view: ViewStatus, moving: bool) -> tuple[str, ...]:
    moved = ", ".join(
        f"{name} {version_text(name, has)}→{version_text(name, now)}"
        for name, (has, now) in view.pending.items()
    )
    state = view.problem or (f"behind: {moved}" if moved else "fresh")
    rows = "" if view.rows is None else f"{view.rows:,}"
    version = "" if view.version is None else str(view.version)
    moment = [view.moment or ""] * moving
    return (view.view, view.technique, view.policy, version, rows, *moment, state)
