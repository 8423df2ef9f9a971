"""A refresh plan for people: per operator the technique, formula, state, lookup and expected rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from freshview.algebra.relations import (
    Changes,
    Join,
    Relation,
    Scan,
    Select,
    State,
)
from freshview.algebra.render import describe, names, render
from freshview.algebra.traverse import children, scans, walk
from freshview.planner.lookups import Term, is_spj, probe_text
from freshview.planner.plan import RefreshPlan
from freshview.planner.stages import LookUpRows, ReadChanges, ReadStored, ScanRows
from freshview.planner.strategy import Strategy, Technique

_STATE = {State.PRE: "before", State.POST: "after", State.NOW: "now"}
_CITED = {
    Technique.COUNTING: "counting [B07 3]",
    Technique.CHANGE_TABLE: "change table [GM06 4–5] over counting [B07 3]",
    Technique.FULL: "full recompute",
}


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """How one operator takes part in a refresh."""

    operator: str
    technique: str
    formula: str
    state: str
    lookup: str
    rows: str


def technique_text(strategy: Strategy) -> str:
    return _CITED[strategy.technique]


def view_text(strategy: Strategy) -> str:
    return render(strategy.relation)


def operator_lines(plan: RefreshPlan) -> Iterator[tuple[str, tuple[OperatorLine, ...]]]:
    """The terms of the delta, each from its changed table outwards, then what is done with them."""
    operands = {s.leaf: s for s in plan.stages if isinstance(s, LookUpRows | ScanRows)}
    changed = {s.source: s for s in plan.stages if isinstance(s, ReadChanges)}
    total = 0
    for term in plan.change.terms:
        read = changed[term.delta.table]
        scan = OperatorLine(
            describe(term.delta),
            "scan",
            "δR = Rᵖᵒˢᵗ ∸ Rᵖʳᵉ, signed",
            f"versions {read.after} → {read.upto}",
            "change feed or file difference",
            f"δ {read.rows or 0}",
        )
        above, rows = _term_lines(_subtree(plan.change.relation, term), operands, read.rows or 0)
        total += rows
        yield f"term {term.number}: what the changes of {term.delta.table} meet", (scan, *above)
    yield "then", tuple(_top_lines(plan, total))


def _term_lines(
    node: Relation, operands: dict[Scan, LookUpRows | ScanRows], rows: int
) -> tuple[list[OperatorLine], int]:
    """The operators above a term's delta, bottom up, and the rows that come out on top."""
    below = next((c for c in children(node) if _has_delta(c)), None)
    if below is None:
        return [], rows
    lines, rows = _term_lines(below, operands, rows)
    match node:
        case Join(_, right, _):
            leaf = scans(right)[0]
            stage = operands[leaf]
            rows = max(rows, stage.expected) if isinstance(stage, LookUpRows) else rows
            mark = "ᵖʳᵉ" if leaf.state is State.PRE else "ᵖᵒˢᵗ"
            operand = f"{leaf.table}{mark}" if right is leaf else f"σ({leaf.table}{mark})"
            line = OperatorLine(
                describe(node),
                "counting",
                f"δE ⋈ {operand}",
                f"{leaf.table} {_STATE[leaf.state]}, version {stage.version}",
                _lookup_text(stage),
                f"read ≈ {stage.expected}, δ ≈ {rows}",
            )
        case Select():
            line = OperatorLine(describe(node), "counting", "δ(σE) = σ(δE)", "", "", f"δ ≤ {rows}")
        case _:
            line = OperatorLine(describe(node), "counting", "δ(ΠE) = Π(δE)", "", "", f"δ ≤ {rows}")
    return [*lines, line], rows


def _lookup_text(stage: LookUpRows | ScanRows) -> str:
    if isinstance(stage, ScanRows):
        return "none: Spark scans it"
    return probe_text(stage.leaf, stage.probes[0])


def operator_text(plan: RefreshPlan) -> Iterator[str]:
    """The operators as lines of text, narrow enough for a terminal."""
    for title, lines in operator_lines(plan):
        yield title
        for line in lines:
            yield f"  {line.operator}"
            yield f"      {line.technique}: {line.formula}"
            details = [("reads", line.state), ("by", line.lookup), ("rows", line.rows)]
            yield "      " + "; ".join(f"{name} {text}" for name, text in details if text)


def _top_lines(plan: RefreshPlan, total: int) -> Iterator[OperatorLine]:
    strategy = plan.strategy
    stored = next(s for s in plan.stages if isinstance(s, ReadStored))
    way = "by key" if stored.by_key else "all rows: it is small"
    state = f"{strategy.view} before, version {stored.version}"
    if strategy.technique is Technique.COUNTING:
        yield OperatorLine(
            "count table", "counting", "c = σ_{n≠0}(π_{A, sum(n)}(⊎ δE))", "", "", f"≤ {total}"
        )
        yield OperatorLine(
            "R_count", "counting", "count + n; delete at 0", state, way, f"≤ {total}"
        )
        return
    assert strategy.layout is not None
    assert strategy.aggregate is not None
    group = names(strategy.layout.group) or "∅"
    states = ", ".join(a.name for a in strategy.layout.states.attributes)
    yield OperatorLine(
        describe(strategy.aggregate),
        "change table",
        f"□V = π_{{{group}; Σ {states}}}(⊎ δE)",
        "",
        "",
        f"≤ {total}",
    )
    yield OperatorLine(
        f"{strategy.view} ⊔ □{strategy.view}",
        "refresh operator",
        "J₁: ≡_G ∧ rows+□rows≠0 → U = ⟨+, …⟩;  J₂: ≡_G ∧ rows+□rows=0 → delete;  else insert",
        state,
        way,
        f"≤ {total}",
    )


def _subtree(change: Relation, term: Term) -> Relation:
    """The part of the change expression that is this term."""
    for node in walk(change):
        leaves = [leaf for leaf in walk(node) if isinstance(leaf, Scan | Changes)]
        deltas = [leaf for leaf in leaves if isinstance(leaf, Changes)]
        own = all(leaf.term == term.number for leaf in leaves if isinstance(leaf, Scan))
        if (
            is_spj(node)
            and deltas == [term.delta]
            and own
            and set(_scans(term)) == set(leaves) - {term.delta}
        ):
            return node
    raise AssertionError("every term is part of its change expression")


def _scans(term: Term) -> list[Scan]:
    return [lookup.leaf for lookup in term.lookups]


def _has_delta(relation: Relation) -> bool:
    return any(isinstance(node, Changes) for node in walk(relation))
