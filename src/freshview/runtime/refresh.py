"""Refreshing views: pin the sources, then each view in order, one commit each, then the epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from freshview.errors import (
    Cancelled,
    ConcurrentWrite,
    Crowded,
    FreshviewError,
    HistoryLost,
    NotFresh,
    NotIncremental,
    StaleCommit,
    TableMissing,
    TableUnreadable,
    WriteFailed,
)
from freshview.faults import point
from freshview.planner.plan import Limits
from freshview.planner.strategy import Strategy
from freshview.reasons import Reason, reason_of
from freshview.runtime.cancellation import Interrupted, check, noted
from freshview.runtime.catalog import Policy, ViewEntry, new_place
from freshview.runtime.clock import clocks_of, moment_of, moment_text
from freshview.runtime.commit import Consumed, SourceVersion, consumed_of
from freshview.runtime.epochs import OldNews
from freshview.runtime.incremental import IncrementalRefresh, Preferred
from freshview.runtime.lease import Lease, lease, view_lease
from freshview.runtime.parts import Parts
from freshview.runtime.progress import progress
from freshview.runtime.recompute import create, recompute
from freshview.runtime.recompute_reasons import WITHOUT_STATE, is_redefined, reason_for_full
from freshview.runtime.refresh_log import failure
from freshview.runtime.refresh_run import Overtaken, Refresh
from freshview.runtime.report import UNCHANGED, Report, ViewReport
from freshview.runtime.retries import attempts
from freshview.runtime.spark_failures import spark_failures
from freshview.runtime.view_graph import base_tables, refresh_order
from freshview.storage.write_errors import spark_writes

VIEW_LEASE_S = 600.0
Made = TypeVar("Made")


class Refresher:
    """Refreshes the views of a warehouse."""

    def __init__(self, parts: Parts, limits: Limits | None = None) -> None:
        self.parts = parts
        self.limits = limits or Limits()
        self.incremental = IncrementalRefresh(parts, self.limits)
        self._consumed: dict[str, tuple[tuple[int, str], Consumed]] = {}

    def refresh(self, names: Iterable[str] | None = None, policy: Policy | None = None) -> Report:
        """Bring views, and the views they read, to the newest versions of their tables.

        If another refresher gets ahead of the pinned versions, everything is pinned anew.
        """
        names = None if names is None else tuple(names)
        return self.uncrowded(", ".join(names or ("all",)), lambda: self._attempt(names, policy))

    def uncrowded(self, views: str, attempt: Callable[[], Made]) -> Made:
        """Try again while other refreshers are ahead, a bounded number of times."""
        for last in attempts():
            try:
                return attempt()
            except Overtaken as overtaken:
                if last:
                    raise Crowded(views=views) from overtaken
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, names: tuple[str, ...] | None, policy: Policy | None) -> Report:
        started = time.perf_counter()
        parts = self.parts
        order = refresh_order(parts.catalog, names)
        run = self._pinned_run(base_tables(parts.catalog, order))
        wanted = None if names is None else set(names)
        failures: dict[str, Exception] = {}
        stale: set[str] = set()
        try:
            with progress(f"refreshing {len(order)} views", total=len(order)) as bar:
                for place, entry in enumerate(order):
                    run.release(following=order[place:])
                    bar.describe(f"refreshing {entry.name}")
                    chosen = policy if wanted is None or entry.name in wanted else None
                    if run.missing.keys() & set(entry.sources):
                        gone = next(name for name in entry.sources if name in run.missing)
                        failures[entry.name] = run.missing[gone]
                        stale.add(entry.name)
                        continue
                    if stale & set(entry.sources):
                        stale.add(entry.name)
                        continue
                    try:
                        with spark_writes():
                            self._view(entry, chosen or entry.policy, run)
                    except Overtaken:
                        raise
                    except BaseException as error:
                        cancelled = noted()
                        if cancelled is not None:
                            raise self._cancelled(run, failures, entry, cancelled) from error
                        if not isinstance(error, Exception):
                            raise
                        if not self._is_dropped(entry):
                            failures[entry.name] = error
                        stale.add(entry.name)
                    bar.advance()
            if failures:
                raise self._failed(run, failures, stale)
            return self._recorded(run, started)
        except Overtaken:
            self._log(run)
            raise
        finally:
            run.release()

    def _is_dropped(self, entry: ViewEntry) -> bool:
        """Whether somebody has dropped or replaced the view meanwhile."""
        self.parts.catalog.load()
        return entry.id not in {view.id for view in self.parts.catalog.views()}

    def create(
        self,
        entry: ViewEntry,
        strategy: Strategy,
        old: ViewEntry | None,
        held: Lease,
        fits: Callable[[Mapping[str, SourceVersion]], bool],
    ) -> Report:
        """Compute a new view over views and tables that agree, and put it into the catalog.

        Its lease tells others that its folder is in use, as long as the catalog does not. Raises
        Overtaken if the versions to compute it from do not fit what its strategy was made for.
        """
        started = time.perf_counter()
        run = self.uncrowded(entry.name, lambda: self._sources_refreshed(entry))
        try:
            with self._logged_if_it_fails(run):
                vector = run.vector(entry, strategy.clocks)
                with spark_failures(entry.name), self._pinned_is_there(entry, run):
                    if not fits(vector):
                        raise Overtaken
                    made = create(self.parts, entry, strategy, vector, run)
                check()
                held.check()
                run.check_pinned(vector)
                if old is None:
                    self.parts.catalog.add(entry)
                else:
                    self.parts.catalog.replace(old, entry)
            point("create.catalogued")
            run.reports.append(made)
            run.pinned[entry.name] = self.parts.sources.pinned(entry.name, made.version)
            try:
                return self._recorded(run, started)
            except Overtaken:  # the view is made, and the next refresh takes it into an epoch
                self._log(run)
                return Report(tuple(run.reports), _since(started), None)
        finally:
            run.release()

    def _sources_refreshed(self, entry: ViewEntry) -> Refresh:
        """What a new view reads, brought to one vector of versions."""
        below = refresh_order(self.parts.catalog, entry.sources)
        run = self._pinned_run(base_tables(self.parts.catalog, [*below, entry]))
        for missing in run.missing.values():
            raise missing
        try:
            with self._logged_if_it_fails(run):
                for view in below:
                    self._view(view, view.policy, run)
        except BaseException:
            run.release()
            raise
        return run

    @contextmanager
    def _logged_if_it_fails(self, run: Refresh) -> Iterator[None]:
        """Views that were refreshed stay so, whatever becomes of the one for which they were."""
        try:
            yield
        except BaseException:
            self._log(run)
            raise

    @contextmanager
    def _pinned_is_there(self, entry: ViewEntry, run: Refresh) -> Iterator[None]:
        """A pinned version that was cleaned up meanwhile has a later one after it: pin anew."""
        try:
            yield
        except HistoryLost as lost:
            sources = self.parts.sources
            if all(sources.latest(name) == run.pinned[name].version for name in entry.sources):
                raise
            raise Overtaken(entry.name) from lost

    def _failed(
        self, run: Refresh, failures: Mapping[str, Exception], stale: set[str]
    ) -> Exception:
        """The first error, noting the others, after the log of what did happen.

        The epoch has the views that were refreshed: those that failed do not agree with them.
        """
        with suppress(Overtaken, WriteFailed):
            self._epoch(run)
        (name, first), *others = failures.items()
        try:
            self._log_failures(run, failures)
        except WriteFailed as unlogged:
            first.add_note(f"The refresh log does not have this: {unlogged}")
        first.add_note(f"The view {name} was not refreshed.")
        for other, error in others:
            first.add_note(f"Nor was {other}: {error}")
        above = sorted(stale - failures.keys())
        if above:
            first.add_note(f"Views that read it keep their state: {', '.join(above)}.")
        return first

    def _cancelled(
        self, run: Refresh, failures: Mapping[str, Exception], entry: ViewEntry, signal: str
    ) -> Interrupted:
        """What ends the refresh, after the log of what did happen before the signal."""
        self._log_failures(run, {**failures, entry.name: Cancelled(signal=signal)})
        return Interrupted()

    def _recorded(self, run: Refresh, started: float) -> Report:
        """The epoch and the log of a refresh that changed something.

        Or that found everything done by one which ended before it could record its epoch.
        """
        epoch = self._epoch(run)
        if epoch is not None:
            point("refresh.before_log")
            self._log(run)
        return Report(tuple(run.reports), _since(started), epoch)

    def _epoch(self, run: Refresh) -> int | None:
        """The number of the epoch of the refreshed views, None if nothing is new in it."""
        views = {report.view: run.pinned[report.view] for report in run.reports}
        tables = {n: source for n, source in run.pinned.items() if n not in views}
        if all(report.mode == UNCHANGED for report in run.reports):
            known = self.parts.epochs.newest(views)
            if not views or (known is not None and views.items() <= known.views.items()):
                return None
        point("refresh.before_epoch")
        try:
            return self.parts.epochs.record(views, tables, run.after).number
        except OldNews as old:
            if views.keys() - old.newer.views.keys():
                raise Overtaken from old
            return old.newer.number

    def _log(self, run: Refresh) -> None:
        changed = [report for report in run.reports if report.mode != UNCHANGED]
        if changed:
            self.parts.log.append(run.identity, changed, run.source_rows)

    def consumed(self, entry: ViewEntry) -> Consumed:
        """What a view has consumed, by its own last commit."""
        path = self.parts.catalog.path(entry)
        while True:
            version = self.parts.tables.latest(path)
            commit = (version, self.parts.tables.identity(path, version))
            cached = self._consumed.get(path)
            if cached is not None and cached[0] == commit:
                return cached[1]
            last = self.parts.tables.last_commit(path, entry.application)
            if self.parts.tables.latest(path) == version:
                break  # else somebody has committed between the two questions
        if last is None:
            raise NotFresh(name=entry.name)
        consumed = consumed_of(version, last[1])
        self._consumed[path] = (commit, consumed)
        return consumed

    def pending(self, entry: ViewEntry) -> dict[str, tuple[int, int]]:
        """The sources with changes that the view has not consumed: versions it has and newest."""
        consumed = self.consumed(entry)
        names = (*entry.sources, *clocks_of(consumed.sources))
        latest = {name: self.parts.sources.latest(name) for name in names}
        return {
            name: (consumed.sources[name].version, version)
            for name, version in latest.items()
            if consumed.sources[name].version != version
        }

    def _pinned_run(self, names: Iterable[str]) -> Refresh:
        """One version vector for the whole refresh, at whole transactions only."""
        after = self.parts.epochs.last_number()
        run = Refresh(self.parts.sources, {}, moment_of(self.parts.sources.clock), after)
        with self.parts.transactions.whole() as held:
            unfinished = self.parts.transactions.unfinished
            for name in names:
                if self.parts.sources.path(name) in unfinished:
                    run.missing[name] = unfinished[self.parts.sources.path(name)]
                    continue
                try:
                    run.pinned[name] = self.parts.sources.pinned(name)
                except (TableMissing, TableUnreadable) as missing:
                    run.missing[name] = missing
                except HistoryLost as gone:  # the version just seen: another table is there now
                    raise Overtaken(name) from gone
                point("refresh.pinning")
            if held.is_lost():  # others may have written between two of them
                raise Overtaken
        point("refresh.pinned")
        return run

    def is_there(self, name: str, named: SourceVersion) -> bool:
        """Whether a version that was recorded is one of the table or view that has the name now."""
        newest = self.parts.sources.pinned(name)
        if newest.table_id != named.table_id or newest.version < named.version:
            return False
        return self.parts.sources.pinned(name, named.version).is_same(named)

    def _view(self, entry: ViewEntry, policy: Policy, run: Refresh) -> None:
        parts = self.parts
        check()
        report = self._unchanged(entry, policy, run)
        if report is None:
            with lease(view_lease(parts.root, entry.name), wait_s=VIEW_LEASE_S) as held:
                run.lease = held
                try:
                    report = self._unchanged(entry, policy, run)
                    if report is None:
                        with spark_failures(entry.name), self._pinned_is_there(entry, run):
                            report = self._changed(entry, policy, run)
                except (StaleCommit, ConcurrentWrite) as raced:
                    raise Overtaken from raced
        run.reports.append(report)
        run.pinned[entry.name] = self.parts.sources.pinned(entry.name, report.version)
        point("refresh.between_views")

    def _unchanged(self, entry: ViewEntry, policy: Policy, run: Refresh) -> ViewReport | None:
        """The report of a view that has consumed the pinned versions, None if there is work."""
        started = time.perf_counter()
        if policy is Policy.FULL:
            return None
        try:
            consumed = self.consumed(entry)
        except WITHOUT_STATE:
            return None
        vector = run.vector(entry, clocks_of(consumed.sources))
        if not all(pinned.is_same(consumed.sources.get(n)) for n, pinned in vector.items()):
            return None
        if is_redefined(self.parts, entry, consumed):
            return None
        made = ViewReport(entry.name, UNCHANGED, entry.technique, consumed.version)
        return replace(made, ms=_since(started), moment=moment_text(vector))

    def _changed(self, entry: ViewEntry, policy: Policy, run: Refresh) -> ViewReport:
        try:
            consumed = self.consumed(entry)
        except WITHOUT_STATE as lost:
            if self._is_dropped(entry):
                if entry.name in self.parts.catalog:
                    raise Overtaken(entry.name) from lost  # by one who has just computed it anew
                raise
            return self._recreate(entry, policy, run, lost)
        vector = run.vector(entry, clocks_of(consumed.sources))
        self._check_not_overtaken(consumed, vector)
        strategy = self.parts.strategy(entry, vector)
        vector = run.vector(entry, strategy.clocks)
        reason = reason_for_full(self.parts, entry, policy, strategy, consumed, vector)
        if reason is None:
            try:
                return self.incremental.run(entry, strategy, consumed, vector, policy, run)
            except HistoryLost as lost:
                reason = reason_of(lost)
            except Preferred as preferred:
                reason = preferred.reason
        if policy is Policy.STRICT:
            raise NotIncremental(name=entry.name, reason=reason.code, why=reason.why, do=reason.do)
        return recompute(self.parts, entry, strategy, consumed, vector, reason, run)

    def _check_not_overtaken(self, consumed: Consumed, vector: Mapping[str, SourceVersion]) -> None:
        """A view that has a later version of a table was refreshed by somebody else meanwhile.

        Unless the table has no such version: then it was put back. So with the clock: if it is not yet
        as late as the view, it was set back, and the view follows it.
        """
        for name, source in vector.items():
            has = consumed.sources.get(name)
            if has is None or has.table_id != source.table_id or has.version <= source.version:
                continue
            if self.parts.sources.latest(name) >= has.version:
                raise Overtaken(name)

    def _recreate(
        self, entry: ViewEntry, policy: Policy, run: Refresh, lost: FreshviewError
    ) -> ViewReport:
        """A view without a readable commit of its own, or without its table, is computed anew."""
        reason = reason_of(lost)
        if policy is Policy.STRICT:
            raise NotIncremental(name=entry.name, reason=reason.code, why=reason.why, do=reason.do)
        path = self.parts.catalog.path(entry)
        strategy = self.parts.strategy(entry, run.vector(entry, ()))
        vector = run.vector(entry, strategy.clocks)
        if isinstance(lost, TableMissing | NotFresh):
            return self._renew(entry, strategy, vector, run, reason)
        number = self.parts.tables.number(path, entry.application)
        assert number is not None
        before = Consumed(self.parts.tables.latest(path), number, {})
        return recompute(self.parts, entry, strategy, before, vector, reason, run)

    def _renew(
        self,
        entry: ViewEntry,
        strategy: Strategy,
        vector: Mapping[str, SourceVersion],
        run: Refresh,
        reason: Reason,
    ) -> ViewReport:
        """A view whose table is gone, or is not of its making, gets another one.

        In the old place the numbers of its commits would come again.
        """
        identity, path = new_place(entry.name)
        new = replace(entry, id=identity, path=path)
        made = create(self.parts, new, strategy, vector, run, reason)
        assert run.lease is not None
        run.lease.check()
        run.check_pinned(vector)
        self.parts.catalog.renew(entry, new)
        return made

    def _log_failures(self, run: Refresh, failures: Mapping[str, Exception]) -> None:
        known = {view.name: view.technique for view in self.parts.catalog.views()}
        failed = [failure(name, known.get(name, ""), error) for name, error in failures.items()]
        changed = [report for report in run.reports if report.mode != UNCHANGED]
        self.parts.log.append(
            run.identity, [*changed, *failed], run.source_rows, error=failed[0].reason
        )


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
