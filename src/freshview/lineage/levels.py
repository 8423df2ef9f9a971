"""The lineage of a recursion: a row of one level comes from rows of the level before, down to the anchor.

    R = E₀ ⊎ S(R)

Where R is known, that is a union like any other, in which R is a table of its own. The lineage of some rows
of R there names further rows of R, whose lineage is asked for in turn until none is new.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.expressions import all_same
from freshview.algebra.relations import (
    Aggregate,
    Given,
    Previous,
    Project,
    Recursion,
    Relation,
    Semijoin,
    Union,
    renaming,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import transform_up
from freshview.lineage.asked import is_comparable
from freshview.lineage.trace import Repeated, Trace, trace


@dataclass(frozen=True, slots=True)
class Levels:
    """What is evaluated to find the rows of R that some of its rows come from."""

    everything: Relation
    """R, as its step reads it."""
    leaves: tuple[Given, ...]
    """R where the step reads it, for the rows of ``everything``."""
    first: Relation
    """The rows whose lineage is sought, in the columns of ``seen``."""
    trace: Trace
    """The lineage of the rows of E₀ ⊎ S(R) that are among its keys."""
    seen: Given
    further: Relation | None
    """The rows of R that those among the keys come from and that are not among ``seen``."""


def levels(found: Repeated, new: Numbering) -> Levels:
    """The lineage of rows of a recursion, level by level."""
    node = found.node
    leaves: list[Given] = []

    def known(part: Relation) -> Relation:
        if not (isinstance(part, Previous) and part.loop == node.loop):
            return part
        leaf = Given("recursion", _numbered(node, new))
        leaves.append(leaf)
        return Project(leaf, renaming(part.attributes, leaf.attributes))

    step = transform_up(node.step, known)
    shown = _numbered(node, new)
    columns = tuple(attribute for attribute in shown if is_comparable(attribute))
    traced = trace(Union((node.anchor, step), shown), columns)
    seen = Given("seen", _copied(columns, traced.new))
    everything = _numbered(node, new)
    return Levels(
        everything=Project(node, renaming(everything, node.attributes)),
        leaves=tuple(leaves),
        first=_in_columns(found.rows, node, seen),
        trace=traced,
        seen=seen,
        further=_further(traced, tuple(leaves), seen),
    )


def _in_columns(rows: Relation, node: Recursion, seen: Given) -> Relation:
    """Rows of R, each distinct one once, in the columns that can be compared."""
    own = tuple(a for a in node.attributes if is_comparable(a))
    once = Aggregate(rows, own, ())
    return Project(once, renaming(seen.attributes, own))


def _further(found: Trace, leaves: tuple[Given, ...], seen: Given) -> Relation | None:
    if not seen.attributes:
        return None
    asked = []
    for one in found.earlier:
        if one.leaf in leaves:
            own = tuple(a for a in one.leaf.attributes if is_comparable(a))
            asked.append(Project(one.rows, renaming(_copied(own, found.new), own)))
    if not asked:
        return None
    rows = Union(tuple(asked), _copied(seen.attributes, found.new))
    once = Aggregate(rows, rows.attributes, ())
    return Semijoin(once, seen, all_same(rows.attributes, seen.attributes), anti=True)


def _numbered(node: Recursion, new: Numbering) -> tuple[Attribute, ...]:
    """Attributes for the rows of R whose names tell them apart, the same ones each time."""
    return tuple(new.attribute(f"r{place}", a.type) for place, a in enumerate(node.attributes))


def _copied(attributes: tuple[Attribute, ...], new: Numbering) -> tuple[Attribute, ...]:
    return tuple(new.attribute(a.name, a.type) for a in attributes)
