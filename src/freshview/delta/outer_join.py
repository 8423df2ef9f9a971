"""Outer joins: the join, and the padded rows of those without a partner."""

from __future__ import annotations

from freshview.algebra.expressions import conjuncts, null
from freshview.algebra.relations import OuterJoin, Output, Project, Relation, Semijoin, Union, keep
from freshview.algebra.schema import COUNT, Attribute
from freshview.delta.derivation import Derivation, Signed
from freshview.delta.join import join_delta
from freshview.delta.semijoin import semijoin_delta


def outer_join_delta(
    node: OuterJoin, left: Signed | None, right: Signed | None, derivation: Derivation
) -> Signed | None:
    """δ(L ⟗ R) = δ(L ⋈ R) ⊎ δ(L ▷ R) × {null} ⊎ {null} × δ(R ▷ L); ⟕ and ⟖ leave one of the last two out.

    Any condition, inserts and deletes on both sides at once. A row is padded because it has no
    partner in R, which is looked up; rows of real NULLs are no different from others (trap 3). The
    telescopes are turned so that Lᵖᵒˢᵗ meets δR and Rᵖʳᵉ meets δL in all three terms.
    """
    left = None if left is None else derivation.shared(left)
    right = None if right is None else derivation.shared(right)
    terms: list[Relation] = []
    joined = join_delta((node.left, node.right), (left, right), conjuncts(node.on), derivation)
    if joined is not None:
        terms.append(joined.relation)
    if node.keeps_left:
        alone = semijoin_delta(
            Semijoin(node.left, node.right, node.on, anti=True), left, right, derivation
        )
        if alone is not None:
            terms.append(padded(alone.relation, node.attributes))
    if node.keeps_right:
        alone = semijoin_delta(
            Semijoin(node.right, node.left, node.on, anti=True), right, left, derivation, late=True
        )
        if alone is not None:
            terms.append(padded(alone.relation, node.attributes))
    if not terms:
        return None
    return Signed(terms[0] if len(terms) == 1 else Union(tuple(terms), (*node.attributes, COUNT)))


def padded(rows: Relation, attributes: tuple[Attribute, ...]) -> Relation:
    """Rows with a signed count under all attributes of the join, null where they have none."""
    known = frozenset(rows.attributes)
    columns = (keep(a) if a in known else Output(a, null(a.type)) for a in attributes)
    return Project(rows, (*columns, keep(COUNT)))
