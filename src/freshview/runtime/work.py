"""Rows gathered by the stages of one refresh, the keys they hold, and where the time went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from freshview.algebra.relations import Changes, Scan
from freshview.algebra.traverse import walk
from freshview.planner.bounds import Range
from freshview.planner.lower_relations import TableLeaf
from freshview.planner.plan import ChangePlan, Steps
from freshview.planner.strategy import Strategy
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.clock_ranges import column_ranges
from freshview.runtime.probing import distinct, variety
from freshview.storage.consolidate import consolidated, spark_identity
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

    def ends(self, held: Range) -> tuple[pa.Array, pa.Array] | None:
        """The lower and the upper ends of ranges of the column, None if one of them is not known."""
        row = self.leaves.get(held.leaf)
        if not isinstance(row, pa.Table):
            return None
        lows, highs = (
            pa.concat_arrays([row[pair[end].name].combine_chunks() for pair in held.limits])
            for end in (0, 1)
        )
        if lows.null_count or highs.null_count:
            return None
        return column_ranges(held.attribute.type, lows, highs)

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
    whole = pa.concat_tables(found).combine_chunks()
    keys = [spark_identity(whole.column(name).combine_chunks()) for name in key]
    places = pa.array(range(whole.num_rows), pa.int64())
    names = [str(number) for number in range(len(keys))]
    grouped = pa.table([*keys, places], [*names, "place"]).group_by(names)
    return whole.take(grouped.aggregate([("place", "min")])["place_min"])


def _of_leaf(rows: Rows, leaf: Changes) -> Rows:
    """A source's delta in the columns of one of its occurrences."""
    names = [a.name for a in leaf.columns]
    mine = picked(rows, [*names, COUNT])
    return consolidated(mine) if isinstance(mine, pa.Table) else mine
