"""What each node of a view does in its refresh: its technique, and what else would have been possible.

A conversion point is where deltas become a change table ([B07] Definition 5.1); a singularity point is
where a change table ends and insertions and deletions go on ([GM06] 5.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from freshview.algebra.relations import (
    Aggregate,
    Join,
    Limit,
    OuterJoin,
    Project,
    Recursion,
    Relation,
    Select,
    Sort,
    Union,
)
from freshview.algebra.render import describe
from freshview.algebra.traverse import children
from freshview.change_table.extent import AggregatePart, Extent, is_structured
from freshview.counting.canonical import is_spju
from freshview.planner.dispatch import TABLE, TECHNIQUES, Hole, Rule, operator_of
from freshview.planner.strategy import Strategy, Technique


@dataclass(frozen=True, slots=True)
class Role:
    """One node, how deep it lies, and by what it is kept."""

    depth: int
    node: Relation
    technique: Technique
    conversion_point: bool = False
    singular: tuple[str, ...] = ()

    @property
    def rule(self) -> Rule | None:
        """The rule by which the node takes part, if its operator has one."""
        operator = operator_of(self.node)
        cell = None if operator is None else TABLE[operator][self.technique]
        return cell if isinstance(cell, Rule) else None

    def others(self) -> tuple[tuple[Technique, str | None], ...]:
        """The other techniques: those that have a rule for the operator, and why the rest has none."""
        operator = operator_of(self.node)
        if operator is None:
            return ()
        row = TABLE[operator]
        found = []
        for technique in TECHNIQUES:
            if technique is not self.technique:
                cell = row[technique]
                found.append((technique, cell.why if isinstance(cell, Hole) else None))
        return tuple(found)


def roles(strategy: Strategy) -> tuple[Role, ...]:
    """The nodes of a view from the top down."""
    relation = strategy.relation
    match strategy.technique:
        case Technique.FULL:
            return ()
        case Technique.COUNTING | Technique.DELTA:
            return tuple(_plain(relation, 0, strategy.technique))
        case _:
            if strategy.row_layout is not None:
                return tuple(_structured(relation, 0, strategy.row_layout.extent))
            return tuple(_grouped(strategy, relation, 0))


def _plain(node: Relation, depth: int, technique: Technique | None = None) -> Iterator[Role]:
    """A part that is kept by rows: by counting if it can be, else by deltas."""
    if technique is None:
        technique = Technique.COUNTING if is_spju(node) else Technique.DELTA
    yield Role(depth, node, technique)
    if isinstance(node, Recursion):
        return  # what is inside is evaluated in both states, and derived by no rule
    for child in children(node):
        yield from _plain(child, depth + 1, technique)


def _grouped(strategy: Strategy, node: Relation, depth: int) -> Iterator[Role]:
    """The aggregate on top of a view, what is computed from it, and what is below."""
    if isinstance(node, Limit):
        yield Role(depth, node, strategy.technique)
        yield from _plain(node.child, depth + 1)
        return
    if not isinstance(node, Aggregate):
        yield Role(depth, node, strategy.technique)
        yield from _grouped(strategy, children(node)[0], depth + 1)
        return
    composition = strategy.composition
    if composition is not None:
        yield Role(depth, node, strategy.technique)
        yield from _structured(node.child, depth + 1, composition.extent)
        return
    ended = () if strategy.singular is None else (strategy.singular.code,)
    is_origin = strategy.technique is Technique.CHANGE_TABLE
    yield Role(depth, node, strategy.technique, is_origin, ended)
    yield from _plain(node.child, depth + 1)


def _structured(node: Relation, depth: int, extent: Extent) -> Iterator[Role]:
    """The part of a view that change tables pass, down to the parts of its rows."""
    ended = tuple(dict.fromkeys(r.code for _, r in extent.singular if r.subject == describe(node)))
    match node:
        case Aggregate() if any(
            isinstance(part, AggregatePart) and part.aggregate == node for part in extent.parts
        ):
            yield Role(depth, node, Technique.CHANGE_TABLE, conversion_point=True)
            yield from _plain(node.child, depth + 1)
        case Select() | Project() | Sort() | Join() | Union() | OuterJoin() if is_structured(node):
            is_origin = isinstance(node, OuterJoin)
            yield Role(depth, node, Technique.CHANGE_TABLE, is_origin, ended)
            for child in children(node):
                yield from _structured(child, depth + 1, extent)
        case _:
            yield from _plain(node, depth)
