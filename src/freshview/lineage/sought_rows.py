"""Operators that forget rows: the operand is asked for them again, by group, by partner or by value.

``rows`` (t) are rows of the node.
"""

from __future__ import annotations

from collections.abc import Iterator

from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    all_same,
    conjunction,
    same,
    substitute,
)
from freshview.algebra.relations import (
    Aggregate,
    Difference,
    Intersection,
    MarkJoin,
    Project,
    Relation,
    Select,
    Semijoin,
    Window,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.lineage.asked import (
    Asked,
    Found,
    apart,
    equal_in,
    meeting,
    part_of,
    without_partner,
)


def aggregation(node: Aggregate, rows: Relation, new: Numbering) -> Iterator[Found]:
    """π_{G,F}(E): E* = E ⋉_G t, the rows of the same group; all of E if there is no G. [CW00].

    Rows that a FILTER leaves out belong to the group too: they may be why it is there.
    """
    yield Asked(node.child, equal_in(node.child, node.group, rows, node.group, new))


def window(node: Window, rows: Relation, new: Numbering) -> Iterator[Found]:
    """Window functions: E* = E ⋉_P t, the rows of the same partition, whatever the frame."""
    kept = node.child.attributes
    others = apart(rows, kept, new)
    values = zip(kept, map(Column, others.attributes), strict=True)
    theirs: dict[Attribute, Expression] = dict(values)
    on = conjunction(tuple(same(p, substitute(p, theirs)) for p in node.partition))
    yield Asked(node.child, Semijoin(node.child, others, on))


def semijoin(node: Semijoin, rows: Relation, new: Numbering) -> Iterator[Found]:
    """L ⋉_on R: L* = t, R* = R ⋉_on t, every witness. L ▷_on R: L* = t, and no row of R meets t."""
    yield Asked(node.left, rows)
    if node.anti:
        yield from without_partner(node.right, node.on, rows, new)
    else:
        yield Asked(node.right, meeting(node.right, rows, node.on, new))


def mark_join(node: MarkJoin, rows: Relation, new: Numbering) -> Iterator[Found]:
    """m = "has a partner in R": L* = π_L(t); R as of ⋉ for the rows with m, as of ▷ for those without."""
    left, mark = node.left.attributes, Column(node.mark)
    yield Asked(node.left, part_of(rows, left))
    met = part_of(Select(rows, mark), left)
    yield Asked(node.right, meeting(node.right, met, node.on, new))
    unmet = part_of(Select(rows, Call("not", (mark,), "boolean")), left)
    yield from without_partner(node.right, node.on, unmet, new)


def intersection(node: Intersection, rows: Relation, new: Numbering) -> Iterator[Found]:
    """L ∩ R: L* = L ⋉_≡ t, R* = R ⋉_≡ t, with all copies. [CW00]."""
    yield _equal(node.left, rows, new)
    yield _equal(node.right, rows, new)


def difference(node: Difference, rows: Relation, new: Numbering) -> Iterator[Found]:
    """L − R: L* = L ⋉_≡ t, and no row of R equals t. L ∸ R: R* = R ⋉_≡ t, the copies taken off.

    Differs from [CW00], where R* is all of R: none but an equal row could have taken t away.
    """
    yield _equal(node.left, rows, new)
    on = all_same(node.left.attributes, node.right.attributes)
    for found in without_partner(_below(node.right), on, rows, new):
        if isinstance(found, Asked) or not node.all:
            yield found
    if node.all:
        yield _equal(node.right, rows, new)


def _equal(operand: Relation, rows: Relation, new: Numbering) -> Asked:
    child = _below(operand)
    return Asked(child, equal_in(child, operand.attributes, rows, rows.attributes, new))


def _below(operand: Relation) -> Relation:
    assert isinstance(operand, Project), "an operand of ∩ and − is a projection of what it carries"
    return operand.child
