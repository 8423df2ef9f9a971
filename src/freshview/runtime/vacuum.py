"""What interrupted work and old versions leave behind in a warehouse, found and removed.

Nothing here is needed by a view that exists: folders of views that were never finished or are
dropped, staged rows of transactions that never happened, temporary files, and data files that no
version younger than the retention refers to. Base tables are not touched: they are not ours.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from freshview.runtime.catalog import Catalog

DEFAULT_HOURS = 168
"""A week, Delta's own default: as long can an earlier version or epoch of a view be read."""

UNFINISHED_VIEW = "view without a definition"
STAGED_ROWS = "rows of a transaction that never happened"
TEMPORARY = "temporary file"
OLD_FILE = "data file of old versions"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or folder that nobody needs."""

    kind: str
    path: Path
    bytes: int

    def remove(self) -> None:
        """Remove it; it is no error if somebody else has."""
        if self.path.is_dir():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)


def leftovers(catalog: Catalog, hours: float = DEFAULT_HOURS) -> Iterator[Leftover]:
    """Everything that can go and is older than so many hours."""
    before = time.time() - hours * 3600
    views = {Path(catalog.path(entry)) for entry in catalog.views()}
    for folder in _inside(catalog.root / "views"):
        if folder not in views and _newest(folder) < before:
            yield Leftover(UNFINISHED_VIEW, folder, _size(folder))
    for path in views:
        yield from _old_files(path, hours, before)
    state = catalog.folder
    intended = {file.name.split(".")[0] for file in state.glob("transactions/*.intent.json")}
    for file in state.glob("transactions/*.parquet"):
        if file.name.split(".")[0] not in intended and _newest(file) < before:
            yield Leftover(STAGED_ROWS, file, _size(file))
    for file in state.rglob(".*.tmp"):
        if _newest(file) < before:
            yield Leftover(TEMPORARY, file, _size(file))


def _old_files(table: Path, hours: float, before: float) -> Iterator[Leftover]:
    """Data files of a view's table that only versions older than the retention refer to.

    Also those that a killed writer left without a commit.
    """
    found = DeltaTable(str(table)).vacuum(
        round(hours), dry_run=True, enforce_retention_duration=False, full=True
    )
    for name in found:
        file = table / name
        if file.is_file() and file.stat().st_mtime < before:
            yield Leftover(OLD_FILE, file, _size(file))


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _newest(path: Path) -> float:
    """When something in there was changed last; now, if it is going at this moment."""
    try:
        times = [file.stat().st_mtime for file in (path, *path.rglob("*"))]
    except FileNotFoundError:
        return time.time()
    return max(times)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
