"""Merge projections: Π_a(Π_b(E)) = Π_{a[b]}(E), and drop those that change nothing.

An expression that would be computed several times after merging stays below, unless it is a column
or a constant.
"""

from __future__ import annotations

from collections import Counter

from freshview.algebra.expressions import Column, Literal, is_deterministic, substitute, walk
from freshview.algebra.relations import Output, Project, Relation
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import transform_up


def merge_projections(relation: Relation) -> Relation:
    return transform_up(relation, _merge)


def _merge(node: Relation) -> Relation:
    match node:
        case Project(child, outputs) if child.attributes == node.attributes and all(
            output.is_kept for output in outputs
        ):
            return child
        case Project(Project(child, inner), outputs) if _may_merge(inner, outputs):
            values = {output.attribute: output.expression for output in inner}
            merged = tuple(Output(o.attribute, substitute(o.expression, values)) for o in outputs)
            return _merge(Project(child, merged))
        case _:
            return node


def _may_merge(inner: tuple[Output, ...], outer: tuple[Output, ...]) -> bool:
    uses: Counter[Attribute] = Counter(
        part.attribute
        for output in outer
        for part in walk(output.expression)
        if isinstance(part, Column)
    )
    return all(
        isinstance(output.expression, Column | Literal)
        or (uses[output.attribute] <= 1 and is_deterministic(output.expression))
        for output in inner
    )
