"""Generated Delta tables: written once, kept between runs, and copied by link for each use.

Delta never changes a data file in place, so a copy of a table can share the files of the original
and still go its own way from there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

PROPERTIES = {"delta.enableChangeDataFeed": "true"}
"""Of every generated table."""


def keep_table(table: Path, write: Callable[[Path], object]) -> None:
    """Have a table written, unless it is there; one that was interrupted is written anew."""
    if table.exists():
        return
    unfinished = table.with_name(f"{table.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    write(unfinished)
    unfinished.rename(table)


def copy_table(original: Path, copy: Path) -> None:
    """A Delta table of its own that shares the data files of another, where the disk allows it."""
    shutil.copytree(original, copy, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    if source.endswith(".parquet") and "_delta_log" not in Path(source).parts:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)
    else:
        shutil.copy2(source, target)
