"""Aggregation below other operators: the touched groups, as they were and as they are."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.expressions import all_same, integer
from freshview.algebra.relations import Aggregate, Output, Project, Relation, Semijoin, Union, keep
from freshview.algebra.schema import COUNT
from freshview.delta.derivation import Derivation, Signed, renamed, with_count


def aggregate_delta(node: Aggregate, child: Signed, derivation: Derivation) -> Signed:
    """δ(π_{A,F}(Q)) = π_{A,F}(Qᵖᵒˢᵗ ⋉_{A=} δQ) ∸ π_{A,F}(Qᵖʳᵉ ⋉_{A=} δQ), signed.

    Only groups that a changed row belongs to are computed, in both states; ≡_A is null-safe. Without
    group attributes there is one group, and both states of Q are read whole. Not consolidated: a
    group that stays as it was cancels out later. [B07] Table 4.3 with Δʷ and ∇ʷ of 4.4, where ⋉ is
    meant and ⋈ is printed. Differs for bags in nothing: a group is one row.

    With insertions only and no aggregate (DISTINCT), δ = π_A(ΔQ) ▷_{A=} Qᵖʳᵉ: rows that are new.
    """
    delta = derivation.shared(child)
    if node.group and not node.aggregates and delta.insertions_only:
        return _new_groups(node, delta, derivation)
    after = replace(node, child=touched(node, derivation.post(node.child), delta, derivation))
    before = replace(node, child=touched(node, derivation.pre(node.child), delta, derivation))
    signed = (
        with_count(after, Output(COUNT, integer(1))),
        with_count(before, Output(COUNT, integer(-1))),
    )
    return Signed(Union(signed, (*node.attributes, COUNT)))


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
