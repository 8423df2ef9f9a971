"""The refresh operator ⊔ for aggregate-change tables, after [GM06] 4 and 5.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    all_same,
    cast,
    conjunction,
    either,
    equal,
    integer,
    is_null,
    null,
    same,
    substitute,
)
from freshview.algebra.relations import OuterJoin, Output, Project, Relation, Scan, State
from freshview.algebra.schema import Attribute, Numbering
from freshview.delta.aggregate_states import AggregateStates, Extremum
from freshview.delta.group_states import added

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
class StoredGroups:
    """The stored view as the refresh operator reads it: its leaf and what each column is there."""

    leaf: Scan
    before: Mapping[Attribute, Attribute]

    def matches(self, layout: GroupLayout) -> Expression | None:
        """≡_G between a change table and the stored view, null-safe."""
        pairs = zip(layout.group, layout.key, strict=False)
        return conjunction(
            tuple(same(Column(group), Column(self.before[key])) for group, key in pairs)
        )


def stored_groups(layout: GroupLayout, table: str, new: Numbering) -> StoredGroups:
    before = {a: new.attribute(a.name, a.type) for a in layout.columns()}
    return StoredGroups(Scan(table, tuple(before.values()), State.PRE), before)


@dataclass(frozen=True, slots=True)
class LateValues:
    """Extrema and sums that were computed from the base for some groups, under new attributes.

    ``found`` is true in each of these rows, and null where a group has none.
    """

    relation: Relation
    group: tuple[Attribute, ...]
    found: Attribute
    values: Mapping[Attribute, Attribute]


def refresh(
    change_table: Relation,
    layout: GroupLayout,
    stored: StoredGroups,
    new: Numbering,
    late: LateValues | None = None,
) -> Relation:
    """The touched rows of V ⊔ □V: each row of □V with its match in V, updated by U, ready to be set.

    J₁ is ≡_G ∧ rows+□rows ≠ 0 (update), J₂ is ≡_G ∧ rows+□rows = 0 (delete); a row of □V without a
    match is inserted. ≡_G is null-safe, and one to one because V has one row per group. Without
    group attributes J₂ never holds. A number of rows below zero would mean that the stored view is
    not the view's value; it raises. The visible values of a row that J₂ deletes are not evaluated:
    100 / count(*) has none. U is + for counts and sums; for MIN and MAX it is the more extreme of
    the two values, or what the late update has found. A sum of doubles in which a value has a rest is
    always found by the late update.

    The result yields the stored columns after the refresh; ``__keep``, false where J₂ holds;
    ``__was``, true if the group was stored; and the visible columns as they were stored, for the
    delta of V that views above it take.
    """
    before = stored.before
    joined: Relation = OuterJoin(change_table, stored.leaf, stored.matches(layout), True, False)
    if late is not None:
        same_group = all_same(layout.group, late.group)
        joined = OuterJoin(joined, late.relation, same_group, True, False)
    states = layout.states
    updated = {state: added(before[state], state) for state in states.additive}
    updated[states.rows] = Call("nonnegative", (updated[states.rows],), states.rows.type)
    for argument, extremum in states.extrema:
        value = extreme(extremum, before[extremum.value])
        if late is not None:
            found = Call("is not null", (Column(late.found),), "boolean")
            value = either(found, Column(late.values[extremum.value]), value)
        none = equal(updated[argument.present], integer(0))
        updated[extremum.value] = either(none, null(extremum.value.type), value)
    for _, doubles in states.double_sums:
        assert late is not None
        none = equal(updated[doubles.outside], integer(0))
        wide = Column(late.values[doubles.wide])
        updated[doubles.wide] = either(none, null(doubles.wide.type), wide)
    stays = _stays(layout, updated[states.rows])
    outputs = (
        *layout.key_outputs(),
        *(_value(o, layout, updated, stays) for o in layout.visible),
        *(Output(state, updated[state]) for state in states.attributes),
        *marks(layout, stored, stays, _is_stored(before[states.rows]), new),
    )
    return Project(joined, outputs)


def marks(
    layout: GroupLayout,
    stored: StoredGroups,
    stays: Expression,
    was: Expression,
    new: Numbering,
) -> tuple[Output, ...]:
    """Whether a row stays and whether it was there, and what its visible columns were."""
    return (
        Output(new.attribute(KEEP_NAME, "boolean"), stays),
        Output(new.attribute(WAS_NAME, "boolean"), was),
        *(
            Output(
                new.attribute(old_name(place), o.attribute.type), Column(stored.before[o.attribute])
            )
            for place, o in enumerate(layout.visible)
        ),
    )


def extreme(extremum: Extremum, before: Attribute) -> Expression:
    """U for MIN and MAX: the more extreme of the stored value and the gained one, nulls aside."""
    stored, gained = Column(before), Column(extremum.gained)
    better = either(extremum.reaches(gained, stored), gained, stored)
    return either(is_null(stored), gained, either(is_null(gained), stored, better))


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
