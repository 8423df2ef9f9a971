"""Singularity points: nodes that a change table cannot pass, each with its reason. [GM06] 5.3."""

from __future__ import annotations

from freshview.algebra.relations import Relation
from freshview.algebra.render import describe
from freshview.reasons import Reason


def singularity(code: str, node: Relation, why: str) -> Reason:
    """Why a change table ends at a node, from which insertions and deletions are propagated."""
    return Reason(
        f"SINGULARITY_{code}",
        describe(node),
        why,
        "filter or join above the view, or materialise the part below as a view of its own",
    )
