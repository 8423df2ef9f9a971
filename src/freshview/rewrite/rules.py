"""The rewrite rules in the order in which they run, each to its own fixed point of one pass."""

from __future__ import annotations

from freshview.algebra.relations import Relation
from freshview.rewrite.drop_empty import drop_empty
from freshview.rewrite.merge_projections import merge_projections
from freshview.rewrite.prune_columns import prune_columns
from freshview.rewrite.push_selection import push_selection
from freshview.rewrite.read_clock import read_clock

RULES = (
    push_selection,
    merge_projections,
    push_selection,
    drop_empty,
    prune_columns,
    read_clock,
    merge_projections,
)


def rewrite(relation: Relation) -> Relation:
    """The view's expression as the planner wants it: selections low, scans narrow."""
    for rule in RULES:
        relation = rule(relation)
    return relation
