"""From what changed to the list of stages: pure, so that explain and tests need no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from freshview.algebra.clock import is_clock
from freshview.algebra.relations import Changes, Given, Relation, Scan, State
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import scans, walk
from freshview.delta.derivation import Kind
from freshview.planner.bounds import Leaf, Origin, origin_of
from freshview.planner.cost import Costs, LastRecompute, full_ms, incremental_ms
from freshview.planner.lookups import LookUp, LookupPlanner
from freshview.planner.stages import (
    ApplyRows,
    EvaluateRefresh,
    EvaluateStep,
    LookUpRange,
    LookUpRows,
    ReadChanges,
    ReadClock,
    ReadStored,
    ScanRows,
    Stage,
)
from freshview.planner.strategy import Refreshed, StoredKeys, Strategy

RANGE_SHARE = 100
"""Of so many rows of a table one is expected to turn when the clock moves: a day of some months."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a refresh knows of a source: versions before and after, its size, its changed rows."""

    name: str
    before: int
    after: int
    rows: int
    changed: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may come to the driver; past it, Spark does the same work on the tables."""

    delta_rows: int = 200_000
    delta_bytes: int = 64 << 20
    lookup_rows: int = 500_000
    whole_view_rows: int = 50_000


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluation: its expression, the rows it needs looked up, and the leaf that it becomes.

    The last step of a refresh is the refresh operator and becomes no leaf.
    """

    relation: Relation
    lookups: tuple[LookUp, ...]
    leaf: Given | None

    def reads(self, leaf: Leaf) -> bool:
        return any(node == leaf for node in walk(self.relation))


@dataclass(frozen=True, slots=True)
class Steps:
    """The evaluations of a refresh in order, and the leaf that stands for the stored view."""

    steps: tuple[Step, ...]
    stored: Scan


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The derived expressions of a view for one set of changed sources; data-independent.

    ``direct`` has the change table inside the last step, for a view that is read as a whole;
    ``stepwise`` has it as a step of its own, whose ``keys`` are then looked up in the view.
    """

    direct: Steps | None
    stepwise: Steps
    keys: tuple[StoredKeys, ...]


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """The stages of one incremental refresh, the estimates, and what they were made from."""

    strategy: Strategy
    change: ChangePlan
    steps: Steps
    stages: tuple[Stage, ...]
    costs: Costs


def change_plan(strategy: Strategy, changed: Mapping[str, Kind]) -> ChangePlan | None:
    """The steps of a refresh when these sources change; None if the view cannot."""
    maintenance = strategy.maintenance(changed)
    if maintenance is None:
        return None
    direct = None if maintenance.direct is None else _steps(strategy, maintenance.direct)
    return ChangePlan(direct, _steps(strategy, maintenance.stepwise), maintenance.keys)


def _steps(strategy: Strategy, refreshed: Refreshed) -> Steps:
    planner = LookupPlanner(strategy.view)
    steps = [
        Step(*planner.step(temporary.relation), temporary.leaf)
        for temporary in refreshed.temporaries
    ]
    steps.append(Step(*planner.step(refreshed.relation), None))
    return Steps(tuple(steps), refreshed.stored)


def refresh_plan(
    strategy: Strategy,
    change: ChangePlan,
    sources: Mapping[str, Source],
    view_version: int,
    view_rows: int,
    limits: Limits,
    last: LastRecompute | None,
) -> RefreshPlan:
    """The stages of an incremental refresh, in the order in which they run."""
    stages: list[Stage] = [
        ReadChanges(s.name, s.before, s.after, source_columns(strategy, s.name), s.changed)
        for s in sources.values()
        if s.after != s.before
    ]
    touched = sum(s.changed for s in sources.values())
    small = view_rows <= limits.whole_view_rows and change.direct is not None
    whole = small or strategy.is_read_whole
    steps = change.direct if whole and change.direct is not None else change.stepwise
    reading = ReadStored(
        steps.stored,
        view_version,
        by_key=not whole,
        expected=view_rows if whole else min(touched, view_rows),
    )
    stages += _evaluations(steps, reading, sources, limits)
    stages.append(ApplyRows(strategy.view, tuple(a.name for a in strategy.key)))
    found = (s.expected for s in stages if isinstance(s, LookUpRows | LookUpRange | ReadStored))
    local = sum(found) + touched
    scanned = tuple(s.expected for s in stages if isinstance(s, ScanRows))
    evaluations = sum(isinstance(s, EvaluateStep) for s in stages)
    everything = sum(sources[scan.table].rows for scan in scans(strategy.relation))
    costs = Costs(incremental_ms(local, scanned, evaluations), full_ms(everything, last))
    return RefreshPlan(strategy, change, steps, tuple(stages), costs)


def _evaluations(
    steps: Steps, reading: ReadStored, sources: Mapping[str, Source], limits: Limits
) -> Iterator[Stage]:
    """For each step the rows that it needs and that no earlier step has fetched, then the step."""
    expected = _Expected(sources)
    fetched: set[Leaf] = set()
    for step in steps.steps:
        for leaf in walk(step.relation):
            if isinstance(leaf, Changes):
                expected.of_changes(leaf)
        for lookup in step.lookups:
            if lookup.leaf not in fetched:
                fetched.add(lookup.leaf)
                yield _operand(lookup, expected, sources, limits)
        if steps.stored not in fetched and step.reads(steps.stored):
            fetched.add(steps.stored)
            yield reading
        if step.leaf is None:
            yield EvaluateRefresh(step.relation)
        else:
            expected.of_step(step.relation, step.leaf)
            yield EvaluateStep(step.relation, step.leaf)


@dataclass(frozen=True, slots=True)
class _Found:
    """How many rows are expected to be at hand, out of how many."""

    rows: int
    of: int


class _Expected:
    """What is expected of each column that keys can be taken from."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._found: dict[tuple[Leaf, Attribute], _Found] = {}
        self._changed = _Found(
            sum(s.changed for s in sources.values()), max(s.rows for s in sources.values())
        )

    def of_changes(self, leaf: Changes) -> None:
        source = self._sources[leaf.table]
        self._set(leaf, _Found(source.changed, source.rows))

    def of_lookup(self, leaf: Scan, rows: int) -> None:
        self._set(leaf, _Found(rows, self._sources[leaf.table].rows))

    def of_step(self, relation: Relation, leaf: Given) -> None:
        """A temporary's column is as selective as the columns that it comes from."""
        for attribute in leaf.attributes:
            origin = origin_of(relation, attribute)
            found = None if origin is None else self.of(origin)
            self._found[leaf, attribute] = found or self._changed

    def of(self, origin: Origin) -> _Found | None:
        """The expectation for all columns of an origin, or None if one is not at hand."""
        parts = [self._found.get(column) for column in origin.columns]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        return _Found(sum(part.rows for part in known), max(part.of for part in known))

    def _set(self, leaf: Leaf, found: _Found) -> None:
        self._found.update({(leaf, attribute): found for attribute in leaf.attributes})


def _operand(
    lookup: LookUp, expected: _Expected, sources: Mapping[str, Source], limits: Limits
) -> LookUpRows | LookUpRange | ReadClock | ScanRows:
    leaf = lookup.leaf
    source = sources[leaf.table]
    version = source.before if leaf.state is State.PRE else source.after
    if is_clock(leaf.table):
        expected.of_lookup(leaf, 1)
        return ReadClock(leaf, version)
    found = [(p, keys) for p in lookup.probes if (keys := expected.of(p.origin)) is not None]
    if found:
        rows = min(_met(keys, source) for _, keys in found)
        if rows <= limits.lookup_rows:
            expected.of_lookup(leaf, rows)
            return LookUpRows(leaf, version, tuple(p for p, _ in found), rows, lookup.needs)
    if lookup.ranges:
        rows = max(1, source.rows // RANGE_SHARE)
        expected.of_lookup(leaf, rows)
        return LookUpRange(leaf, version, lookup.ranges[0], rows, lookup.needs)
    return ScanRows(leaf, version, source.rows, lookup.needs)


def _met(keys: _Found, source: Source) -> int:
    """Keys times a fan-out guessed from the sizes: a row of orders meets 4 of lineitem, 1 of customer."""
    fan_out = max(1, round(source.rows / max(keys.of, 1)))
    return min(keys.rows * fan_out, source.rows)


def source_columns(strategy: Strategy, source: str) -> tuple[str, ...]:
    """The columns of a source that the view reads, in any of its occurrences."""
    names = [
        attribute.name
        for scan in scans(strategy.relation)
        if scan.table == source
        for attribute in scan.attributes
    ]
    return tuple(dict.fromkeys(names))
