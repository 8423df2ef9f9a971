"""What interrupted work and old versions leave behind in a warehouse, found and removed.

Nothing here is needed by a view that exists: folders of views that were never finished or are
dropped, staged rows of transactions that never happened, temporary files, epochs older than the
retention, and data files that no younger version refers to. Base tables are not touched: they are not ours.

What somebody works on is left alone. Whoever creates or refreshes a view holds its lease, and
whoever applies a transaction holds that of transactions; each thing is looked at and removed under
the lease that its writer would hold. A lease that is not free is not waited for, nor taken from a
holder that is only silent: what it covers stays for the next time.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from freshview.errors import Busy, FreshviewError, RetentionTooShort
from freshview.runtime.catalog import Catalog, ViewEntry
from freshview.runtime.commit import Consumed, SourceVersion
from freshview.runtime.epochs import Epochs
from freshview.runtime.lease import lease, view_lease
from freshview.runtime.transactions import NEVER
from freshview.storage.native_handles import check_process

DEFAULT_HOURS = 168
"""A week, Delta's own default: as long can an earlier version or epoch of a view be read."""

LEAST_HOURS = 1
"""Readers hold no lease: a query that has begun needs the files of the version it began with."""

UNFINISHED_VIEW = "view without a definition"
STAGED_ROWS = "rows of a transaction that never happened"
TEMPORARY = "temporary file"
OLD_FILE = "data file of old versions"
OLD_EPOCH = "epoch of old versions"

_VIEW_FOLDER = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,62})-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or folder that nobody needs."""

    kind: str
    path: Path
    bytes: int

    def remove(self) -> None:
        """Remove it; it is no error if somebody else has."""
        try:
            if self.path.is_dir():
                shutil.rmtree(self.path)
            else:
                self.path.unlink()
        except FileNotFoundError:
            pass


def leftovers(
    catalog: Catalog, consumed: Callable[[ViewEntry], Consumed], hours: float = DEFAULT_HOURS
) -> Iterator[Leftover]:
    """Everything that can go and is older than so many hours.

    Each is safe to remove until the next one is asked for, while the lease that covers it is held.
    """
    if not (math.isfinite(hours) and hours >= LEAST_HOURS):
        raise RetentionTooShort(hours=hours, least=LEAST_HOURS)
    check_process()
    before = time.time() - hours * 3600
    yield from _unfinished_views(catalog, before)
    catalog.load()
    for entry in catalog.views():
        with _unless_in_use(view_lease(catalog.root, entry.name)) as free:
            catalog.load()
            if free and entry in catalog.views():
                needed = _needed_by_readers(catalog, entry, consumed) | _in_epochs(catalog, entry)
                yield from _old_files(Path(catalog.path(entry)), hours, before, needed)
    yield from _staged_rows(catalog.folder / "transactions", before)
    yield from _temporary(catalog.folder, ".*.tmp", before)
    for file in _superseded(Epochs(catalog.root)):
        if _newest(file) < before:
            yield Leftover(OLD_EPOCH, file, _size(file))


def _unfinished_views(catalog: Catalog, before: float) -> Iterator[Leftover]:
    """Folders that are named as a view's are, and that the catalog does not know."""
    for folder in _inside(catalog.root / "views"):
        named = _VIEW_FOLDER.fullmatch(folder.name)
        if named is None or folder.is_symlink() or not folder.is_dir():
            continue
        if _known(catalog, folder) or _newest(folder) >= before:
            continue
        with _unless_in_use(view_lease(catalog.root, named.group(1))) as free:
            catalog.load()
            if free and not _known(catalog, folder):
                yield Leftover(UNFINISHED_VIEW, folder, _size(folder))


def _known(catalog: Catalog, folder: Path) -> bool:
    """Whether a view or a table is there, or in there."""
    return any(Path(catalog.path(entry)).is_relative_to(folder) for entry in catalog)


def _needed_by_readers(
    catalog: Catalog, entry: ViewEntry, consumed: Callable[[ViewEntry], Consumed]
) -> set[SourceVersion]:
    """The versions of a view that the views above it have come to: their next deltas start there."""
    versions = set()
    for name in catalog.readers(entry.name):
        try:
            versions.add(consumed(catalog.view(name)).sources[entry.name])
        except (FreshviewError, KeyError):
            continue  # it has no readable state, and is going to be recomputed anyway
    return versions


def _in_epochs(catalog: Catalog, entry: ViewEntry) -> set[SourceVersion]:
    """The versions of a view in epochs that are kept however old they are."""
    epochs = Epochs(catalog.root)
    kept = [epochs.read(number) for number in _newest_of_each(epochs).values()]
    return {e.views[entry.name] for e in kept if e is not None and entry.name in e.views}


def _newest_of_each(epochs: Epochs) -> dict[frozenset[str], int]:
    """The newest epoch of each set of views: the last moment at which these agree."""
    newest = {}
    for number in epochs.numbers():
        epoch = epochs.read(number)
        if epoch is not None:
            newest[frozenset(epoch.views)] = number
    return newest


def _superseded(epochs: Epochs) -> list[Path]:
    """Epochs whose views are together in a newer one."""
    kept = set(_newest_of_each(epochs).values())
    return [epochs.file(number) for number in epochs.numbers() if number not in kept]


def _old_files(
    table: Path, hours: float, before: float, needed: set[SourceVersion]
) -> Iterator[Leftover]:
    """Data files of a view's table that only versions older than the retention refer to.

    Also those that a killed writer left without a commit, and its temporary files in the log.
    """
    try:
        opened = DeltaTable(str(table))
    except TableNotFoundError:
        return
    found = opened.vacuum(
        math.ceil(hours), dry_run=True, enforce_retention_duration=False, full=True
    )
    kept: set[str] = set()
    # Those of a view that had the name before are versions of another table.
    identity = str(opened.metadata().id)
    for version in {state.version for state in needed if state.table_id == identity}:
        try:
            kept.update(Path(uri).name for uri in DeltaTable(str(table), version).file_uris())
        except DeltaError:
            continue  # its log is gone, and so is what could be read by it
    for name in found:
        file = table / name
        # Other files, such as deletion vectors, are in use without being named as data files.
        if file.suffix == ".parquet" and file.name not in kept and _newest(file) < before:
            yield Leftover(OLD_FILE, file, _size(file))
    for pattern in ("_commit_*.tmp", ".*.tmp"):
        yield from _temporary(table / "_delta_log", pattern, before)


def _staged_rows(folder: Path, before: float) -> Iterator[Leftover]:
    if not folder.is_dir():
        return
    with _unless_in_use(folder / "lease") as free:
        # An intent that says never (`transactions.py`) names no rows.
        intents = [file for file in folder.glob("*.intent.json") if _size(file) != len(NEVER)]
        intended = {file.name.split(".")[0] for file in intents}
        for file in sorted([*folder.glob("*.parquet"), *folder.glob("*.trial")]):
            if free and file.name.split(".")[0] not in intended and _newest(file) < before:
                yield Leftover(STAGED_ROWS, file, _size(file))


def _temporary(folder: Path, pattern: str, before: float) -> Iterator[Leftover]:
    for file in sorted(folder.rglob(pattern)):
        if _newest(file) < before:
            yield Leftover(TEMPORARY, file, _size(file))


@contextmanager
def _unless_in_use(folder: Path) -> Iterator[bool]:
    """Hold a lease while the block runs; False, and no lease, if somebody else has it."""
    held = lease(folder, wait_s=0)
    try:
        held.__enter__()
    except Busy:
        yield False
        return
    try:
        yield True
    finally:
        held.__exit__(None, None, None)


def _inside(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _newest(path: Path) -> float:
    """When something in there was changed last; now, if it is going at this moment."""
    try:
        times = [file.lstat().st_mtime for file in (path, *path.rglob("*"))]
    except FileNotFoundError:
        return time.time()
    return max(times)


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
