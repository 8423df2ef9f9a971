"""Change tables carried upwards from the part that changed, by the rows of [GM06] Table 4.

The frame of an extent is the same expression for all its rows and for a change table: σ, ⋈ and × read
keys only, so what they do to a row they do to its change. Two operators differ on the way up. An outer
join keeps the side that changed and no other: □E₁ ⟕_J E₂ for E₁ ⟗_J E₂ (rows 7 and 7b). A union lets
through the operand that changed (row 5, tagged).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Column
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Given,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    Union,
    keep,
)
from freshview.algebra.schema import COUNT, Numbering
from freshview.algebra.traverse import children, walk, with_children
from freshview.change_table.aggregate import change_table
from freshview.change_table.extent import AggregatePart, Extent, Part
from freshview.delta.derivation import Derivation, Signed
from freshview.delta.derive import derive
from freshview.delta.group_states import stored_states
from freshview.delta.states import consolidate


def extent_rows(extent: Extent, new: Numbering) -> Relation:
    """τ(V): every row of the extent, computed from scratch."""
    return _over(extent.frame, {part.leaf: part_rows(part, new) for part in extent.parts})


def part_rows(part: Part, new: Numbering) -> Relation:
    """All rows of one part: groups with their states, or plain rows with their copies."""
    if isinstance(part, AggregatePart):
        states = stored_states(part.aggregate, part.kept, new)
        return Project(states, tuple(keep(a) for a in part.leaf.attributes))
    copies = AggregateOutput(part.copies, AggregateCall("count", (), "bigint"))
    return Aggregate(part.relation, part.key, (copies,))


def part_change(part: Part, derivation: Derivation) -> Signed | None:
    """□ of one part: its keys with the changes of its states; None if it does not change."""
    delta = derive(part.source, derivation)
    if delta is None:
        return None
    if isinstance(part, AggregatePart):
        changes = change_table(part.aggregate, delta.relation, part.kept, derivation.new)
        change = Project(changes, tuple(keep(a) for a in part.leaf.attributes))
    else:
        copies = Output(part.copies, Column(COUNT))
        change = Project(consolidate(delta.relation), (*(keep(a) for a in part.key), copies))
    return Signed(change, delta.insertions_only)


def propagated(extent: Extent, part: Part, change: Signed, derivation: Derivation) -> Signed:
    """□V from the □ of one part: the other parts are read as they are while it changes."""
    leaves = {
        other.leaf: derivation.pre(part_rows(other, derivation.new))
        for other in extent.parts
        if other is not part
    }
    frame = _let_through(extent.frame, part.leaf)
    return Signed(
        _over(frame, {**leaves, part.leaf: change.relation}),
        change.insertions_only,
    )


def extent_delta(extent: Extent, derivation: Derivation) -> Signed | None:
    """Insertions and deletions of the extent, for a part whose change tables end below the top."""
    delta = derive(extent_rows(extent, derivation.new), derivation)
    return None if delta is None else replace(delta, relation=consolidate(delta.relation))


def _let_through(node: Relation, leaf: Given) -> Relation:
    """The frame as a change of this leaf passes it."""
    if not _holds(node, leaf):
        return node
    below = tuple(_let_through(child, leaf) for child in children(node))
    match node:
        case Union():
            return next(child for child in below if _holds(child, leaf))
        case OuterJoin():
            left, right = below
            keeps_left = node.keeps_left and _holds(left, leaf)
            keeps_right = node.keeps_right and _holds(right, leaf)
            if keeps_left or keeps_right:
                return OuterJoin(left, right, node.on, keeps_left, keeps_right)
            return Join(left, right, node.on)
        case _:
            return with_children(node, below)


def _holds(node: Relation, leaf: Given) -> bool:
    return any(below == leaf for below in walk(node))


def _over(frame: Relation, leaves: Mapping[Given, Relation]) -> Relation:
    """The frame over what stands for its leaves."""
    if isinstance(frame, Given):
        return leaves[frame]
    return with_children(frame, tuple(_over(child, leaves) for child in children(frame)))
