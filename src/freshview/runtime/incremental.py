"""The incremental refresh of one view: runs the stages that the planner lists."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException

from freshview.algebra.clock import is_clock
from freshview.algebra.relations import Relation
from freshview.delta.derivation import Kind
from freshview.faults import point
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
    EvaluateRefresh,
    EvaluateStep,
    LookUpRange,
    LookUpRows,
    ReadChanges,
    ReadClock,
    ReadStored,
    Recompute,
    ScanRows,
    Stage,
)
from freshview.planner.strategy import Strategy
from freshview.reasons import Reason
from freshview.runtime.cancellation import check
from freshview.runtime.catalog import Policy, ViewEntry
from freshview.runtime.clock import clock_rows, moment_text
from freshview.runtime.commit import Consumed, SourceVersion
from freshview.runtime.fetching import rows_that_fit
from freshview.runtime.outcome import outcome
from freshview.runtime.parts import Parts
from freshview.runtime.probing import best_keys, is_idle, read_by
from freshview.runtime.recompute_reasons import set_policy
from freshview.runtime.report import ADVANCED, INCREMENTAL, ViewReport
from freshview.runtime.work import Work, each_once, stored_probes
from freshview.storage.consolidate import consolidated
from freshview.storage.features import APPEND_ONLY
from freshview.storage.interface import COUNT, Rows, picked

if TYPE_CHECKING:
    from freshview.runtime.refresh_run import Refresh

PlanKey = tuple[int, frozenset[tuple[str, Kind]]]
ChangesKey = tuple[str, int, int, tuple[str, ...]]
"""A source, the versions between which it changed, and the columns that are read."""


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


class IncrementalRefresh:
    """Runs the stages of incremental refreshes, keeping what depends on definitions alone."""

    def __init__(self, parts: Parts, limits: Limits) -> None:
        self.parts = parts
        self.limits = limits
        self._plans: dict[PlanKey, tuple[Strategy, ChangePlan | None]] = {}

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
        deltas = self.deltas(strategy, consumed, vector, run.handed, run.changes)
        if strategy.reason is not None and any(
            not isinstance(d, pa.Table) for d in deltas.values()
        ):
            raise Preferred(strategy.reason)
        read_ms = (time.perf_counter() - started) * 1000
        counts = {name: row_count(rows, self.limits.delta_rows) for name, rows in deltas.items()}
        arrived = {name: rows for name, rows in deltas.items() if counts[name]}
        if arrived and strategy.reason is not None:
            raise Preferred(strategy.reason)
        change = None
        if arrived:
            change = self.change(strategy, kinds(arrived, self.append_only(vector)))
        rows_in = sum(count for name, count in counts.items() if not is_clock(name))
        if change is None:
            commit = run.commit(entry, consumed, vector, ADVANCED)
            point("refresh.before_commit")
            version, _ = self.parts.tables.append(self.parts.catalog.path(entry), None, commit)
            point("refresh.after_commit")
            spent = (time.perf_counter() - started) * 1000
            made = ViewReport(entry.name, ADVANCED, entry.technique, version, rows_in=rows_in)
            return replace(made, ms=spent, moment=moment_text(vector))
        plan = self.plan(entry, strategy, consumed, vector, counts, change)
        everything = sum(self._rows(name, vector[name]) for name in entry.sources)
        run.source_rows[entry.name] = everything
        if policy is Policy.AUTO and plan.costs.prefers_full:
            raise Preferred(cheaper(plan))
        work = Work(entry, strategy, change, plan.steps)
        work.stages_ms["read changes"] = read_ms
        work.feed(arrived)
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
            moment=moment_text(vector),
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
        known: dict[ChangesKey, pa.Table],
    ) -> dict[str, Rows]:
        """The changed rows of every source that moved, in the columns that the view reads.

        Views that read the same columns of a source share what ``known`` keeps.
        """
        found: dict[str, Rows] = {}
        for name, source in vector.items():
            before = consumed.sources[name].version
            if before == source.version:
                continue
            columns = source_columns(strategy, name)
            handover = handed.get(name)
            key = (name, before, source.version, columns)
            if key in known:
                found[name] = known[key]
                continue
            if handover is not None and (handover.after, handover.upto) == (before, source.version):
                rows = picked(handover.rows, [*columns, COUNT])
            else:
                rows = self.parts.sources.changes(name, before, source.version, columns)
            if isinstance(rows, pa.Table):
                rows = known[key] = consolidated(rows)
            found[name] = rows
        return found

    def append_only(self, vector: Mapping[str, SourceVersion]) -> frozenset[str]:
        """The sources that are declared to lose no row (`delta.appendOnly`)."""
        return frozenset(
            name
            for name, source in vector.items()
            if APPEND_ONLY in self.parts.sources.state(name, source.version).features
        )

    def change(self, strategy: Strategy, changed: Mapping[str, Kind]) -> ChangePlan | None:
        """The derived expressions, kept per strategy, set of changed sources and kinds of change."""
        key = (id(strategy), frozenset(changed.items()))
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
            case LookUpRange():
                with work.timed("look up"):
                    self._look_up_range(stage, work)
            case ReadClock(leaf, version):
                work.leaves[leaf] = clock_rows(leaf.table, version)
            case ScanRows():
                self._scan(stage, work)
            case EvaluateStep(relation, leaf):
                with work.timed("evaluate"):
                    work.leaves[leaf] = self._evaluated(leaf.name, relation, work)
            case ReadStored():
                with work.timed("read view"):
                    self._read_stored(stage, work)
            case EvaluateRefresh(relation):
                with work.timed("evaluate"):
                    work.touched = self._evaluated("⊔", relation, work)
            case ApplyRows():
                with work.timed("apply"):
                    return self._apply(work, consumed, vector, run)
            case Advance() | Recompute():
                raise AssertionError("not a stage of an incremental refresh")
            case _:
                assert_never(stage)
        return None

    def _look_up(self, stage: LookUpRows, work: Work) -> None:
        if is_idle(work.leaves, stage.needs):
            self._fetch_none(stage, work)
            return
        found = best_keys(work.leaves, stage.probes)
        if found is None:
            self._scan(ScanRows(stage.leaf, stage.version, stage.expected), work)
            return
        probe, keys = found
        leaf = stage.leaf
        columns = [a.name for a in leaf.attributes]
        rows = self.parts.sources.lookup(leaf.table, stage.version, columns, probe.key.name, keys)
        work.leaves[leaf] = rows
        if isinstance(rows, pa.Table):
            work.read(leaf, rows.num_rows)

    def _look_up_range(self, stage: LookUpRange, work: Work) -> None:
        if is_idle(work.leaves, stage.needs):
            self._fetch_none(stage, work)
            return
        ends = work.ends(stage.range)
        if ends is None:
            self._scan(ScanRows(stage.leaf, stage.version, stage.expected), work)
            return
        leaf, key = stage.leaf, stage.range.attribute.name
        columns = [a.name for a in leaf.attributes]
        rows = self.parts.sources.between(leaf.table, stage.version, columns, key, ends)
        work.leaves[leaf] = rows
        if isinstance(rows, pa.Table):
            work.read(leaf, rows.num_rows)

    def _scan(self, stage: ScanRows, work: Work) -> None:
        if is_idle(work.leaves, stage.needs):
            self._fetch_none(stage, work)
            return
        leaf = stage.leaf
        columns = [a.name for a in leaf.attributes]
        work.leaves[leaf] = self.parts.sources.scan(leaf.table, stage.version, columns)
        work.read(leaf, stage.expected)

    def _fetch_none(self, stage: LookUpRows | LookUpRange | ScanRows, work: Work) -> None:
        """No row of the leaf matters, so none is read; only its types are asked for."""
        leaf = stage.leaf
        columns = [a.name for a in leaf.attributes]
        schema = self.parts.sources.state(leaf.table, stage.version).arrow_schema
        work.leaves[leaf] = pa.schema([schema.field(name) for name in columns]).empty_table()

    def _read_stored(self, stage: ReadStored, work: Work) -> None:
        """The stored rows: all of a small view, else those with a key in the change table."""
        leaf = stage.leaf
        columns = [a.name for a in leaf.attributes]
        path = self.parts.catalog.path(work.entry)
        tables = self.parts.tables
        probes = stored_probes(work) if stage.by_key else None
        if not stage.by_key:
            rows = tables.read(path, stage.version, columns)[0]
        elif probes is None:
            rows = tables.spark.read(path, stage.version, columns)
        else:
            found = [tables.lookup(path, stage.version, columns, *probe)[0] for probe in probes]
            if not all(isinstance(some, pa.Table) for some in found):
                by_spark = tables.spark.lookup
                found = [by_spark(path, stage.version, columns, *probe) for probe in probes]
            rows = each_once(found, [a.name for a in work.strategy.key])
        if isinstance(rows, pa.Table):
            work.read(leaf, rows.num_rows)
        work.leaves[leaf] = rows

    def _evaluated(self, name: str, relation: Relation, work: Work) -> Rows:
        """The relation by Spark; brought to the driver when it is small."""
        version = (name, id(work.steps))
        rows = self.parts.evaluator.evaluate(
            work.entry,
            version,
            relation,
            read_by(relation, work.leaves),
            Bound(self.limits.delta_rows, self.limits.delta_bytes),
        )
        if isinstance(rows, pa.Table):
            return rows
        kept = rows.persist()
        work.cached.append(kept)
        local = rows_that_fit(kept, self.limits.delta_rows, self.limits.delta_bytes)
        if local is None:
            return kept
        work.cached.pop().unpersist()
        return local

    def _apply(
        self, work: Work, consumed: Consumed, vector: Mapping[str, SourceVersion], run: Refresh
    ) -> int:
        assert work.touched is not None
        result = outcome(work.strategy, work.touched)
        commit = run.commit(work.entry, consumed, vector, INCREMENTAL)
        key = [a.name for a in work.strategy.key]
        path = self.parts.catalog.path(work.entry)
        point("refresh.before_commit")
        if result.only_new:
            # Nothing to be found by key, and no file to be rewritten.
            version, _ = self.parts.tables.append(path, result.upserts, commit)
        else:
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


def kinds(deltas: Mapping[str, Rows], append_only: Collection[str]) -> dict[str, Kind]:
    """What the changed rows of each source turned out to be.

    Rows that stay in Spark may be any, unless their table is declared append-only: then they are
    looked at, since the declaration may be younger than a deletion. The first one withdraws it.
    """

    def kind(name: str, rows: Rows) -> Kind:
        if isinstance(rows, pa.Table):
            only_more = pc.min(rows[COUNT]).as_py() > 0
        else:
            only_more = name in append_only and rows.where(f"{COUNT} < 0").isEmpty()
        return Kind.INSERTIONS if only_more else Kind.ANY

    return {name: kind(name, rows) for name, rows in deltas.items()}


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
        f"{set_policy(plan.strategy.view, Policy.INCREMENTAL)} refreshes incrementally all the same",
    )
