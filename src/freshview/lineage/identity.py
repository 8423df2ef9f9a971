"""By which columns rows of a view are found again in its definition."""

from __future__ import annotations

from freshview.algebra.expressions import Column
from freshview.algebra.relations import Aggregate, Project, Relation, Select, Sort
from freshview.algebra.schema import Attribute
from freshview.lineage.asked import is_comparable


def identifying(view: Relation) -> tuple[Attribute, ...]:
    """The columns that say which rows are meant: the groups if they are shown, else all that can.

    Not those that Spark cannot compare. A value that is computed again comes out the same: sums of doubles
    are exact, and functions of the order of rows get one order.
    """
    grouped = shown_groups(view)
    if grouped is not None:
        return grouped[1]
    return tuple(a for a in view.attributes if is_comparable(a))


def shown_groups(view: Relation) -> tuple[Aggregate, tuple[Attribute, ...]] | None:
    """The aggregate on top of a view and the columns that show its groups; None if one is not shown."""
    shown = {attribute: attribute for attribute in view.attributes}
    node = view
    while isinstance(node, Project | Select | Sort):
        if isinstance(node, Project):
            held = {output.attribute: output.expression for output in node.outputs}
            shown = {
                one.attribute: outer
                for inner, outer in shown.items()
                if isinstance(one := held[inner], Column)
            }
        node = node.child
    if isinstance(node, Aggregate) and all(attribute in shown for attribute in node.group):
        return node, tuple(shown[attribute] for attribute in node.group)
    return None
