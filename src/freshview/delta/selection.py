"""Selection: linear."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.relations import Select
from freshview.delta.derivation import Signed


def selection_delta(node: Select, child: Signed) -> Signed:
    """δ(σ_p(E)) = σ_p(δE). Reads no state. [B07] Table 4.1, σ; bag form with signed counts."""
    return replace(child, relation=Select(child.relation, node.predicate))
