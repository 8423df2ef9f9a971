"""Selection: linear."""

from __future__ import annotations

from freshview.algebra.relations import Relation, Select


def selection_delta(node: Select, child: Relation) -> Relation:
    """δ(σ_p(E)) = σ_p(δE). Reads no state. [B07] Table 4.1, σ; bag form with signed counts."""
    return Select(child, node.predicate)
