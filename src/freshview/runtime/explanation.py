"""EXPLAIN: how a view is kept, and the stages of the refresh that is due now."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from freshview.advice.suggestion import Suggestion, suggestion_text
from freshview.algebra.clock import is_clock
from freshview.algebra.clock_time import shown_clock
from freshview.delta.derivation import Kind
from freshview.errors import HistoryLost
from freshview.planner.derivation_text import derivation_text
from freshview.planner.explain import (
    alternatives_text,
    node_text,
    operator_text,
    technique_text,
    update_text,
    view_text,
)
from freshview.planner.plan import RefreshPlan
from freshview.planner.stages import Advance, Recompute, Stage
from freshview.planner.strategy import Strategy
from freshview.reasons import Reason, reason_of
from freshview.runtime.catalog import Policy, ViewEntry
from freshview.runtime.commit import Consumed, SourceVersion
from freshview.runtime.incremental import cheaper, kinds, row_count
from freshview.runtime.parts import Parts
from freshview.runtime.recompute_reasons import reason_for_full

if TYPE_CHECKING:
    from freshview.runtime.refresh import Refresher


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one view; ``str`` gives the text, ``to_json`` the same for programs."""

    view: str
    technique: str
    policy: str
    sources: tuple[str, ...]
    algebra: str
    alternatives: tuple[str, ...]
    nodes: tuple[str, ...]
    update: tuple[str, ...]
    assumed: bool
    operators: tuple[str, ...]
    stages: tuple[str, ...]
    reason: Reason | None = None
    incremental_ms: float | None = None
    full_ms: float | None = None
    paper: tuple[str, ...] = ()
    """The derivation in the papers' letters, if it was asked for."""
    suggestion: Suggestion | None = None
    """A rewrite that is kept incrementally, of a definition that is not."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        lines = [
            self.view,
            f"  technique  {self.technique}",
            f"  policy     {self.policy}",
            f"  reads      {', '.join(self.sources)}",
            "",
            "view",
            *("  " + line for line in self.algebra.split("\n")),
        ]
        if self.reason is not None:
            lines += ["", "not incremental", *("  " + x for x in str(self.reason).split("\n"))]
        if self.suggestion is not None:
            lines += ["", "suggested rewrite", *suggestion_text(self.suggestion)]
        if self.alternatives:
            lines += ["", "other techniques", *("  " + line for line in self.alternatives)]
        if self.nodes:
            lines += ["", "nodes", *("  " + line for line in self.nodes)]
        if self.update:
            lines += ["", "refresh operator", *("  " + line for line in self.update)]
        if self.paper:
            lines += ["", "derivation", *("  " + line for line in self.paper)]
        if self.operators:
            lines += ["", "steps", *("  " + line for line in self.operators)]
        due = "stages, if every source had one changed row" if self.assumed else "stages due now"
        lines += ["", due, *(f"  {n} {stage}" for n, stage in enumerate(self.stages, start=1))]
        if self.incremental_ms is not None:
            lines.append(
                f"  estimated {self.incremental_ms:.0f} ms; a recompute {self.full_ms:.0f} ms"
            )
        return "\n".join(lines)


def explain(
    parts: Parts,
    refresher: Refresher,
    entry: ViewEntry,
    suggested: Callable[[ViewEntry], Suggestion | None],
    paper: bool = False,
) -> Explanation:
    """Explain the refresh that is due; if nothing changed, one with a row changed in each source.

    What is printed is what a refresh would now do, with the reason if that is a recompute, and with
    the first rewrite that ``suggested`` has if it is the definition that makes it one.
    """
    strategy = parts.strategy(entry)
    consumed = refresher.consumed(entry)
    read = (*entry.sources, *strategy.clocks)
    vector = {name: parts.sources.pinned(name) for name in read}
    growing = refresher.incremental.append_only(vector)
    sources = tuple(
        _moved(name, consumed, vector[name].version) + (" (append-only)" if name in growing else "")
        for name in read
    )
    plan: RefreshPlan | None = None
    assumed, stages = False, tuple[Stage, ...]()
    reason = strategy.reason or reason_for_full(
        parts, entry, entry.policy, strategy, consumed, vector
    )
    if reason is None:
        try:
            plan, assumed = _plan(refresher, entry, strategy, consumed, vector)
        except HistoryLost as lost:
            reason = reason_of(lost)
    if plan is not None:
        stages = plan.stages
        if assumed and vector != consumed.sources:
            assumed, stages = False, (Advance(entry.name),)
        elif not assumed and entry.policy is Policy.AUTO and plan.costs.prefers_full:
            reason = cheaper(plan)
    if reason is not None:
        stages = (Recompute(entry.name, reason),)
    return Explanation(
        entry.name,
        technique_text(strategy),
        entry.policy.value,
        sources,
        view_text(strategy),
        tuple(alternatives_text(strategy)),
        tuple(node_text(strategy)),
        tuple(update_text(strategy)),
        assumed,
        () if plan is None else tuple(operator_text(plan)),
        tuple(str(stage) for stage in stages),
        reason,
        None if plan is None else plan.costs.incremental_ms,
        None if plan is None else plan.costs.full_ms,
        _derivations(strategy) if paper else (),
        None if strategy.reason is None else suggested(entry),
    )


def _derivations(strategy: Strategy) -> tuple[str, ...]:
    """For each source, what becomes of its change."""
    if strategy.reason is not None:
        return ()
    lines: list[str] = []
    for source in (*strategy.sources, *strategy.clocks):
        lines += [f"{source} changes", *("  " + line for line in derivation_text(strategy, source))]
    return tuple(lines)


def _plan(
    refresher: Refresher,
    entry: ViewEntry,
    strategy: Strategy,
    consumed: Consumed,
    vector: dict[str, SourceVersion],
) -> tuple[RefreshPlan, bool]:
    """The plan of the refresh that is due, or of an assumed one if nothing has changed."""
    incremental = refresher.incremental
    deltas = incremental.deltas(strategy, consumed, vector, {}, {})
    counts = {n: row_count(rows, incremental.limits.delta_rows) for n, rows in deltas.items()}
    arrived = {name: count for name, count in counts.items() if count}
    assumed = not arrived
    growing = incremental.append_only(vector)
    if assumed:
        arrived = dict.fromkeys(vector, 1)
        vector = {n: SourceVersion(s.version + 1, s.table_id) for n, s in vector.items()}
    found = {n: Kind.INSERTIONS if n in growing else Kind.ANY for n in arrived}
    if not assumed:
        found = kinds({n: deltas[n] for n in arrived}, growing)
    change = incremental.change(strategy, found)
    assert change is not None
    rows = {name: SourceVersion(consumed.sources[name].version, "") for name in vector}
    plan = incremental.plan(entry, strategy, consumed, vector, arrived, change, sizes_at=rows)
    return plan, assumed


def _moved(name: str, consumed: Consumed, latest: int) -> str:
    held = consumed.sources.get(name)
    has = latest if held is None else held.version  # None: its function reads a clock since now
    if is_clock(name):
        before, now = (shown_clock(name, version) for version in (has, latest))
        return f"{name} {now}" if has == latest else f"{name} {before}→{now}"
    return f"{name}@{has}" if has == latest else f"{name}@{has}→{latest}"
