"""Tables whose data files hold the rows as they stand: Spark can read these without asking Delta.

For each scan that Delta plans it computes the table's snapshot and filters its files, by three to
five Spark queries; on a table of a few files that is more work than the scan (half of the time of
a recompute over 600,000 rows). The native side knows the files of a version from its open handle,
so the engine's own scans give Spark the files. Wherever a row is more than what its file says
(deletion vectors, partition values, mapped names, padding), or Delta's own filtering of files may
pay (many files), Delta reads the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from freshview.storage import features as has
from freshview.storage.interface import TableState

MOST_FILES = 32
"""Above this number Spark lists files by a job of its own."""

_AS_THEY_STAND = frozenset(
    {
        has.APPEND_ONLY,
        has.CHANGE_DATA_FEED,
        has.CHECK,
        has.CLUSTERING,
        has.GENERATED,
        has.IDENTITY,
        has.IN_COMMIT_TIMESTAMP,
        has.INVARIANT,
        has.NESTED,
        has.ROW_TRACKING,
        has.TIMESTAMP,
        has.V2_CHECKPOINT,
    }
)
_TAKEN_LITERALLY = re.compile(r"[A-Za-z0-9_./+-]+")
"""Spark takes a path for a pattern and decodes it, unless there is nothing to decode in it."""


def hold_rows_as_they_stand(state: TableState) -> bool:
    """Whether a table is no more than the rows of a few files."""
    plain = state.features <= _AS_THEY_STAND and not state.partition_columns
    return plain and 0 < state.files <= MOST_FILES


def readable_files(folder: str, names: Iterable[str]) -> tuple[str, ...] | None:
    """The files in a form that Spark takes literally; None if one has no such form or is gone.

    Spark passes over files whose names say that they are hidden or being copied.
    """
    files = [Path(folder, name) for name in names]
    for file in files:
        hidden = file.name.startswith(("_", ".")) or file.name.endswith("._COPYING_")
        if hidden or not _TAKEN_LITERALLY.fullmatch(str(file)) or not file.is_file():
            return None
    return tuple(map(str, files))
