"""E⁺: the same rows as E, each with the rows of its operands that it was made of.

An operator that makes one row of one row of each operand forgets nothing that E⁺ cannot keep beside it:

    σ_p(E)⁺      = σ_p(E⁺)                                and so for sort, limit, repeat, ⋉, ▷, window
    Π_o(E)⁺      = Π_{E⁺, o}(E⁺)
    (L ⋈ R)⁺     = L⁺ ⋈ R⁺
    (L ⟕ R)⁺     = (L⁺ × {true}) ⟕ (R⁺ × {true})          a mark that is null says "padded"
    (E₁ ⊎ E₂)⁺   = Π_{E₁, 1, E₁⁺, ∅}(E₁⁺) ⊎ Π_{E₂, 2, ∅, E₂⁺}(E₂⁺)
    expand(E)⁺   = expand with E⁺ in every projection

Groups, ∩ and − do forget: there E⁺ begins anew below, and the rows are found again by their values.
So rows are compared only where a group, a partner or an equal row is sought, never because a column was
computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from freshview.algebra.expressions import TRUE, Column, integer, null
from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Output,
    Previous,
    Project,
    Recursion,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    Window,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering


def carried(node: Relation, new: Numbering) -> Relation:
    """E⁺. Its attributes are those of E and more, except below ∩ and −, whose operands keep theirs."""
    match node:
        case Scan() | Changes() | Given() | Values() | Previous() | Recursion():
            return node
        case Project():
            return _projection(node, new)
        case OuterJoin(left, right):
            return replace(node, left=_marked(left, new), right=_marked(right, new))
        case Union():
            return _union(node, new)
        case Intersection(left, right) | Difference(left, right):
            return replace(node, left=_narrow(left, new), right=_narrow(right, new))
        case Expand():
            return _expand(node, new)
        case Join(left, right) | Semijoin(left, right) | MarkJoin(left, right):
            return replace(node, left=carried(left, new), right=carried(right, new))
        case Select() | Aggregate() | Repeat() | Window() | Generate() | Sort() | Limit():
            return replace(node, child=carried(node.child, new))
        case _:
            assert_never(node)


def _projection(node: Project, new: Numbering) -> Project:
    """Π_{E⁺, o}(E⁺)."""
    child = carried(node.child, new)
    made = tuple(output for output in node.outputs if output.attribute not in child.attributes)
    return Project(child, tuple(map(keep, child.attributes)) + made)


def _marked(side: Relation, new: Numbering) -> Project:
    """E⁺ × {true}."""
    child = carried(side, new)
    mark = Output(new.attribute("present", "boolean"), TRUE)
    return Project(child, (*map(keep, child.attributes), mark))


def _narrow(operand: Relation, new: Numbering) -> Project:
    """E⁺ in the columns of E, whose values ∩ and − compare."""
    return Project(carried(operand, new), tuple(map(keep, operand.attributes)))


def _union(node: Union, new: Numbering) -> Union:
    """Π_{Eᵢ, i, ∅, Eᵢ⁺, ∅}(Eᵢ⁺) for each operand, put together."""
    below = [carried(operand, new) for operand in node.children]
    branch = new.attribute("branch", "bigint", nullable=False)
    copies = [_copies(operand, new) for operand in below]
    operands = []
    for number, (operand, child) in enumerate(zip(node.children, below, strict=True)):
        outputs = [Column(a) for a in operand.attributes] + [integer(number)]
        for other, places in enumerate(copies):
            own = child.attributes if other == number else ()
            outputs += [Column(a) for a in own] or [null(place.type) for place in places]
        named = (Output(new.attribute("u", e.type), e) for e in outputs)
        operands.append(Project(child, tuple(named)))
    everything = (*node.attributes, branch, *(a for places in copies for a in places))
    return Union(tuple(operands), everything)


def _expand(node: Expand, new: Numbering) -> Expand:
    child = carried(node.child, new)
    passed = tuple(Column(attribute) for attribute in child.attributes)
    projections = tuple((*projection, *passed) for projection in node.projections)
    return Expand(child, projections, node.attributes + _copies(child, new))


def _copies(relation: Relation, new: Numbering) -> tuple[Attribute, ...]:
    """Attributes to hold another relation's row beside one's own."""
    return tuple(new.attribute(a.name, a.type) for a in relation.attributes)
