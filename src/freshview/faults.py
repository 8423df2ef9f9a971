"""Named places where a test can make a process die, pause or fail. Elsewhere each is nothing.

`point("…")` stands between two steps that a crash must not tear apart. Outside of tests no handler
is set and it returns at once. `POINTS` names them all, so that a test can go through every one.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "catalog.before_upgrade",
    "catalog.upgrading",
    "catalog.before_write",
    "create.evaluated",
    "create.written",
    "create.catalogued",
    "create_table.written",
    "drop.catalogued",
    "refresh.pinning",
    "refresh.pinned",
    "refresh.stage",
    "refresh.before_commit",
    "refresh.after_commit",
    "refresh.between_views",
    "refresh.before_epoch",
    "refresh.before_log",
    "transaction.staged",
    "transaction.checked",
    "transaction.intended",
    "transaction.before_write",
    "transaction.table_written",
    "transaction.complete",
)

_handler: Callable[[str], None] | None = None


def install(handler: Callable[[str], None] | None) -> None:
    """Have a test's handler called at every point, or nothing again."""
    global _handler  # noqa: PLW0603 (one per process, by design)
    _handler = handler


def point(name: str) -> None:
    """A place where a test may interfere."""
    if _handler is not None:
        _handler(name)
