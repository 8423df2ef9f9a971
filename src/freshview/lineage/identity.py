"""By which columns rows of a view are found again in its definition."""

from __future__ import annotations

from freshview.algebra.expressions import Column, references
from freshview.algebra.relations import Aggregate, Project, Relation, Select, Sort, Window
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import walk
from freshview.lineage.asked import is_comparable

_ROUNDED = ("double", "float")


def identifying(view: Relation) -> tuple[Attribute, ...]:
    """The columns that say which rows are meant: the groups if they are shown, else all that can.

    Not those that are computed from a sum of doubles, which need not come out the same when it is
    evaluated again; and not those that Spark cannot compare.
    """
    grouped = shown_groups(view)
    if grouped is not None:
        return grouped[1]
    rounded = _rounded(view)
    return tuple(a for a in view.attributes if is_comparable(a) and a not in rounded)


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


def _rounded(view: Relation) -> set[Attribute]:
    """The attributes that hold sums of doubles, or are computed from them."""
    found: set[Attribute] = set()
    for node in reversed(list(walk(view))):
        match node:
            case Aggregate(_, _, aggregates):
                found |= {a.attribute for a in aggregates if a.attribute.type in _ROUNDED}
                found |= {
                    a.attribute
                    for a in aggregates
                    if any(references(e) & found for e in a.call.arguments)
                }
            case Window(_, outputs):
                found |= {o.attribute for o in outputs if o.attribute.type in _ROUNDED}
            case Project(_, outputs):
                found |= {o.attribute for o in outputs if references(o.expression) & found}
            case _:
                pass
    return found
