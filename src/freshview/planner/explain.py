"""A refresh plan for people: the expressions that are evaluated, and how each leaf gets its rows."""

from __future__ import annotations

from collections.abc import Iterator

from freshview.algebra.clock_time import shown_clock
from freshview.algebra.relations import Changes, Given, Relation, Scan
from freshview.algebra.render import describe, names, render
from freshview.algebra.traverse import children, tables
from freshview.planner.dispatch import TECHNIQUES
from freshview.planner.lookups import probe_text, range_text
from freshview.planner.plan import RefreshPlan
from freshview.planner.roles import roles
from freshview.planner.stages import (
    Fetching,
    LookUpRange,
    LookUpRows,
    ReadChanges,
    ReadClock,
    ReadStored,
    ScanRows,
)
from freshview.planner.strategy import Strategy, Technique
from freshview.planner.techniques import strategy as choose

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


def node_text(strategy: Strategy) -> Iterator[str]:
    """Each node of the view with its technique, formula, and what else was possible or why not."""
    for role in roles(strategy):
        indent = "  " * role.depth
        yield indent + describe(role.node)
        rule = role.rule
        if rule is None:
            continue
        mark = " (conversion point)" if role.conversion_point else ""
        yield f"{indent}    {role.technique.value}{mark}: {rule.formula}  {rule.source}"
        for code in role.singular:
            yield f"{indent}    singularity point: {code}"
        known = [t.value for t, why in role.others() if why is None]
        if known:
            yield f"{indent}    rules of other techniques: {', '.join(known)}"
        for technique, why in role.others():
            if why is not None:
                yield f"{indent}    not {technique.value}: {why}"


def alternatives_text(strategy: Strategy) -> Iterator[str]:
    """The other techniques for the view as a whole: which could be asked for, and why not the rest."""
    for technique in TECHNIQUES:
        if technique is not strategy.technique:
            made = choose(strategy.view, strategy.relation, technique)
            if made.reason is None:
                yield f"{technique.value}: possible"
            else:
                yield f"{technique.value}: not possible, {made.reason.code}: {made.reason.why}"


def update_text(strategy: Strategy) -> Iterator[str]:
    """θ and U of the refresh operator that the view's change tables are applied by."""
    if strategy.layout is not None and strategy.technique is Technique.CHANGE_TABLE:
        states = strategy.layout.states
        group = names(strategy.layout.group) or "∅"
        yield f"J₁: ≡_{{{group}}} ∧ rows + □rows ≠ 0   J₂: ≡_{{{group}}} ∧ rows + □rows = 0"
        functions = [f"({a.name}, +)" for a in states.additive]
        functions += [f"({e.value.name}, {e.function} or late)" for _, e in states.extrema]
        yield f"U = ⟨{', '.join(functions)}⟩"
    elif strategy.row_layout is not None:
        layout = strategy.row_layout
        yield f"≡_K, K = {{{', '.join(a.name for a in layout.key)}}}; a row goes when a part of it is dead"
        stored = dict(zip(layout.columns, layout.stored, strict=True))
        for number, part in enumerate(layout.extent.parts, start=1):
            functions = [f"({stored[a].name}, +)" for a in part.states]
            tables_ = ", ".join(tables(part.source))
            ends = layout.extent.singularity(part)
            until = "" if ends is None else f"; ends at {ends.subject} ({ends.code})"
            yield f"part {number} ({tables_}): U = ⟨{', '.join(functions)}⟩{until}"


def operator_text(plan: RefreshPlan) -> Iterator[str]:
    """Each step of the refresh as a tree, its leaves with the way in which their rows are found."""
    fetched = {s.leaf: s for s in plan.stages if isinstance(s, Fetching)}
    changed = {s.source: s for s in plan.stages if isinstance(s, ReadChanges)}
    stored = next(s for s in plan.stages if isinstance(s, ReadStored))
    for step in plan.steps.steps:
        name = "⊔" if step.leaf is None else step.leaf.name
        yield f"{name} ="
        yield from _tree(step.relation, "  ", fetched, changed, stored)


def _tree(
    node: Relation,
    indent: str,
    fetched: dict[Scan, Fetching],
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


def _way(stage: Fetching) -> str:
    match stage:
        case ScanRows():
            return f"version {stage.version}, scanned by Spark: {stage.expected} rows"
        case ReadClock():
            return shown_clock(stage.leaf.table, stage.version)
        case LookUpRange():
            probe = range_text(stage.leaf, stage.range)
        case LookUpRows():
            probe = probe_text(stage.leaf, stage.probes[0])
    return f"version {stage.version}, by {probe}: ≈ {stage.expected} rows"
