"""Aggregation below other operators: the touched groups, as they were and as they are."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    all_same,
    either,
    equal,
    integer,
    is_null,
    substitute,
)
from freshview.algebra.relations import (
    Aggregate,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    Select,
    Semijoin,
    Union,
    Values,
    keep,
)
from freshview.algebra.schema import COUNT, Attribute, Numbering
from freshview.delta.aggregate_states import AggregateStates, aggregate_states
from freshview.delta.derivation import Derivation, Signed, renamed, with_count
from freshview.delta.group_states import added, grouped_states, stored_states
from freshview.reasons import NoRule


def aggregate_delta(node: Aggregate, child: Signed, derivation: Derivation) -> Signed:
    """δ(π_{A,F}(Q)) = π_{A,F}(Qᵖᵒˢᵗ ⋉_{A=} δQ) ∸ π_{A,F}(Qᵖʳᵉ ⋉_{A=} δQ), signed.

    Only groups that a changed row belongs to are computed, in both states; ≡_A is null-safe. Without
    group attributes there is one group, and both states of Q are read whole. Not consolidated: a
    group that stays as it was cancels out later. [B07] Table 4.3 with Δʷ and ∇ʷ of 4.4, where ⋉ is
    meant and ⋈ is printed. Differs for bags in nothing: a group is one row.

    Where F is COUNT, SUM and AVG, Qᵖᵒˢᵗ is not read: what a group was and δQ tell what it is. With
    insertions only and no aggregate (DISTINCT), δ = π_A(ΔQ) ▷_{A=} Qᵖʳᵉ: rows that are new.
    """
    delta = derivation.shared(child)
    if node.group and not node.aggregates and delta.insertions_only:
        return _new_groups(node, delta, derivation)
    states = additive_states(node, derivation.new)
    if states is None:
        return _in_both_states(node, delta, derivation)
    return _by_states(node, delta, states, derivation)


def additive_states(node: Aggregate, new: Numbering) -> AggregateStates | None:
    """The states of an aggregate if what it was and δQ are enough to tell what it is."""
    try:
        states = aggregate_states(node, new)
    except NoRule:
        return None
    return None if states.late else states


def _in_both_states(node: Aggregate, delta: Signed, derivation: Derivation) -> Signed:
    after = replace(node, child=touched(node, derivation.post(node.child), delta, derivation))
    before = replace(node, child=touched(node, derivation.pre(node.child), delta, derivation))
    signed = (
        with_count(after, Output(COUNT, integer(1))),
        with_count(before, Output(COUNT, integer(-1))),
    )
    return Signed(Union(signed, (*node.attributes, COUNT)))


def _by_states(
    node: Aggregate, delta: Signed, states: AggregateStates, derivation: Derivation
) -> Signed:
    """∇ = Π(□ ⋈_{A=} Vᵖʳᵉ), Δ = Π(σ_{rows≠0}(□ ⟕_{A=} Vᵖʳᵉ updated by +)), □ the states of δQ.

    Vᵖʳᵉ is computed for the touched groups alone. [GM06] Appendix A, after Quass: what a change table
    becomes where it can go no further.
    """
    new = derivation.new
    change = grouped_states(node, delta.relation, COUNT, states, new)
    rows = touched(node, derivation.pre(node.child), delta, derivation)
    kept = (*node.group, *states.additive)
    held, fresh = renamed(stored_states(replace(node, child=rows), states, new), kept, new)
    before = dict(zip(kept, fresh, strict=True))
    groups = all_same(node.group, (before[a] for a in node.group))
    met = OuterJoin(change, held, groups, True, False)
    both: Relation = Join(met, Values((COUNT,), ((integer(1),), (integer(-1),))))
    is_after = equal(Column(COUNT), integer(1))
    updated = {state: added(before[state], state) for state in states.additive}
    if node.group:
        lives = Call("not", (equal(updated[states.rows], integer(0)),), "boolean")
        lived = Call("not", (is_null(Column(before[states.rows])),), "boolean")
        both = Select(both, either(is_after, lives, lived))
    was: dict[Attribute, Expression] = {state: Column(before[state]) for state in states.additive}
    values = []
    for output in node.aggregates:
        value = states.value(output.call)
        sides = either(is_after, substitute(value, updated), substitute(value, was))
        values.append(Output(output.attribute, sides))
    return Signed(Project(both, (*map(keep, node.group), *values, keep(COUNT))))


def touched(node: Aggregate, child: Relation, delta: Signed, derivation: Derivation) -> Relation:
    """Q ⋉_{A=} δQ: the rows of the groups that a changed row belongs to."""
    if not node.group:
        return child
    keys, fresh = renamed(delta.relation, node.group, derivation.new)
    return Semijoin(child, keys, all_same(node.group, fresh))


def _new_groups(node: Aggregate, delta: Signed, derivation: Derivation) -> Signed:
    arrived = Project(delta.relation, tuple(keep(a) for a in node.group))
    groups = Aggregate(arrived, node.group, ())
    known, fresh = renamed(derivation.pre(node.child), node.group, derivation.new)
    new = Semijoin(groups, known, all_same(node.group, fresh), anti=True)
    return Signed(with_count(new, Output(COUNT, integer(1))), insertions_only=True)
