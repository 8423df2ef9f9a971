"""The refresh operator ⊔ for aggregate-change tables, after [GM06] 4 and 5.2."""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    add,
    cast,
    coalesce,
    conjunction,
    either,
    equal,
    integer,
    null,
    same,
    substitute,
)
from freshview.algebra.relations import OuterJoin, Output, Project, Relation, Scan, State
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import numbering
from freshview.change_table.states import AggregateStates

KEEP_NAME = "__keep"
WAS_NAME = "__was"


def old_name(place: int) -> str:
    """The column that brings a visible column's value before the refresh."""
    return f"__old{place}"


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """How the groups of an aggregate view are stored: one row per group.

    ``visible`` computes the view's columns from group attributes and states. ``key`` has one
    attribute per group attribute: the visible column that shows it, or a hidden one. A view without
    group attributes has one row for ever, under a hidden key that is always 0.
    """

    group: tuple[Attribute, ...]
    key: tuple[Attribute, ...]
    states: AggregateStates
    visible: tuple[Output, ...]

    def key_outputs(self) -> tuple[Output, ...]:
        """The hidden part of the key."""
        shown = {output.attribute for output in self.visible}
        if not self.group:
            return (Output(self.key[0], cast(integer(0), self.key[0].type)),)
        pairs = zip(self.key, self.group, strict=True)
        return tuple(Output(key, Column(group)) for key, group in pairs if key not in shown)

    def columns(self) -> tuple[Attribute, ...]:
        """Every stored column: hidden key, visible columns, states."""
        hidden = tuple(output.attribute for output in self.key_outputs())
        return hidden + tuple(o.attribute for o in self.visible) + self.states.attributes

    def rows(self, states: Relation) -> Relation:
        """The stored rows, given the states of every group."""
        kept = tuple(Output(state, Column(state)) for state in self.states.attributes)
        return Project(states, (*self.key_outputs(), *self.visible, *kept))


@dataclass(frozen=True, slots=True)
class RefreshedGroups:
    """The touched rows of V ⊔ □V, ready to be set by key.

    ``relation`` yields the stored columns after the refresh; ``__keep``, false for a group that is
    to be deleted (θ's J₂); ``__was``, true if the group was stored; and the visible columns as they
    were stored, for the delta of V that views above it take.
    """

    relation: Relation
    stored: Scan


def refresh(change_table: Relation, layout: GroupLayout, table: str) -> RefreshedGroups:
    """□V ⟕_{≡G} V: each row of □V with its match in V, updated by U = ⟨(state, +), …⟩.

    J₁ is ≡_G ∧ rows+□rows ≠ 0 (update), J₂ is ≡_G ∧ rows+□rows = 0 (delete); a row of □V without a
    match is inserted. ≡_G is null-safe, and one to one because V has one row per group. Without
    group attributes J₂ never holds. A number of rows below zero would mean that the stored view is
    not the view's value; it raises. The visible values of a row that J₂ deletes are not evaluated:
    100 / count(*) has none.
    """
    new = numbering(change_table, layout.rows(change_table))
    before = {a: new.attribute(a.name, a.type) for a in layout.columns()}
    stored = Scan(table, tuple(before.values()), State.PRE)
    matches: tuple[Expression, ...] = tuple(
        same(Column(group), Column(before[key]))
        for group, key in zip(layout.group, layout.key, strict=False)
    )
    joined = OuterJoin(change_table, stored, conjunction(matches), True, False)
    updated: dict[Attribute, Expression] = {
        state: _sum(before[state], state) for state in layout.states.attributes
    }
    rows = layout.states.rows
    updated[rows] = Call("nonnegative", (updated[rows],), rows.type)
    stays = _stays(layout, updated[rows])
    outputs = (
        *layout.key_outputs(),
        *(_value(o, layout, updated, stays) for o in layout.visible),
        *(Output(state, updated[state]) for state in layout.states.attributes),
        Output(new.attribute(KEEP_NAME, "boolean"), stays),
        Output(new.attribute(WAS_NAME, "boolean"), _is_stored(before[rows])),
        *(
            Output(new.attribute(old_name(place), o.attribute.type), Column(before[o.attribute]))
            for place, o in enumerate(layout.visible)
        ),
    )
    return RefreshedGroups(Project(joined, outputs), stored)


def _sum(before: Attribute, state: Attribute) -> Expression:
    """U's function for a state: f(v, □v) = v + □v, where a missing v is zero."""
    zero = cast(integer(0), state.type)
    total = add(coalesce(Column(before), zero), Column(state), state.type)
    return Call("cast", (total,), state.type)


def _value(
    output: Output,
    layout: GroupLayout,
    updated: dict[Attribute, Expression],
    stays: Expression,
) -> Output:
    value = substitute(output.expression, updated)
    if output.attribute in layout.key:
        return Output(output.attribute, value)
    return Output(output.attribute, either(stays, value, null(output.attribute.type)))


def _stays(layout: GroupLayout, rows: Expression) -> Expression:
    """Not J₂: the group has rows, or there are no groups and the one row always stays."""
    if not layout.group:
        return equal(integer(0), integer(0))
    return Call("not", (equal(rows, integer(0)),), "boolean")


def _is_stored(rows: Attribute) -> Expression:
    return Call("is not null", (Column(rows),), "boolean")
