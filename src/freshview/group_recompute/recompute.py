"""The touched groups of an aggregate view, computed again and set in place of the stored ones."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Call, Column, all_same, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    OuterJoin,
    Output,
    Project,
    Relation,
    Semijoin,
    keep,
    renaming,
)
from freshview.algebra.schema import Numbering
from freshview.change_table.refresh_operator import GroupLayout, StoredGroups, marks
from freshview.delta.aggregate_states import AggregateStates
from freshview.delta.derivation import renamed


def touched_groups(node: Aggregate, delta: Relation, new: Numbering) -> Relation:
    """K = π_G(δE): the groups that a changed row belongs to, each once.

    Without group attributes there is one group: K is one row if anything changed, else none.
    """
    if node.group:
        return Aggregate(Project(delta, tuple(keep(a) for a in node.group)), node.group, ())
    one = new.attribute("one", "bigint", nullable=False)
    return Aggregate(Project(delta, (Output(one, integer(1)),)), (one,), ())


def stored_rows(node: Aggregate, states: AggregateStates) -> Relation:
    """π_{G,F,count(*)}(E): every group with the number of its rows, which tells that it is stored."""
    return replace(node, aggregates=(*node.aggregates, _rows(states)))


def recomputed_groups(
    node: Aggregate,
    post: Relation,
    groups: Relation,
    layout: GroupLayout,
    stored: StoredGroups,
    new: Numbering,
) -> Relation:
    """K ⟕ V ⟕ π_{G,F}(Eᵖᵒˢᵗ ⋉_{≡G} K): what each touched group was and what it is.

    Any aggregate function that Spark has: the rows of a touched group are all read again, and no
    others ([B07] Table 4.3 with the old value taken from the view instead of Qᵖʳᵉ). A group without
    rows is deleted. Without group attributes all rows are read if anything changed, and the one row
    stays.
    """
    rows = layout.states.rows
    keys, fresh = renamed(groups, node.group or groups.attributes, new)
    among = Semijoin(post, keys, all_same(node.group, fresh) if node.group else None)
    again = Aggregate(among, node.group, (*node.aggregates, _rows(layout.states)))
    shown = {o.attribute: new.attribute(o.attribute.name, o.attribute.type) for o in layout.visible}
    counted = new.attribute(rows.name, rows.type)
    held = tuple(new.attribute(a.name, a.type) for a in node.group)
    columns = (
        *renaming(held, node.group),
        *(Output(shown[o.attribute], o.expression) for o in layout.visible),
        Output(counted, Column(rows)),
    )
    joined: Relation = OuterJoin(groups, stored.leaf, stored.matches(layout), True, False)
    joined = OuterJoin(joined, Project(again, columns), all_same(node.group, held), True, False)
    # A group that is gone has no row to show its key; the change table has it.
    keys_of = dict(zip(layout.key, layout.group, strict=False))
    visible = (
        Output(o.attribute, Column(keys_of.get(o.attribute, shown[o.attribute])))
        for o in layout.visible
    )
    stays = Call("is not null", (Column(counted),), "boolean")
    was = Call("is not null", (Column(stored.before[rows]),), "boolean")
    return Project(
        joined,
        (
            *layout.key_outputs(),
            *visible,
            Output(rows, Column(counted)),
            *marks(layout, stored, stays, was, new),
        ),
    )


def _rows(states: AggregateStates) -> AggregateOutput:
    return AggregateOutput(states.rows, AggregateCall("count", (), "bigint"))
