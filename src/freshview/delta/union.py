"""Union of bags: linear."""

from __future__ import annotations

from freshview.algebra.relations import Relation, Union
from freshview.algebra.schema import COUNT


def union_delta(node: Union, operands: tuple[Relation | None, ...]) -> Relation | None:
    """δ(E₁ ⊎ … ⊎ Eₙ) = δE₁ ⊎ … ⊎ δEₙ over the operands that changed. Reads no state.

    [IS00] 1.2 (insert and delete distribute over ⊎).
    """
    changed = tuple(operand for operand in operands if operand is not None)
    return Union(changed, (*node.attributes, COUNT)) if changed else None
