"""The storage interface: find rows, move rows, never compute values.

All semantics of a view are Spark's. What is left for the storage layer is small and is the same
for every technique: which rows changed between two versions of a table, which rows of a table have
these keys, and put this set of rows in by key, together with a record of what was consumed. Three
implementations answer it and one contract suite (`tests/storage/test_contract.py`) holds them to
the same bags:

- `native`: `deltalake`, in the driver, milliseconds, for what is small;
- `spark`: `delta-spark`, for what is large and for table features the native library cannot serve;
- `memory`: plain Python, for tests that need neither Delta nor a server.

`choose.py` decides between the first two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

import pyarrow as pa

from freshview.algebra.schema import quoted
from freshview.errors import StaleCommit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNT = "__n"
"""The signed count column of a delta, int64: +1 per inserted copy, -1 per deleted copy."""

METADATA_MARKER = "freshview"
"""The key under which our part of a commit's `userMetadata` JSON object lives."""

Kind = TypeVar("Kind")
Rows: TypeAlias = "pa.Table | DataFrame"
"""Native and memory give `pyarrow.Table`, Spark gives a `DataFrame`; every method accepts both
where its implementation can, and all accept `pyarrow.Table`."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What travels with a write, in the same Delta commit.

    The view's own commit carries what it consumed, so nothing else has to be trusted after a
    crash. `number` rises by one per write of `application`: a writer that finds another number
    than `number - 1` stored has been overtaken and must write nothing.
    """

    application: str
    number: int
    metadata: Mapping[str, object] = field(default_factory=dict)

    def user_metadata(self, mark: str = "") -> str:
        """The text stored as `userMetadata`: one JSON object holding our marker.

        `mark` tells one attempt to write this commit from another.
        """
        ours = {
            "application": self.application,
            "number": self.number,
            "metadata": dict(self.metadata),
        }
        return json.dumps(
            {METADATA_MARKER: ours | ({"mark": mark} if mark else {})}, sort_keys=True
        )

    @staticmethod
    def from_user_metadata(text: str | None) -> Commit | None:
        """The commit this text records, or None when it is not one of ours."""
        if not text or METADATA_MARKER not in text:
            return None
        try:
            stored = json.loads(text)
        except ValueError:
            return None
        ours = stored.get(METADATA_MARKER) if isinstance(stored, dict) else None
        if not isinstance(ours, dict):
            return None
        return Commit(str(ours["application"]), int(ours["number"]), dict(ours["metadata"]))


@dataclass(frozen=True, slots=True)
class TableState:
    """Facts about one version of one table, from the log only: no data file is opened."""

    path: str
    version: int
    table_id: str
    schema_json: str
    """Spark's StructType JSON of the visible schema (the metadata action's schemaString)."""
    arrow_schema: pa.Schema
    """Plain Arrow types: no string_view, binary_view or large variants."""
    rows: int | None
    """From file statistics, less deletion vectors; None when any file lacks them."""
    files: int
    bytes: int
    partition_columns: tuple[str, ...]
    features: frozenset[str]
    """Normalised names, see `features.py`."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The table's configuration."""


def check_number(path: str, commit: Commit, found: int | None) -> None:
    """Raise StaleCommit unless the commit follows the one that is stored (`found`).

    An application's first commit on a table is number 0 or 1.
    """
    first = found is None and commit.number in (0, 1)
    if not first and found != commit.number - 1:
        raise StaleCommit(
            path=path, application=commit.application, expected=commit.number, found=found
        )


class Storage(Protocol):
    """Versioned tables addressed by path. A version is Delta's: 0, 1, 2 and so on.

    Rows returned are bags; their order means nothing. Column names are matched exactly as the
    table spells them. `commit=None` writes without an exactly-once record.
    """

    name: str

    def exists(self, path: str) -> bool:
        """Whether a table is at this path."""
        ...

    def latest(self, path: str) -> int:
        """The newest version. Raises TableMissing when there is no table."""
        ...

    def state(self, path: str, version: int | None = None) -> TableState:
        """Facts about a version (the newest when None). Raises HistoryLost for a lost one."""
        ...

    def read(self, path: str, version: int, columns: Sequence[str] | None = None) -> Rows:
        """All rows of a version, in the named columns."""
        ...

    def changes(
        self, path: str, after: int, upto: int, columns: Sequence[str] | None = None
    ) -> Rows:
        """The bag difference of version `upto` minus version `after`, as a delta.

        The columns asked for plus `COUNT`. Counts may be consolidated or not; summed per row they
        are the exact difference. `after > upto` gives the opposite difference. Raises HistoryLost
        when it cannot be known: files vacuumed, log cleaned, the table replaced, or the columns
        asked for changed between the versions.
        """
        ...

    def lookup(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        keys: pa.Array,
        limit: int | None = None,
    ) -> Rows:
        """All rows whose `key` is among `keys`, each once however often the key is repeated.

        Equality is Spark's `<=>`: a null in `keys` asks for the rows with a NULL key, NaN equals
        NaN, -0.0 equals 0.0. More than `limit` rows raises TooManyRows, having held at most
        `limit` + 1 of them.
        """
        ...

    def between(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        lows: pa.Array,
        highs: pa.Array,
        limit: int | None = None,
    ) -> Rows:
        """All rows whose `key` is from `lows[i]` to `highs[i]` for some i, both included, each once.

        For integers, dates and timestamps. A NULL key is in no range, and no end is NULL. More than
        `limit` rows raises TooManyRows, as in `lookup`.
        """
        ...

    def create(
        self,
        path: str,
        rows_or_schema: Rows | pa.Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        commit: Commit | None = None,
    ) -> int:
        """Make a table where none is and return its version. Raises TableExists otherwise.

        The table has plain features only (no deletion vectors), so that native serves it whole.
        """
        ...

    def overwrite(
        self, path: str, rows: Rows, commit: Commit | None, *, new_schema: bool = False
    ) -> int:
        """Replace all rows. Returns the new version.

        The schema stays, or with `new_schema` becomes that of the rows; it is the same table
        either way, and its earlier versions keep theirs.
        """
        ...

    def append(self, path: str, rows: Rows | None, commit: Commit | None) -> int:
        """Add rows. `rows=None` adds nothing and only records progress. Returns the version."""
        ...

    def apply(
        self,
        path: str,
        key: Sequence[str],
        upserts: Rows,
        deletes: Rows,
        commit: Commit | None,
    ) -> int:
        """Set rows by key, in ONE commit, and return its version.

        For each row of `upserts`: the row with that key (null-safe) becomes it, or it is inserted.
        For each row of `deletes` (only its key columns matter): the row with that key goes, if it
        is there. No arithmetic: values are stored as given. A key may occur once over both inputs
        (DuplicateKey otherwise). An apply that changes nothing still records its commit.
        """
        ...

    def number(self, path: str, application: str) -> int | None:
        """The number of an application's newest commit, which survives any log cleanup."""
        ...

    def identity(self, path: str, version: int) -> str:
        """What tells the commit of a version from any other, empty when its log file is gone.

        A table that is put back from a copy and written again has the same versions once more.
        """
        ...

    def last_commit(
        self, path: str, application: str, number: int | None = None
    ) -> tuple[int, Commit] | None:
        """The newest (version, commit) of an application, None when it never wrote here.

        With a number the commit that has it, None when that was not written yet.
        The transaction number survives checkpoints, the metadata only as long as the commit's JSON
        file: HistoryLost when the number is known but its metadata is gone.
        """
        ...


def picked(rows: Kind, columns: Sequence[str]) -> Kind:
    """The rows, a table or a DataFrame, in these columns, whatever their names hold."""
    names = columns if isinstance(rows, pa.Table) else map(quoted, columns)
    return cast("Kind", cast("DataFrame", rows).select(list(names)))
