"""The full recompute: Spark evaluates the view over its pinned sources and replaces its content."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from freshview.algebra.clock import is_clock
from freshview.algebra.relations import Relation, Scan
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import scans
from freshview.faults import point
from freshview.planner.lower import lower
from freshview.planner.lower_relations import TableLeaf
from freshview.planner.strategy import Strategy
from freshview.reasons import Reason
from freshview.rewrite.read_clock import fix_clock
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.clock import clock_rows, clocks_of, moment_text
from freshview.runtime.commit import Consumed, SourceVersion, commit_of, definition_of
from freshview.runtime.fetching import fetched, fits
from freshview.runtime.parts import Parts
from freshview.runtime.report import FULL, ViewReport
from freshview.storage.choose import Served
from freshview.storage.interface import picked

if TYPE_CHECKING:
    from freshview.runtime.refresh_run import Refresh


def stored_rows(parts: Parts, strategy: Strategy, vector: Mapping[str, SourceVersion]) -> DataFrame:
    """Every stored row of a view, computed from scratch over pinned sources."""
    clocks = {name: vector[name].version for name in clocks_of(vector)}
    rows = fix_clock(strategy.rows, clocks)

    def scan(leaf: Scan) -> DataFrame:
        version = vector[leaf.table].version
        if is_clock(leaf.table):
            return clock_row(parts, leaf, version)
        return parts.sources.scan(leaf.table, version, [a.name for a in leaf.attributes])

    return evaluated(parts, rows, strategy.stored, scan)


def evaluated(
    parts: Parts,
    relation: Relation,
    columns: Sequence[Attribute],
    scan: Callable[[Scan], DataFrame],
) -> DataFrame:
    """Columns of a relation over its tables, by Spark."""
    leaves: dict[TableLeaf, DataFrame] = {leaf: scan(leaf) for leaf in scans(relation)}
    lowered = lower(parts.spark(), relation, leaves)
    return picked(lowered.dataframe, [lowered.columns[a] for a in columns])


def clock_row(parts: Parts, scan: Scan, version: int) -> DataFrame:
    """The row of a clock, where it could not be made a constant."""
    (column,) = scan.attributes
    kind = f"{column.name} {column.type}"
    row: DataFrame = parts.spark().createDataFrame(clock_rows(scan.table, version), kind)
    return row


def recompute(
    parts: Parts,
    entry: ViewEntry,
    strategy: Strategy,
    consumed: Consumed,
    vector: Mapping[str, SourceVersion],
    reason: Reason,
    run: Refresh,
) -> ViewReport:
    """Overwrite the view with its value over the vector, in one commit.

    The types of its columns follow those of its sources.
    """
    started = time.perf_counter()
    rows = stored_rows(parts, strategy, vector)
    path = parts.catalog.path(entry)
    stored = parts.tables.state(path)
    few = fetched(parts, rows, vector, stored)
    consumed = replace(
        consumed, definition=definition_of(entry, strategy), layout=strategy.layout_name
    )
    commit = run.commit(entry, consumed, vector, FULL)
    point("refresh.before_commit")
    written = parts.tables.overwrite(path, few, commit, new_schema=not fits(rows, stored))
    point("refresh.after_commit")
    return _report(parts, entry, strategy, vector, written, reason, run, started)


def create(
    parts: Parts,
    entry: ViewEntry,
    strategy: Strategy,
    vector: Mapping[str, SourceVersion],
    run: Refresh,
    why: Reason | None = None,
) -> ViewReport:
    """Compute a view that has no backing table and write that, with its first commit."""
    started = time.perf_counter()
    rows = stored_rows(parts, strategy, vector)
    path, definition = parts.catalog.path(entry), definition_of(entry, strategy)
    commit = commit_of(
        entry, 1, vector, "created", definition=definition, layout=strategy.layout_name
    )
    few = fetched(parts, rows, vector)
    point("create.evaluated")
    written = parts.tables.create(path, few, commit=commit)
    point("create.written")
    new = Reason(
        "CREATED",
        entry.name,
        "the view is new",
        "change a table and refresh: only the change is computed",
    )
    reason = why or strategy.reason or new
    return _report(parts, entry, strategy, vector, written, reason, run, started)


def _report(
    parts: Parts,
    entry: ViewEntry,
    strategy: Strategy,
    vector: Mapping[str, SourceVersion],
    written: tuple[int, Served],
    reason: Reason,
    run: Refresh,
    started: float,
) -> ViewReport:
    version, served = written
    state = parts.tables.state(parts.catalog.path(entry), version)
    read = sum(parts.sources.state(n, vector[n].version).rows or 0 for n in entry.sources)
    run.source_rows[entry.name] = read
    return ViewReport(
        entry.name,
        FULL,
        strategy.technique.value,
        version,
        rows_read=read,
        rows_out=state.rows or 0,
        ms=(time.perf_counter() - started) * 1000,
        reason=reason.code,
        why=reason.why,
        served_by=served.by,
        moment=moment_text(vector),
    )
