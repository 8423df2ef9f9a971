"""Operators whose row holds the rows it was made of, in E⁺: their lineage is read off it.

``rows`` (t) are rows of the node. Nothing is looked up again.
"""

from __future__ import annotations

from collections.abc import Iterator

from freshview.algebra.expressions import Call, Column, equal, integer, is_null
from freshview.algebra.relations import (
    Expand,
    Generate,
    Join,
    Limit,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Select,
    Sort,
    Union,
    renaming,
)
from freshview.algebra.schema import Numbering
from freshview.lineage.asked import Asked, Found, part_of, without_partner


def row_itself(node: Select | Repeat | Sort | Limit, rows: Relation) -> Iterator[Found]:
    """σ, sort, limit, repeat: E* = t. [CW00] for σ."""
    yield Asked(node.child, rows)


def projection(node: Project, rows: Relation) -> Iterator[Found]:
    """Π⁺_o(E): E* = π_E(t). [CW00] asks for σ_{o = t}(E); here these rows were carried along."""
    yield Asked(node.child, part_of(rows, node.child.attributes))


def join(node: Join, rows: Relation) -> Iterator[Found]:
    """L ⋈ R: L* = π_L(t), R* = π_R(t). [CW00]."""
    yield Asked(node.left, part_of(rows, node.left.attributes))
    yield Asked(node.right, part_of(rows, node.right.attributes))


def generation(node: Generate, rows: Relation) -> Iterator[Found]:
    """EXPLODE, LATERAL VIEW: E* = π_E(t), the row that t was generated from."""
    yield Asked(node.child, part_of(rows, node.child.attributes))


def expansion(node: Expand, rows: Relation) -> Iterator[Found]:
    """GROUPING SETS: E* = π_E(t), the row that was repeated."""
    width = len(node.child.attributes)
    copies = node.attributes[len(node.attributes) - width :]
    yield Asked(node.child, Project(rows, renaming(node.child.attributes, copies)))


def union(node: Union, rows: Relation) -> Iterator[Found]:
    """E₁ ⊎ E₂: Eᵢ* = π_{Eᵢ}(σ_{branch = i}(t)).

    [CW00] traces a row into every operand that has an equal one. A view is asked by values, so t has
    the copies of all branches, and this is the same.
    """
    below = [_below(operand) for operand in node.children]
    place = len(node.attributes) - sum(len(child.attributes) for child in below)
    branch = Column(node.attributes[place - 1])
    for number, child in enumerate(below):
        copies = node.attributes[place : place + len(child.attributes)]
        place += len(child.attributes)
        of_branch = Select(rows, equal(branch, integer(number)))
        yield Asked(child, Project(of_branch, renaming(child.attributes, copies)))


def _below(operand: Relation) -> Relation:
    assert isinstance(operand, Project), "an operand of ⊎⁺ is a projection that carries its row"
    return operand.child


def outer_join(node: OuterJoin, rows: Relation, new: Numbering) -> Iterator[Found]:
    """L ⟗ R: L* = π_L(σ_{L is there}(t)), R* = π_R(σ_{R is there}(t)).

    A side is there if its mark is not null. Where it is not, the row is padded: nothing of that side
    meets the other side's row.
    """
    sides = ((node.left, node.right, node.keeps_right), (node.right, node.left, node.keeps_left))
    for side, other, is_padded in sides:
        mark = Column(side.attributes[-1])
        there = Select(rows, Call("is not null", (mark,), "boolean"))
        yield Asked(side, part_of(there, side.attributes))
        if is_padded:
            alone = part_of(Select(rows, is_null(mark)), other.attributes)
            yield from without_partner(side, node.on, alone, new, padded=True)
