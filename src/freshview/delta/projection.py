"""Projection without duplicate elimination: linear."""

from __future__ import annotations

from freshview.algebra.relations import Project, Relation, keep
from freshview.algebra.schema import COUNT


def projection_delta(node: Project, child: Relation) -> Relation:
    """δ(Π_A(E)) = Π_{A,n}(δE). Reads no state.

    Differs from [B07] Table 4.1, π, because Π keeps duplicates: no other reason for a row to stay
    has to be looked for, its count says it.
    """
    return Project(child, (*node.outputs, keep(COUNT)))
