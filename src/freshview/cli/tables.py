"""Tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> Table:
    """A table without lines; a column whose name ends with ``>`` is aligned to the right."""
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=None,
        pad_edge=False,
        header_style="bold",
        title=title or None,
        title_justify="left",
        title_style="bold",
    )
    for column in columns:
        right = column.endswith(">")
        made.add_column(column.removesuffix(">"), justify="right" if right else "left")
    for row in rows:
        made.add_row(*map(Text, row))
    return made
