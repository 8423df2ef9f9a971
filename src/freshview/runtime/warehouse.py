"""A warehouse: a folder of tables and views, and the object through which they are used."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshview.errors import (
    Busy,
    InvalidChanges,
    InvalidPath,
    NoCommonEpoch,
    TableMissing,
    UnknownEpoch,
    WriteFailed,
)
from freshview.faults import point
from freshview.frontend.catalyst import COPIED_SETTINGS
from freshview.planner.plan import Limits
from freshview.planner.strategy import Strategy
from freshview.runtime.cancellation import cancellable
from freshview.runtime.catalog import (
    Catalog,
    Policy,
    TableEntry,
    ViewEntry,
    check_name,
    new_place,
)
from freshview.runtime.check import CheckResult, by_algebra, check_readable, compare, repair
from freshview.runtime.clock import Clock, system_clock
from freshview.runtime.definitions import (
    Definitions,
    ViewFunction,
    check_applicable,
    check_columns,
    check_strict,
    function_name,
    reading,
    settings_of,
    wanted_technique,
)
from freshview.runtime.epochs import Epochs
from freshview.runtime.evaluation import Evaluator
from freshview.runtime.explanation import Explanation, explain
from freshview.runtime.lease import Lease, lease, view_lease
from freshview.runtime.named_tables import location_of
from freshview.runtime.parts import Parts
from freshview.runtime.progress import progress
from freshview.runtime.recompute_reasons import is_repaired_whole
from freshview.runtime.redefinition import check_same
from freshview.runtime.refresh import VIEW_LEASE_S, Refresher
from freshview.runtime.refresh_log import RefreshLog
from freshview.runtime.report import Report
from freshview.runtime.session import spark_session
from freshview.runtime.sources import Sources
from freshview.runtime.statements import run_statement
from freshview.runtime.status import ViewStatus, status_of
from freshview.runtime.suggesting import Advice, advise, first_suggestion
from freshview.runtime.table_changes import TableChanges, from_pandas, names_of
from freshview.runtime.transactions import Transactions
from freshview.runtime.vacuum import DEFAULT_HOURS, Leftover, leftovers
from freshview.runtime.view_graph import check_replaceable
from freshview.runtime.why import Provenance, why
from freshview.storage.choose import Limits as StorageLimits
from freshview.storage.choose import Tables
from freshview.storage.native import NativeStorage
from freshview.storage.places import check_place
from freshview.storage.spark import SparkStorage
from freshview.storage.write_errors import spark_writes


class Warehouse:
    """Tables, views and their refresh. Open one with ``freshview.open``."""

    def __init__(
        self,
        path: str | Path,
        spark: SparkSession | None = None,
        limits: Limits | None = None,
        storage_limits: StorageLimits | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.root = Path(path).absolute()
        self.catalog = Catalog(self.root)
        self.catalog.load()
        self._given_spark = spark
        native = NativeStorage()
        tables = Tables(native, lambda: SparkStorage(self.spark), storage_limits)
        sources = Sources(self.catalog, tables, clock)
        self._definitions = Definitions(lambda: self.spark, self.catalog, sources)
        self.parts = Parts(
            self.root,
            self.catalog,
            tables,
            sources,
            Evaluator(lambda: self.spark),
            Epochs(self.root),
            RefreshLog(str(self.root / "_freshview" / "refresh_log"), native),
            Transactions(self.root, tables, sources.path),
            lambda: self.spark,
            lambda entry, vector=None: self._definitions.strategy(entry, self, vector),
        )
        self._refresher = Refresher(self.parts, limits)
        self.named_views: set[str] = set()
        """The views that have their names in the statement session."""
        self.settings_taken_over: dict[str, str] = {}
        """What the session said when the statement session took it over; a SET of its own stays."""

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session; started on first use unless one was given."""
        return self._given_spark or spark_session()

    @cached_property
    def statement_session(self) -> SparkSession:
        """The session in which Spark's own statements run."""
        return self.spark.newSession()

    # Tables

    def register(
        self, name: str, path: str | Path | None = None, *, table: str | None = None
    ) -> None:
        """Make an existing Delta table known, by its path or its name in Spark's catalog."""
        self._check_new(name)
        if table is not None:
            path = location_of(self.spark, table)
        if path is None:
            raise InvalidPath(path="", reason="neither a path nor a catalog name was given")
        place = str(path).removeprefix("file://")
        if "://" not in place:
            check_place(place)
            place = str(Path(place).resolve())
            check_place(place)
        self.parts.tables.state(place)
        root = self.root.resolve()
        if Path(place).is_relative_to(root):
            place = str(Path(place).relative_to(root))
        self.catalog.add(TableEntry(name, place))

    def create_table(self, name: str, rows: Any, *, partition_by: Iterable[str] = ()) -> None:
        """Write rows (Arrow, pandas, Spark or a schema) as a new table of the warehouse."""
        self._check_new(name)
        by_spark = isinstance(rows, DataFrame)
        if not isinstance(rows, DataFrame | pa.Table | pa.Schema):
            rows = from_pandas(name, rows)
        check_columns(name, rows.columns if by_spark else names_of(rows))
        path = self._inside("tables") / name
        storage = self.parts.tables.spark if by_spark else self.parts.tables.native
        with self._held(name):
            self._check_new(name)
            was_there = path.exists()
            try:
                storage.create(str(path), rows, partition_by=tuple(partition_by))
            except Exception:
                if not was_there:
                    shutil.rmtree(path, ignore_errors=True)
                raise
            point("create_table.written")
            self.register(name, path)

    def _inside(self, folder: str) -> Path:
        """A folder of the warehouse, which must not be a link to somewhere else."""
        path = self.root / folder
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise InvalidPath(path=str(path), reason="it is a link that leads out of the warehouse")
        return path

    def _check_new(self, name: str) -> None:
        """A name that a new table can have, before anything is written for it."""
        check_name(name)
        self.catalog.load()
        self.catalog.check_free(name)

    def table(self, name: str) -> DataFrame:
        """A table or view as a DataFrame; inside a view's function, what the definition reads."""
        reader = reading.get()
        if reader is not None:
            return reader(name)
        return self.parts.sources.read(name, self.parts.sources.latest(name))

    def apply(self, changes: Mapping[str, TableChanges]) -> dict[str, int]:
        """Change several tables as one transaction; a refresh sees all of it or nothing."""
        self.catalog.load()
        for name in changes:
            if isinstance(self.catalog.get(name), ViewEntry):
                reason = "it is a view, and only a refresh changes it"
                raise InvalidChanges(table=name, reason=reason)
        return self.parts.transactions.apply(changes)

    # Views

    def create_view(
        self,
        name: str,
        query: str,
        *,
        policy: Policy | str = Policy.AUTO,
        technique: str = "auto",
        replace_existing: bool = False,
        comment: str | None = None,
    ) -> Report:
        """Define a view by SQL text and compute it."""
        check_name(name)
        self._inside("views")
        wanted = wanted_technique(technique)

        def attempt() -> Report:
            self.catalog.load()
            made = self._definitions.from_sql(name, query, wanted=wanted)
            return self._create(name, made, policy, replace_existing, comment, wanted, sql=query)

        return self._refresher.uncrowded(name, attempt)

    def view(
        self,
        function: ViewFunction | None = None,
        *,
        name: str | None = None,
        policy: Policy | str = Policy.AUTO,
        technique: str = "auto",
        replace: bool = False,
    ) -> Any:
        """Define a view by a function that returns a DataFrame; usable as a decorator.

        The function is stored by name. Running the definition again finds the view and only checks
        that it still is the same one.
        """
        if function is None:
            return lambda given: self.view(
                given, name=name, policy=policy, technique=technique, replace=replace
            )
        view = name or function.__name__
        check_name(view)
        self._inside("views")
        wanted, stored = wanted_technique(technique), function_name(function)

        def attempt() -> None:
            self.catalog.load()
            if view in self.catalog and not replace:
                entry = self.catalog.view(view)
                strategy = self._definitions.from_function_again(entry, function, self)
                check_same(self.parts, self._refresher.consumed, entry, strategy, stored)
            else:
                strategy = self._definitions.from_function(view, function, self, wanted=wanted)
                self._create(view, strategy, policy, replace, None, wanted, function=stored)

        self._refresher.uncrowded(view, attempt)
        self._definitions.functions[view] = function
        return function

    def drop_view(self, name: str) -> None:
        """Forget a view and remove its content, once nobody is refreshing it."""
        self.catalog.load()
        self.catalog.view(name)
        with self._held(name):
            self.catalog.load()
            entry = self.catalog.view(name)
            self.catalog.remove(name)
            point("drop.catalogued")
            self._forget(entry)

    def set_policy(self, name: str, policy: Policy | str) -> None:
        """Give a view another policy. Raises StrictImpossible if it can only be recomputed."""
        self.catalog.load()
        chosen, entry = Policy.named(policy), self.catalog.view(name)
        if chosen is Policy.STRICT:
            check_strict(name, chosen, self._definitions.strategy(entry, self))
        self.catalog.set_policy(name, chosen)

    def set_technique(self, name: str, technique: str) -> None:
        """Keep a view by another technique, from its next refresh on."""
        wanted = wanted_technique(technique)
        self.catalog.load()
        entry = replace(self.catalog.view(name), wanted=wanted)
        strategy = self._definitions.strategy(entry, self)
        check_applicable(name, wanted, strategy)
        check_strict(name, entry.policy, strategy)
        self.catalog.set_technique(name, wanted, strategy.technique.value)

    @cancellable()
    def refresh(
        self, *names: str, policy: Policy | str | None = None, full: bool = False
    ) -> Report:
        """Bring the named views, or all, to the newest state of their tables."""
        self.catalog.load()
        for name in names:
            self.catalog.view(name)
        chosen = Policy.FULL if full else None if policy is None else Policy.named(policy)
        return self._refresher.refresh(names or None, chosen)

    def read(self, name: str, *, epoch: int | None = None) -> DataFrame:
        """A view's rows as of its last refresh, or as of an epoch."""
        self.catalog.load()
        if epoch is None:
            return self.parts.sources.read(name, self.parts.sources.latest(name))
        found = None
        with suppress(TypeError, ValueError):  # no number at all
            found = self.parts.epochs.read(epoch)
        pinned = None if found is None else found.get(name)
        if pinned is None or not self._refresher.is_there(name, pinned):
            known = ", ".join(map(str, self.parts.epochs.numbers())) or "none"
            raise UnknownEpoch(epoch=epoch, name=name, known=known)
        return self.parts.sources.read(name, pinned.version)

    def epoch(self, *names: str) -> int:
        """The newest epoch that has these views and tables: to read several that agree."""
        self.catalog.load()
        for name in names:
            self.catalog.get(name)
        found = self.parts.epochs.newest(names, self._refresher.is_there)
        if found is None:
            raise NoCommonEpoch(names=", ".join(names) or "any view")
        return found.number

    @cancellable()
    def check(
        self, name: str, *, sample: float | None = None, repair_groups: bool = False
    ) -> CheckResult:
        """Compare a view with its definition, evaluated at the versions it was computed from."""
        self.catalog.load()
        entry = self.catalog.view(name)
        consumed = self._refresher.consumed(entry)
        check_readable(self.parts, consumed)
        strategy = self.parts.strategy(entry, consumed.sources)
        versions = {n: s.version for n, s in consumed.sources.items()}
        with progress(f"checking {name}"):
            expected = by_algebra(self.parts, strategy, consumed)
            if expected is None:
                expected = self._definitions.evaluated_at(entry, versions, self)
            actual = self.parts.sources.read(name, consumed.version)
            result = compare(entry, strategy, consumed, expected, actual, sample)
            if not repair_groups:
                return result
            if is_repaired_whole(self.parts, entry, strategy, consumed):
                if not result.ok:
                    self.refresh(name, full=True)
                return replace(result, repaired=result.missing + result.extra)
            with self._held(name) as held:
                now = self._refresher.consumed(entry)
                check_readable(self.parts, now)
                strategy = self.parts.strategy(entry, now.sources)
                count = repair(self.parts, entry, strategy, now, held)
            return replace(result, repaired=count)

    @cancellable()
    def why(
        self, name: str, key: Mapping[str, object] | None = None, *, limit: int = 20
    ) -> Provenance:
        """The base rows that the rows of a view with this key come from, as of its last refresh."""
        self.catalog.load()
        with progress(f"tracing {name}"):
            return why(
                self.parts, self._refresher.limits, self.catalog.view(name), key or {}, limit
            )

    def vacuum(self, hours: float = DEFAULT_HOURS, *, remove: bool = False) -> list[Leftover]:
        """What nobody needs and is older than so many hours: listed, or removed."""
        self.catalog.load()
        found = []
        for leftover in leftovers(self.catalog, self._refresher.consumed, hours):
            if remove:
                leftover.remove()
            found.append(leftover)
        return found

    def explain(self, name: str, *, paper: bool = False) -> Explanation:
        """How a view is kept, what the next refresh would do, and how it is derived."""
        self.catalog.load()
        suggested = partial(first_suggestion, self.parts, self._definitions)
        return explain(self.parts, self._refresher, self.catalog.view(name), suggested, paper)

    def suggest(self, query: str | None = None, *, view: str | None = None) -> Advice:
        """How a query would be kept, or a view is, and rewrites of it that are kept better."""
        self.catalog.load()
        return advise(self.parts, self._definitions, query, view)

    def status(self) -> tuple[ViewStatus, ...]:
        """Each view's policy, freshness and last refresh."""
        self.catalog.load()
        return tuple(status_of(self.parts, self._refresher, view) for view in self.catalog.views())

    def sql(self, text: str) -> Any:
        """Run a statement: those on materialized views here, everything else by Spark."""
        self.catalog.load()
        return run_statement(self, text)

    @cancellable()
    def _create(
        self,
        name: str,
        strategy: Strategy,
        policy: Policy | str,
        replace_existing: bool,
        comment: str | None,
        wanted: str,
        *,
        sql: str | None = None,
        function: str | None = None,
    ) -> Report:
        chosen = Policy.named(policy)
        check_applicable(name, wanted, strategy)
        check_strict(name, chosen, strategy)
        fits = self._definitions.like_analyzed(strategy.sources)
        old = next((view for view in self.catalog.views() if view.name == name), None)
        if old is None or not replace_existing:
            self.catalog.check_free(name)
        else:
            check_replaceable(self.catalog, name, strategy.sources)
        entry = ViewEntry(
            name,
            *new_place(name),
            strategy.sources,
            tuple(a.name for a in strategy.visible),
            strategy.is_counted or strategy.has_copies,
            strategy.technique.value,
            chosen,
            sql,
            function,
            comment,
            settings_of(self.spark, COPIED_SETTINGS),
            self._definitions.source_columns(strategy.sources),
            wanted,
        )
        with progress(f"computing {name}"), self._held(name) as held:
            try:
                with spark_writes():
                    report = self._refresher.create(entry, strategy, old, held, fits)
            except BaseException as problem:
                self.catalog.load()
                if entry.id not in {view.id for view in self.catalog.views()}:
                    self._forget(entry)
                if isinstance(problem, TableMissing):
                    for source in entry.sources:
                        self.catalog.get(source)  # the better error, if one was dropped meanwhile
                raise
            if old is not None:
                self._forget(old)
        return report

    def _held(self, view: str) -> AbstractContextManager[Lease]:
        """The lease of a view, as long as its creation or refresh may take."""
        return lease(view_lease(self.root, view), wait_s=VIEW_LEASE_S)

    def _forget(self, entry: ViewEntry) -> None:
        self.parts.evaluator.forget(entry.name)
        shutil.rmtree(self.catalog.path(entry), ignore_errors=True)


def open_warehouse(
    path: str | Path,
    spark: SparkSession | None = None,
    *,
    create: bool = True,
    clock: Clock | None = None,
) -> Warehouse:
    """Open a warehouse folder, making it one if it is none yet and ``create`` allows it.

    Views over ``current_date()`` and the like are refreshed for the moment that ``clock`` returns.

    A transaction that was interrupted is completed, as far as its tables allow it; if they do not,
    the next refresh says so. One that somebody is working on is left to them, and so is one for which
    there is no room: reading needs none.
    """
    if create:
        Catalog.create(Path(path).absolute())
    warehouse = Warehouse(path, spark, clock=clock or system_clock)
    with suppress(Busy, WriteFailed):
        warehouse.parts.transactions.recover(wait_s=0)
    return warehouse
