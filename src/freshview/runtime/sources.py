"""Rows of what views read, tables, other views and the clock alike, as plain bags.

A counting view stores a row once with its number of copies; whoever reads it as a source gets the
copies. Hidden columns of a view are never part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)

from freshview.algebra.clock import is_clock
from freshview.algebra.schema import EXTENT_COUNT_NAME, quoted
from freshview.runtime.catalog import Catalog, ViewEntry
from freshview.runtime.clock import (
    Clock,
    clock_changes,
    clock_pin,
    clock_state,
    moment_of,
    pinned_clock,
    system_clock,
)
from freshview.runtime.commit import SourceVersion
from freshview.storage.choose import Tables
from freshview.storage.interface import COUNT, Rows, TableState


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources by name, at versions of their own Delta tables."""

    catalog: Catalog
    tables: Tables
    clock: Clock = system_clock

    def path(self, name: str) -> str:
        return self.catalog.path(self.catalog.get(name))

    def latest(self, name: str) -> int:
        if is_clock(name):
            return pinned_clock(name, moment_of(self.clock)).version
        return self.tables.latest(self.path(name))

    def state(self, name: str, version: int) -> TableState:
        if is_clock(name):
            return clock_state(name, version)
        return self.tables.state(self.path(name), version)

    def identity(self, name: str, version: int) -> str:
        """What tells the commit of a version from another one with its number."""
        if is_clock(name):
            return clock_pin(version).commit
        return self.tables.identity(self.path(name), version)

    def pinned(self, name: str, version: int | None = None) -> SourceVersion:
        """A version of a source, the newest one unless told."""
        if version is None:
            version = self.latest(name)
        if is_clock(name):
            return clock_pin(version)
        table = self.state(name, version).table_id
        return SourceVersion(version, table, self.identity(name, version))

    def changes(self, name: str, after: int, upto: int, columns: Sequence[str]) -> Rows:
        """The source's delta in these columns, with signed counts."""
        if is_clock(name):
            return clock_changes(name, after, upto)
        wanted = self._stored(name, upto, columns)
        rows = self.tables.changes(self.path(name), after, upto, wanted)[0]
        return _signed(rows, columns) if self.is_counted(name, upto) else rows

    def lookup(
        self,
        name: str,
        version: int,
        columns: Sequence[str],
        key: str,
        keys: pa.Array,
        limit: int | None = None,
    ) -> Rows:
        """The source's rows whose key is among ``keys``; a DataFrame where they are too many.

        With a limit, more stored rows than that raise TooManyRows.
        """
        wanted, path = self._stored(name, version, columns), self.path(name)
        rows = self.tables.lookup(path, version, wanted, key, keys, limit)[0]
        if isinstance(rows, pa.Table) and self._too_many(name, version, rows):
            rows = self.tables.spark.lookup(path, version, wanted, key, keys)
        return self._each(name, version, rows, columns)

    def between(
        self, name: str, version: int, columns: Sequence[str], key: str, ends: tuple[pa.Array, ...]
    ) -> Rows:
        """The source's rows whose key lies in a range; a DataFrame where they are too many."""
        wanted, path = self._stored(name, version, columns), self.path(name)
        rows = self.tables.between(path, version, wanted, key, *ends)[0]
        if isinstance(rows, pa.Table) and self._too_many(name, version, rows):
            rows = self.tables.spark.between(path, version, wanted, key, *ends)
        return self._each(name, version, rows, columns)

    def scan(self, name: str, version: int, columns: Sequence[str]) -> DataFrame:
        """The whole source in these columns, for Spark to evaluate a view over."""
        rows = self.tables.scan(self.path(name), version, self._stored(name, version, columns))
        return self._frame(name, version, rows, columns)

    def read(self, name: str, version: int) -> DataFrame:
        """The whole source, read by Delta alone: for users, and for proofs of what we keep."""
        entry = self.catalog.get(name)
        columns = entry.columns if isinstance(entry, ViewEntry) else None
        wanted = None if columns is None else self._stored(name, version, columns)
        rows = self.tables.spark.read(self.path(name), version, wanted)
        return self._frame(name, version, rows, columns or ())

    def _frame(self, name: str, version: int, rows: Rows, columns: Sequence[str]) -> DataFrame:
        frame = self._each(name, version, rows, columns)
        assert isinstance(frame, DataFrame)
        return frame

    def _each(self, name: str, version: int, rows: Rows, columns: Sequence[str]) -> Rows:
        return _copies(rows, columns) if self.is_counted(name, version) else rows

    def _too_many(self, name: str, version: int, rows: pa.Table) -> bool:
        """Whether the copies that the counts stand for are more than may come to the driver."""
        if not self.is_counted(name, version):
            return False
        copies = pc.sum(rows[EXTENT_COUNT_NAME].cast(pa.decimal128(38))).as_py() or 0
        return bool(copies > self.tables.limits.lookup_rows)

    def is_counted(self, name: str, version: int) -> bool:
        """Whether the source is a view that stores each row with its number of copies.

        Its table says so: another type of a source's column can change how a view is kept.
        """
        is_view = not is_clock(name) and isinstance(self.catalog.get(name), ViewEntry)
        return is_view and EXTENT_COUNT_NAME in self.state(name, version).arrow_schema.names

    def _stored(self, name: str, version: int, columns: Sequence[str]) -> list[str]:
        return [*columns, EXTENT_COUNT_NAME] if self.is_counted(name, version) else list(columns)


def _signed(rows: Rows, columns: Sequence[str]) -> Rows:
    """A stored row with count 5 inserted is five rows inserted."""
    if isinstance(rows, pa.Table):
        signed = pc.multiply_checked(rows[EXTENT_COUNT_NAME], rows[COUNT])
        shown = rows.select(list(columns)).append_column(COUNT, signed)
        return shown.filter(pc.not_equal(signed, 0))
    signed_count = (F.col(EXTENT_COUNT_NAME) * F.col(COUNT)).alias(COUNT)
    shown = rows.where(F.col(EXTENT_COUNT_NAME) > 0)
    return shown.select(*[F.col(quoted(c)) for c in columns], signed_count)


def _copies(rows: Rows, columns: Sequence[str]) -> Rows:
    """Each stored row as often as its count says."""
    if isinstance(rows, pa.Table):
        counts = rows[EXTENT_COUNT_NAME].to_numpy()
        plain = rows.select(list(columns))
        if (counts == 1).all():
            return plain
        return plain.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    copies = F.explode(F.sequence(F.lit(1).cast("bigint"), F.col(EXTENT_COUNT_NAME)))
    kept = [F.col(quoted(c)) for c in columns]
    shown = rows.where(F.col(EXTENT_COUNT_NAME) > 0)
    return shown.select(*kept, copies.alias("__copy")).select(*kept)
