"""The incremental refresh of one view: runs the stages that the planner lists."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from freshview.algebra.relations import Changes, Relation, Scan
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import walk
from freshview.faults import point
from freshview.planner.lookups import Probe, Probes
from freshview.planner.lower import TableLeaf
from freshview.planner.plan import (
    ChangePlan,
    Limits,
    RefreshPlan,
    Source,
    change_plan,
    refresh_plan,
    source_columns,
)
from freshview.planner.small_plans import Bound
from freshview.planner.stages import (
    Advance,
    ApplyRows,
    EvaluateChange,
    EvaluateRefresh,
    LookUpRows,
    ReadChanges,
    ReadStored,
    Recompute,
    ScanRows,
    Stage,
)
from freshview.planner.strategy import Strategy
from freshview.reasons import Reason
from freshview.runtime.cancellation import check
from freshview.runtime.catalog import Policy, ViewEntry
from freshview.runtime.commit import Consumed, SourceVersion
from freshview.runtime.fetching import rows_that_fit
from freshview.runtime.outcome import outcome
from freshview.runtime.parts import Parts
from freshview.runtime.report import ADVANCED, INCREMENTAL, ViewReport
from freshview.storage.consolidate import consolidated
from freshview.storage.interface import COUNT, Rows, picked

if TYPE_CHECKING:
    from freshview.runtime.refresh import Refresh


class Preferred(Exception):
    """A recompute is the way to go, for a reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Handover:
    """A refreshed view's delta between two of its versions, for the views that read it."""

    after: int
    upto: int
    rows: Rows
    release: Callable[[], object]


@dataclass(slots=True)
class Work:
    """Rows gathered by the stages of one refresh, and where its time went."""

    entry: ViewEntry
    strategy: Strategy
    change: ChangePlan
    deltas: Mapping[str, Rows]
    leaves: dict[TableLeaf, Rows] = field(default_factory=dict)
    known: dict[int, dict[Attribute, pa.ChunkedArray]] = field(default_factory=dict)
    changed_rows: Rows | None = None
    touched: Rows | None = None
    rows_read: int = 0
    stages_ms: dict[str, float] = field(default_factory=dict)
    cached: list[DataFrame] = field(default_factory=list)

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


class IncrementalRefresh:
    """Runs the stages of incremental refreshes, keeping what depends on definitions alone."""

    def __init__(self, parts: Parts, limits: Limits) -> None:
        self.parts = parts
        self.limits = limits
        self._plans: dict[tuple[int, frozenset[str]], tuple[Strategy, ChangePlan | None]] = {}

    def run(
        self,
        entry: ViewEntry,
        strategy: Strategy,
        consumed: Consumed,
        vector: Mapping[str, SourceVersion],
        policy: Policy,
        run: Refresh,
    ) -> ViewReport:
        """Refresh the view to the vector, or raise Preferred when a recompute is due.

        It is when the view has no incremental rule, when AUTO finds it cheaper, or when an
        expression fails. Changes that do not touch the view's columns cost neither way more than
        a commit.
        """
        started = time.perf_counter()
        deltas = self.deltas(strategy, consumed, vector, run.handed)
        if strategy.reason is not None and any(
            not isinstance(d, pa.Table) for d in deltas.values()
        ):
            raise Preferred(strategy.reason)
        read_ms = (time.perf_counter() - started) * 1000
        counts = {name: row_count(rows, self.limits.delta_rows) for name, rows in deltas.items()}
        arrived = {name: rows for name, rows in deltas.items() if counts[name]}
        if arrived and strategy.reason is not None:
            raise Preferred(strategy.reason)
        change = self.change(strategy, frozenset(arrived)) if arrived else None
        rows_in = sum(counts.values())
        if change is None:
            commit = run.commit(entry, consumed, vector, ADVANCED)
            point("refresh.before_commit")
            version, _ = self.parts.tables.append(self.parts.catalog.path(entry), None, commit)
            point("refresh.after_commit")
            spent = (time.perf_counter() - started) * 1000
            return ViewReport(
                entry.name, ADVANCED, entry.technique, version, rows_in=rows_in, ms=spent
            )
        plan = self.plan(entry, strategy, consumed, vector, counts, change)
        everything = sum(self._rows(name, source) for name, source in vector.items())
        run.source_rows[entry.name] = everything
        if policy is Policy.AUTO and plan.costs.prefers_full:
            raise Preferred(cheaper(plan))
        work = Work(entry, strategy, change, arrived)
        work.stages_ms["read changes"] = read_ms
        self._feed(work)
        version = self._run_stages(plan, work, consumed, vector, run)
        assert work.touched is not None
        return ViewReport(
            entry.name,
            INCREMENTAL,
            entry.technique,
            version,
            rows_in=rows_in,
            rows_read=work.rows_read,
            rows_out=row_count(work.touched, None),
            ms=(time.perf_counter() - started) * 1000,
            incremental_ms=plan.costs.incremental_ms,
            full_ms=plan.costs.full_ms,
            served_by="native" if isinstance(work.touched, pa.Table) else "spark",
            stages_ms=work.stages_ms,
        )

    def _run_stages(
        self,
        plan: RefreshPlan,
        work: Work,
        consumed: Consumed,
        vector: Mapping[str, SourceVersion],
        run: Refresh,
    ) -> int:
        """Run the stages in order; the version of the view's commit.

        A term pairs changed rows of one table with rows that another is about to lose or has just
        gained, so an expression may meet a pair that is in no state of the view and fail on it, as
        a division by zero does. Nothing is written by then, and only a recompute can tell.
        """
        version = -1
        try:
            for stage in plan.stages:
                made = self._stage(stage, work, consumed, vector, run)
                version = version if made is None else made
        except PySparkException as error:
            work.release()
            raise Preferred(_failed(work.entry, error)) from error
        except BaseException:
            work.release()
            raise
        return version

    def deltas(
        self,
        strategy: Strategy,
        consumed: Consumed,
        vector: Mapping[str, SourceVersion],
        handed: Mapping[str, Handover],
    ) -> dict[str, Rows]:
        """The changed rows of every source that moved, in the columns that the view reads."""
        found = {}
        for name, source in vector.items():
            before = consumed.sources[name].version
            if before == source.version:
                continue
            columns = source_columns(strategy, name)
            handover = handed.get(name)
            if handover is not None and (handover.after, handover.upto) == (before, source.version):
                rows = picked(handover.rows, [*columns, COUNT])
            else:
                rows = self.parts.sources.changes(name, before, source.version, columns)
            found[name] = consolidated(rows) if isinstance(rows, pa.Table) else rows
        return found

    def change(self, strategy: Strategy, changed: frozenset[str]) -> ChangePlan | None:
        """The derived expressions, kept per strategy and set of changed sources."""
        key = (id(strategy), changed)
        if key not in self._plans:
            self._plans[key] = (strategy, change_plan(strategy, changed))
        return self._plans[key][1]

    def plan(
        self,
        entry: ViewEntry,
        strategy: Strategy,
        consumed: Consumed,
        vector: Mapping[str, SourceVersion],
        counts: Mapping[str, int],
        change: ChangePlan,
        sizes_at: Mapping[str, SourceVersion] | None = None,
    ) -> RefreshPlan:
        """The stages and costs of this refresh; sizes are those at the vector unless told."""
        sized = sizes_at or vector
        sources = {
            name: Source(
                name,
                consumed.sources[name].version,
                source.version,
                self._rows(name, sized[name]),
                counts.get(name, 0),
            )
            for name, source in vector.items()
        }
        view_rows = self.parts.tables.state(self.parts.catalog.path(entry)).rows or 0
        last = self.parts.log.recomputes().get(entry.name)
        return refresh_plan(
            strategy, change, sources, consumed.version, view_rows, self.limits, last
        )

    def _rows(self, name: str, source: SourceVersion) -> int:
        return self.parts.sources.state(name, source.version).rows or 0

    def _feed(self, work: Work) -> None:
        """Put the deltas where the terms read them."""
        for term in work.change.terms:
            rows = _of_leaf(work.deltas[term.delta.table], term.delta)
            work.leaves[term.delta] = rows
            if isinstance(rows, pa.Table):
                known = {a: rows[a.name] for a in term.delta.columns}
                work.known[term.number] = known

    def _stage(
        self,
        stage: Stage,
        work: Work,
        consumed: Consumed,
        vector: Mapping[str, SourceVersion],
        run: Refresh,
    ) -> int | None:
        point("refresh.stage")
        check()
        match stage:
            case ReadChanges():
                return None
            case LookUpRows():
                with work.timed("look up"):
                    self._look_up(stage, work)
            case ScanRows(leaf, version):
                work.leaves[leaf] = self._scan(leaf, version)
            case EvaluateChange(relation, leaf):
                with work.timed("evaluate"):
                    work.changed_rows = self._evaluated("change", relation, work)
                    work.leaves = {leaf: work.changed_rows}
            case ReadStored():
                with work.timed("read view"):
                    self._read_stored(stage, work)
            case EvaluateRefresh(relation):
                with work.timed("evaluate"):
                    variant = "refresh" if work.changed_rows is None else "large"
                    work.touched = self._evaluated(variant, relation, work)
            case ApplyRows():
                with work.timed("apply"):
                    return self._apply(work, consumed, vector, run)
            case Advance() | Recompute():
                raise AssertionError("not a stage of an incremental refresh")
            case _:
                assert_never(stage)
        return None

    def _look_up(self, stage: LookUpRows, work: Work) -> None:
        leaf, known = stage.leaf, work.known.get(stage.leaf.term, {})
        probe = _best(stage.probes, known)
        if probe is None:
            work.leaves[leaf] = self._scan(leaf, stage.version)
            return
        keys = _keys(known[probe.source], probe)
        columns = [a.name for a in leaf.attributes]
        rows = self.parts.sources.lookup(leaf.table, stage.version, columns, probe.key.name, keys)
        work.leaves[leaf] = rows
        if isinstance(rows, pa.Table):
            work.rows_read += rows.num_rows
            known.update({a: rows[a.name] for a in leaf.attributes})

    def _scan(self, leaf: Scan, version: int) -> DataFrame:
        columns = [a.name for a in leaf.attributes]
        return self.parts.sources.scan(leaf.table, version, columns)

    def _read_stored(self, stage: ReadStored, work: Work) -> None:
        """The stored rows: all of a small view, else those with a key in the change table."""
        leaf = stage.leaf
        columns = [a.name for a in leaf.attributes]
        path = self.parts.catalog.path(work.entry)
        tables = self.parts.tables
        if not stage.by_key:
            rows = tables.read(path, stage.version, columns)[0]
        elif isinstance(work.changed_rows, pa.Table):
            key, keys = _stored_probe(work.change, work.strategy, work.changed_rows)
            rows = tables.lookup(path, stage.version, columns, key, keys)[0]
        else:
            rows = tables.spark.read(path, stage.version, columns)
        if isinstance(rows, pa.Table):
            work.rows_read += rows.num_rows
        work.leaves[leaf] = rows

    def _evaluated(self, variant: str, relation: Relation, work: Work) -> Rows:
        """The relation by Spark; brought to the driver when it is small."""
        version = (variant, id(work.strategy), tuple(sorted(work.deltas)))
        rows = self.parts.evaluator.evaluate(
            work.entry,
            version,
            relation,
            _read_by(relation, work.leaves),
            Bound(self.limits.delta_rows, self.limits.delta_bytes),
        )
        if isinstance(rows, pa.Table):
            return rows
        kept = rows.persist()
        work.cached.append(kept)
        local = rows_that_fit(kept, self.limits.delta_rows, self.limits.delta_bytes)
        return kept if local is None else local

    def _apply(
        self, work: Work, consumed: Consumed, vector: Mapping[str, SourceVersion], run: Refresh
    ) -> int:
        assert work.touched is not None
        result = outcome(work.strategy, work.touched)
        commit = run.commit(work.entry, consumed, vector, INCREMENTAL)
        key = [a.name for a in work.strategy.key]
        path = self.parts.catalog.path(work.entry)
        point("refresh.before_commit")
        version, _ = self.parts.tables.apply(path, key, result.upserts, result.deletes, commit)
        point("refresh.after_commit")
        run.handed[work.entry.name] = Handover(
            consumed.version, version, result.delta, work.release
        )
        return version


def row_count(rows: Rows, limit: int | None) -> int:
    """The number of rows; a DataFrame is counted only as far as one past the limit."""
    if isinstance(rows, pa.Table):
        return int(rows.num_rows)
    return rows.count() if limit is None else rows.limit(max(limit, 0) + 1).count()


def _of_leaf(rows: Rows, leaf: Changes) -> Rows:
    """A source's delta in the columns of one of its occurrences."""
    names = [a.name for a in leaf.columns]
    mine = picked(rows, [*names, COUNT])
    return consolidated(mine) if isinstance(mine, pa.Table) else mine


def _best(probes: Probes, known: Mapping[Attribute, pa.ChunkedArray]) -> Probe | None:
    """The probe with the most distinct keys: its column tells rows apart best."""
    usable = [probe for probe in probes if probe.source in known]
    if len(usable) <= 1:
        return usable[0] if usable else None
    return max(usable, key=lambda probe: _variety(known[probe.source]))


def _keys(values: pa.ChunkedArray, probe: Probe) -> pa.Array:
    keys = _distinct(values)
    return keys if probe.null_safe else keys.drop_null()


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    """Each value once; nested ones as they are, since Arrow cannot compare them."""
    return values.combine_chunks() if pa.types.is_nested(values.type) else pc.unique(values)


def _variety(values: pa.ChunkedArray) -> int:
    """How well a column tells rows apart; a nested one comes last, as only Spark can look it up."""
    return 0 if pa.types.is_nested(values.type) else len(pc.unique(values))


def _stored_probe(change: ChangePlan, strategy: Strategy, rows: pa.Table) -> tuple[str, pa.Array]:
    """A key column of the stored view and the values the change table has for it."""
    group = strategy.layout.group if strategy.layout is not None else strategy.key
    pairs = []
    for key, attribute in zip(strategy.key, group, strict=True):
        place = change.relation.attributes.index(attribute)
        pairs.append((key.name, rows[change.change_leaf.attributes[place].name]))
    name, values = max(pairs, key=lambda pair: _variety(pair[1]))
    return name, _distinct(values)


def _read_by(relation: Relation, leaves: Mapping[TableLeaf, Rows]) -> dict[TableLeaf, Rows]:
    wanted = [node for node in walk(relation) if isinstance(node, Scan | Changes)]
    return {leaf: leaves[leaf] for leaf in dict.fromkeys(wanted)}


def _failed(entry: ViewEntry, error: PySparkException) -> Reason:
    return Reason(
        "EVALUATION_FAILED",
        entry.name,
        # Not the whole text: it quotes values of rows, and reasons are logged.
        f"an expression failed while the changes were evaluated: {error.getCondition()}",
        "make the expression total, with try_divide, try_cast or nullif, to stay incremental",
    )


def cheaper(plan: RefreshPlan) -> Reason:
    """The reason why AUTO recomputes."""
    costs = plan.costs
    return Reason(
        "RECOMPUTE_CHEAPER",
        plan.strategy.view,
        f"incremental is estimated at {costs.incremental_ms:.0f} ms, a recompute at"
        f" {costs.full_ms:.0f} ms",
        "set the policy to INCREMENTAL to refresh incrementally all the same",
    )
