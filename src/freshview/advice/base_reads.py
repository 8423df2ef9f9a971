"""How much of the base tables a refresh looks at, told from its expressions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freshview.algebra.traverse import scans
from freshview.delta.derivation import Kind
from freshview.planner.strategy import Strategy


def base_reads(views: Sequence[Strategy]) -> int | None:
    """How often rows of base tables are asked for, summed over a change of each of them alone.

    The views read one another, each only earlier ones; what is read of those is not counted. None if
    one of them is recomputed, which reads everything.
    """
    if any(view.reason is not None for view in views):
        return None
    own = {view.view for view in views[:-1]}
    base = dict.fromkeys(name for view in views for name in view.sources if name not in own)
    return sum(_reads_after(table, views, own) for table in base)


def _reads_after(table: str, views: Sequence[Strategy], own: set[str]) -> int:
    changed, reads = {table: Kind.ANY}, 0
    for view in views:
        met = {name: kind for name, kind in changed.items() if name in view.sources}
        if met:
            reads += _reads(view, met, own)
            changed[view.view] = Kind.ANY
    return reads


def _reads(view: Strategy, changed: Mapping[str, Kind], own: set[str]) -> int:
    """The leaves of a refresh that are base tables: neither changes nor rows of a view of ours."""
    made = view.maintenance(changed)
    if made is None:
        return 0
    steps = [made.stepwise.relation, *(t.relation for t in made.stepwise.temporaries)]
    leaves = {leaf for step in steps for leaf in scans(step)} - {made.stepwise.stored}
    return sum(leaf.table not in own for leaf in leaves)
