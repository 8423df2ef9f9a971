"""Tables for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[str] = ()
) -> Table:
    """A table without lines; the columns named in `right` are aligned there."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(Text(column), justify="right" if column in right else "left")
    for row in rows:
        made.add_row(*map(Text, row))
    return made
