"""Union of bags: linear."""

from __future__ import annotations

from freshview.algebra.relations import Union
from freshview.algebra.schema import COUNT
from freshview.delta.derivation import Signed


def union_delta(node: Union, operands: tuple[Signed | None, ...]) -> Signed | None:
    """δ(E₁ ⊎ … ⊎ Eₙ) = δE₁ ⊎ … ⊎ δEₙ over the operands that changed. Reads no state.

    [IS00] 1.2 (insert and delete distribute over ⊎).
    """
    changed = tuple(operand for operand in operands if operand is not None)
    if not changed:
        return None
    whole = Union(tuple(delta.relation for delta in changed), (*node.attributes, COUNT))
    return Signed(whole, all(delta.insertions_only for delta in changed))
