"""WITH RECURSIVE: all levels, as they were and as they are."""

from __future__ import annotations

from freshview.algebra.expressions import integer
from freshview.algebra.relations import Output, Recursion, Union
from freshview.algebra.schema import COUNT
from freshview.algebra.traverse import scans
from freshview.delta.derivation import Derivation, Signed, with_count


def recursion_delta(node: Recursion, derivation: Derivation) -> Signed | None:
    """δ(R) = Rᵖᵒˢᵗ ∸ Rᵖʳᵉ, signed, where R = E₀ ⊎ S(E₀) ⊎ S(S(E₀)) and so on.

    Both states are computed from their anchor on. A changed row can add or take away any number of
    levels, and which rows of a level came from which of the one before is nowhere stored.
    """
    if not any(derivation.scan(scan) for scan in scans(node)):
        return None
    signed = (
        with_count(derivation.post(node), Output(COUNT, integer(1))),
        with_count(derivation.pre(node), Output(COUNT, integer(-1))),
    )
    return Signed(Union(signed, (*node.attributes, COUNT)))
