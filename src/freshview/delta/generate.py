"""EXPLODE, LATERAL VIEW and GROUPING SETS: linear, each row for itself."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.expressions import Column
from freshview.algebra.relations import Expand, Generate, Project, keep
from freshview.algebra.schema import COUNT
from freshview.delta.derivation import Signed


def generation_delta(node: Generate, child: Signed) -> Signed:
    """δ(μ_g(E)) = μ_g(δE): what a row generates takes the row's signed count.

    A generator makes its rows of one row of E alone; OUTER's null is one of them.
    """
    made = replace(node, child=child.relation)
    columns = tuple(keep(a) for a in (*node.attributes, COUNT))
    return Signed(Project(made, columns), child.insertions_only)


def expansion_delta(node: Expand, child: Signed) -> Signed:
    """δ(ε(E)) = ε(δE): each copy of a row takes the row's signed count.

    GROUPING SETS, ROLLUP and CUBE are π over ε, one copy per grouping; π has its own rules.
    """
    projections = tuple((*projection, Column(COUNT)) for projection in node.projections)
    expanded = Expand(child.relation, projections, (*node.attributes, COUNT))
    return Signed(expanded, child.insertions_only)
