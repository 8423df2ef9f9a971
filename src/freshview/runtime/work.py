"""Rows gathered by the stages of one refresh, the keys they hold, and where the time went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from freshview.algebra.relations import Changes, Given, Scan
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import walk
from freshview.planner.bounds import Origin, Range
from freshview.planner.lookups import Probe, Probes
from freshview.planner.lower import TableLeaf
from freshview.planner.plan import ChangePlan, Steps
from freshview.planner.strategy import Strategy
from freshview.runtime.catalog import ViewEntry
from freshview.storage.consolidate import consolidated
from freshview.storage.interface import COUNT, Rows, picked


@dataclass(slots=True)
class Work:
    """What one refresh has at hand."""

    entry: ViewEntry
    strategy: Strategy
    change: ChangePlan
    steps: Steps
    leaves: dict[TableLeaf, Rows] = field(default_factory=dict)
    touched: Rows | None = None
    reads: Counter[str] = field(default_factory=Counter)
    stages_ms: dict[str, float] = field(default_factory=dict)
    cached: list[DataFrame] = field(default_factory=list)

    @property
    def rows_read(self) -> int:
        return self.reads.total()

    def read(self, leaf: Scan, rows: int) -> None:
        """Count rows that were read of a table, or of the view itself."""
        self.reads[leaf.table] += rows

    def feed(self, deltas: Mapping[str, Rows]) -> None:
        """Put the deltas where the steps read them."""
        for step in self.steps.steps:
            for leaf in walk(step.relation):
                if isinstance(leaf, Changes) and leaf not in self.leaves:
                    self.leaves[leaf] = _of_leaf(deltas[leaf.table], leaf)

    def is_idle(self, needs: Collection[Changes | Given]) -> bool:
        """Whether one of these leaves has turned out to be empty."""
        return any(
            isinstance(rows := self.leaves.get(leaf), pa.Table) and rows.num_rows == 0
            for leaf in needs
        )

    def best_keys(self, probes: Probes) -> tuple[Probe, pa.Array] | None:
        """The probe to use, and its keys.

        Of several ways to the same column the one with the fewest keys, for each of them reaches
        every row that matters; of several columns the one that tells rows apart best.
        """
        fewest: dict[Attribute, tuple[int, Probe, pa.Array]] = {}
        for probe in probes:
            values = self._values(probe)
            if values is not None:
                keys = distinct(values)
                if probe.key not in fewest or variety(keys) < fewest[probe.key][0]:
                    fewest[probe.key] = variety(keys), probe, keys
        if not fewest:
            return None
        _, probe, keys = max(fewest.values(), key=itemgetter(0))
        if probe.null_safe and probe.origin.padded and not keys.null_count:
            keys = pa.concat_arrays([keys, pa.nulls(1, keys.type)])
        return probe, keys if probe.null_safe else keys.drop_null()

    def ends(self, held: Range) -> tuple[pa.Array, pa.Array] | None:
        """The lower and the upper ends of ranges, None if one of them is not known."""
        row = self.leaves.get(held.leaf)
        if not isinstance(row, pa.Table):
            return None
        lows, highs = (
            pa.concat_arrays([row[pair[end].name].combine_chunks() for pair in held.limits])
            for end in (0, 1)
        )
        return None if lows.null_count or highs.null_count else (lows, highs)

    def _values(self, probe: Probe) -> pa.ChunkedArray | None:
        """The values of a probe's origin, or None if it cannot be used."""
        for origin in probe.without_null:
            values = self._column(origin)
            if values is None or values.null_count or origin.padded:
                return None
        return self._column(probe.origin)

    def _column(self, origin: Origin) -> pa.ChunkedArray | None:
        parts: list[pa.ChunkedArray] = []
        for leaf, attribute in origin.columns:
            rows = self.leaves.get(leaf)
            if not isinstance(rows, pa.Table):
                return None
            column = rows[attribute.name]
            parts.append(column.cast(parts[0].type) if parts else column)
        if not parts:
            return None
        chunks = [chunk for part in parts for chunk in part.chunks]
        return pa.chunked_array(chunks, parts[0].type)

    def release(self) -> None:
        """Let go of what Spark keeps in memory for this view."""
        for frame in self.cached:
            frame.unpersist()

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1000
            self.stages_ms[stage] = self.stages_ms.get(stage, 0.0) + spent


def stored_probes(work: Work) -> list[tuple[str, pa.Array]] | None:
    """For each way to stored rows that matter, a column of theirs and the values to look up.

    None if a change table is too large to be here.
    """
    found = []
    for keys in work.change.keys:
        rows = work.leaves.get(keys.leaf)
        if not isinstance(rows, pa.Table):
            return None
        if keys.where is not None:
            rows = rows.filter(rows[keys.where.name])
        for kept in keys.unless:
            rows = rows.filter(pc.invert(pc.fill_null(rows[kept.name], False)))
        pairs = [(key.name, distinct(rows[column.name])) for key, column in keys.columns]
        found.append(max(pairs, key=lambda pair: variety(pair[1])))
    return found


def each_once(found: Sequence[Rows], key: list[str]) -> Rows:
    """The rows of several lookups, all here or all in Spark; those found more than once only once."""
    first, *more = found
    if not more:
        return first
    if not isinstance(first, pa.Table):
        return reduce(DataFrame.unionAll, found).dropDuplicates(key)
    whole = pa.concat_tables(found)
    places = pa.array(range(whole.num_rows), pa.int64())
    firsts = (
        whole.select(key)
        .append_column("__place", places)
        .group_by(key)
        .aggregate([("__place", "min")])
    )
    return whole.take(firsts["__place_min"])


def distinct(values: pa.ChunkedArray) -> pa.Array:
    """Each value once; nested ones as they are, since Arrow cannot compare them."""
    return values.combine_chunks() if pa.types.is_nested(values.type) else pc.unique(values)


def variety(keys: pa.Array) -> int:
    """How well distinct keys tell rows apart; nested ones come last: only Spark can look them up."""
    return 0 if pa.types.is_nested(keys.type) else len(keys)


def _of_leaf(rows: Rows, leaf: Changes) -> Rows:
    """A source's delta in the columns of one of its occurrences."""
    names = [a.name for a in leaf.columns]
    mine = picked(rows, [*names, COUNT])
    return consolidated(mine) if isinstance(mine, pa.Table) else mine
