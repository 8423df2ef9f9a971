"""Late update functions: values asked of the base, for the groups whose states do not tell them.

[GM06] 5.1: the change table of a MIN or MAX is formed as for other functions, and the update function
holds a query, executed as late as possible: only when the row that it would update is in the view
and its extremum may be among what was deleted. The same way a sum of doubles is asked for where a value
is among them that its six sums of pieces do not hold (1e300, NaN).
"""

from __future__ import annotations

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    add,
    all_same,
    equal,
    integer,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    Select,
    Semijoin,
    keep,
    renaming,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.change_table.refresh_operator import GroupLayout, LateValues, StoredGroups
from freshview.delta.aggregate_states import ArgumentState, DoubleSum, Extremum
from freshview.delta.derivation import renamed
from freshview.delta.group_states import added


def groups_at_stake(
    change_table: Relation, layout: GroupLayout, stored: StoredGroups, new: Numbering
) -> Relation:
    """Π_G(σ_{lost ∨ outside≠0}(□V ⟕_{≡G} V)): groups whose values the states will not tell.

    lost: something deleted reaches the stored extremum, nothing inserted does, and values are left.
    outside: how many values with a rest the group then has. Only this can be of a group that is new,
    so that without sums of doubles the join is an inner one.
    """
    states = layout.states
    at_stake = [_may_be_lost(argument, extremum, stored) for argument, extremum in states.extrema]
    at_stake += [_has_rests(doubles, stored) for _, doubles in states.double_sums]
    condition = at_stake[0]
    for other in at_stake[1:]:
        condition = Call("or", (condition, other), "boolean")
    same = stored.matches(layout)
    if states.double_sums:
        matched: Relation = OuterJoin(change_table, stored.leaf, same, True, False)
    else:
        matched = Join(change_table, stored.leaf, same)
    fallback = Output(new.attribute("one", "bigint"), integer(1))
    columns = tuple(keep(a) for a in layout.group) or (fallback,)
    return Project(Select(matched, condition), columns)


def late_values(
    node: Aggregate, post: Relation, groups: Relation, layout: GroupLayout, new: Numbering
) -> LateValues:
    """π_{G, MIN, MAX, SUM}(Eᵖᵒˢᵗ ⋉_{≡G} groups): the late values of these groups, from the base.

    Reads E after the change, at the pinned version ([B07] Table 4.3 for these groups alone).
    """
    asked, fresh = renamed(groups, groups.attributes, new)
    rows = Semijoin(post, asked, all_same(node.group, fresh) if node.group else None)
    calls: list[AggregateOutput] = []
    values: dict[Attribute, Attribute] = {}
    arguments: dict[Expression, Attribute] = {}
    asked_for = [(a.argument, e.value, e.function) for a, e in layout.states.extrema]
    asked_for += [(a.argument, d.wide, "sum") for a, d in layout.states.double_sums]
    for argument, state, function in asked_for:
        column = arguments.setdefault(argument, new.attribute("argument", argument.type))
        values[state] = new.attribute(state.name, state.type)
        call = AggregateCall(function, (Column(column),), state.type)
        calls.append(AggregateOutput(values[state], call))
    columns = [Output(column, argument) for argument, column in arguments.items()]
    below = Project(rows, (*(keep(a) for a in node.group), *columns))
    grouped = Aggregate(below, node.group, tuple(calls))
    keys = tuple(new.attribute(a.name, a.type) for a in node.group)
    found = new.attribute("found", "boolean")
    outputs = (
        *renaming(keys, node.group),
        Output(found, TRUE),
        *(keep(value) for value in values.values()),
    )
    whole: Relation = Project(grouped, outputs)
    if not node.group:
        whole = _only_if_asked(whole, groups, new)
    return LateValues(whole, keys, found, values)


def _only_if_asked(values: Relation, groups: Relation, new: Numbering) -> Relation:
    """Without groups an aggregate has a row over nothing too; it counts only if it was asked for."""
    asked = Project(groups, (Output(new.attribute("asked", "bigint"), integer(1)),))
    return Semijoin(values, asked, None)


def _may_be_lost(argument: ArgumentState, extremum: Extremum, stored: StoredGroups) -> Expression:
    before = Column(stored.before[extremum.value])
    left = add(Column(stored.before[argument.present]), Column(argument.present), "bigint")
    some_left = Call("not", (equal(left, integer(0)),), "boolean")
    gone = _surely(extremum.reaches(Column(extremum.lost), before))
    replaced = _surely(extremum.reaches(Column(extremum.gained), before))
    both = Call("and", (gone, Call("not", (replaced,), "boolean")), "boolean")
    return Call("and", (some_left, both), "boolean")


def _has_rests(doubles: DoubleSum, stored: StoredGroups) -> Expression:
    outside = added(stored.before[doubles.outside], doubles.outside)
    return Call("not", (equal(outside, integer(0)),), "boolean")


def _surely(condition: Expression) -> Expression:
    """The condition, false where a null leaves it open."""
    return Call("coalesce", (condition, equal(integer(0), integer(1))), "boolean")
