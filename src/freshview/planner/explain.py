"""A refresh plan for people: the expressions that are evaluated, and how each leaf gets its rows."""

from __future__ import annotations

from collections.abc import Iterator

from freshview.algebra.relations import Changes, Given, Relation, Scan
from freshview.algebra.render import describe, render
from freshview.algebra.traverse import children
from freshview.planner.lookups import probe_text
from freshview.planner.plan import RefreshPlan
from freshview.planner.stages import LookUpRows, ReadChanges, ReadStored, ScanRows
from freshview.planner.strategy import Strategy, Technique

_CITED = {
    Technique.COUNTING: "counting [B07 3]",
    Technique.DELTA: "delta propagation [B07 4], applied by counting [B07 3]",
    Technique.CHANGE_TABLE: "change table [GM06 4–5]",
    Technique.GROUP_RECOMPUTE: "group recompute [B07 4.4]",
    Technique.FULL: "full recompute",
}


def technique_text(strategy: Strategy) -> str:
    return _CITED[strategy.technique]


def view_text(strategy: Strategy) -> str:
    return render(strategy.relation)


def operator_text(plan: RefreshPlan) -> Iterator[str]:
    """Each step of the refresh as a tree, its leaves with the way in which their rows are found."""
    fetched = {s.leaf: s for s in plan.stages if isinstance(s, LookUpRows | ScanRows)}
    changed = {s.source: s for s in plan.stages if isinstance(s, ReadChanges)}
    stored = next(s for s in plan.stages if isinstance(s, ReadStored))
    for step in plan.steps.steps:
        name = "⊔" if step.leaf is None else step.leaf.name
        yield f"{name} ="
        yield from _tree(step.relation, "  ", fetched, changed, stored)


def _tree(
    node: Relation,
    indent: str,
    fetched: dict[Scan, LookUpRows | ScanRows],
    changed: dict[str, ReadChanges],
    stored: ReadStored,
) -> Iterator[str]:
    yield indent + describe(node)
    match node:
        case Changes(table, _):
            read = changed[table]
            yield f"{indent}    versions {read.after} → {read.upto}: {read.rows or 0} rows"
        case Scan() if node == stored.leaf:
            way = "by key" if stored.by_key else "all rows"
            yield f"{indent}    version {stored.version}, {way}: ≈ {stored.expected} rows"
        case Scan():
            yield f"{indent}    {_way(fetched[node])}"
        case Given():
            pass
        case _:
            for child in children(node):
                yield from _tree(child, indent + "  ", fetched, changed, stored)


def _way(stage: LookUpRows | ScanRows) -> str:
    if isinstance(stage, ScanRows):
        return f"version {stage.version}, scanned by Spark: {stage.expected} rows"
    probe = probe_text(stage.leaf, stage.probes[0])
    return f"version {stage.version}, by {probe}: ≈ {stage.expected} rows"
