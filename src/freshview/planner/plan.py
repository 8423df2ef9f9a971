"""From what changed to the list of stages: pure, so that explain and tests need no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from freshview.algebra.expressions import Column
from freshview.algebra.relations import Output, Project, Relation, Scan, State
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import numbering, scans
from freshview.planner.cost import Costs, LastRecompute, full_ms, incremental_ms
from freshview.planner.lookups import LookUp, Probe, Term, separate
from freshview.planner.stages import (
    ApplyRows,
    EvaluateChange,
    EvaluateRefresh,
    LookUpRows,
    ReadChanges,
    ReadStored,
    ScanRows,
    Stage,
)
from freshview.planner.strategy import Strategy
from freshview.rewrite.merge_projections import merge_projections


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
class ChangePlan:
    """The derived expressions of a view for one set of changed sources; data-independent."""

    relation: Relation
    terms: tuple[Term, ...]
    refreshed: Relation
    stored: Scan
    change_leaf: Scan
    """Stands for the evaluated change table where the view is too large to be read as a whole."""
    change_columns: Relation
    """The change expression with columns named as in ``change_leaf``."""
    refreshed_from_leaf: Relation
    stored_of_leaf: Scan


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """The stages of one incremental refresh, the estimates, and what they were made from."""

    strategy: Strategy
    change: ChangePlan
    stages: tuple[Stage, ...]
    costs: Costs


def change_plan(strategy: Strategy, changed: frozenset[str]) -> ChangePlan | None:
    """The change and refresh expressions when these sources change; None if the view cannot."""
    change = strategy.change(changed)
    if change is None:
        return None
    relation, terms = separate(merge_projections(change))
    whole = strategy.refreshed(relation)
    new = numbering(relation)
    columns = tuple(new.attribute(f"c{a.id}", a.type, a.nullable) for a in relation.attributes)
    leaf = Scan(f"□{strategy.view}", columns)
    pairs = tuple(zip(relation.attributes, columns, strict=True))
    named = Project(relation, tuple(Output(c, Column(a)) for a, c in pairs))
    again = Project(leaf, tuple(Output(a, Column(c)) for a, c in pairs))
    large = strategy.refreshed(again)
    return ChangePlan(
        relation, terms, whole.relation, whole.stored, leaf, named, large.relation, large.stored
    )


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
    for term in change.terms:
        origin = sources[term.delta.table]
        found = dict.fromkeys(term.delta.columns, _Found(origin.changed, origin.rows))
        stages += [_operand(lookup, found, sources, limits) for lookup in term.lookups]
    large = view_rows > limits.whole_view_rows and not _has_one_row(strategy)
    touched = sum(sources[term.delta.table].changed for term in change.terms)
    if large:
        stages.append(EvaluateChange(change.change_columns, change.change_leaf))
    stored = change.stored_of_leaf if large else change.stored
    expected = min(touched, view_rows) if large else view_rows
    stages.append(ReadStored(stored, view_version, by_key=large, expected=expected))
    stages.append(EvaluateRefresh(change.refreshed_from_leaf if large else change.refreshed))
    stages.append(ApplyRows(strategy.view, tuple(a.name for a in strategy.key)))
    local = sum(s.expected for s in stages if isinstance(s, LookUpRows | ReadStored)) + touched
    scanned = tuple(s.expected for s in stages if isinstance(s, ScanRows))
    everything = sum(sources[scan.table].rows for scan in scans(strategy.relation))
    costs = Costs(incremental_ms(local, scanned), full_ms(everything, last))
    return RefreshPlan(strategy, change, tuple(stages), costs)


def _has_one_row(strategy: Strategy) -> bool:
    return strategy.aggregate is not None and not strategy.aggregate.group


@dataclass(frozen=True, slots=True)
class _Found:
    """How many rows are expected to be at hand, out of how many."""

    rows: int
    of: int


def _operand(
    lookup: LookUp, found: dict[Attribute, _Found], sources: Mapping[str, Source], limits: Limits
) -> LookUpRows | ScanRows:
    leaf = lookup.leaf
    source = sources[leaf.table]
    version = source.before if leaf.state is State.PRE else source.after
    probes = tuple(p for p in lookup.probes if p.source in found)
    if probes:
        expected = min(_expected(probe, found, source) for probe in probes)
        if expected <= limits.lookup_rows:
            found.update(dict.fromkeys(leaf.attributes, _Found(expected, source.rows)))
            return LookUpRows(leaf, version, probes, expected)
    return ScanRows(leaf, version, source.rows)


def _expected(probe: Probe, found: dict[Attribute, _Found], source: Source) -> int:
    """Keys times a fan-out guessed from the sizes: a row of orders meets 4 of lineitem, 1 of customer."""
    keys = found[probe.source]
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
