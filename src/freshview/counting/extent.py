"""Extent and count table of a view. [B07] Definitions 3.2, 3.4 and 3.6.

Our bags are extents: a row of a view and the number of its copies, which for an SPJ view is the
number of its derivations. No duplicate elimination is meant or done.
"""

from __future__ import annotations

from collections.abc import Collection

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Column, conjunction, references
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    Select,
    Union,
    keep,
)
from freshview.algebra.schema import COUNT, EXTENT_COUNT_NAME, Attribute
from freshview.algebra.traverse import numbering
from freshview.counting.canonical import Canonical
from freshview.delta.derive import derive
from freshview.delta.join import join_delta
from freshview.delta.states import consolidate


def extent(view: Relation) -> Relation:
    """E_count(D, V) = π_{A, count(*)}(V): each row of the view once, with its count."""
    rows = AggregateOutput(COUNT, AggregateCall("count", (), "bigint"))
    return Aggregate(view, view.attributes, (rows,))


def stored_extent(view: Relation) -> Relation:
    """The extent as it is stored: the count is an ordinary column, ``__count``."""
    count = numbering(view).attribute(EXTENT_COUNT_NAME, "bigint", nullable=False)
    columns = tuple(keep(attribute) for attribute in view.attributes)
    return Project(extent(view), (*columns, Output(count, Column(COUNT))))


def count_table(
    forms: tuple[Canonical, ...], attributes: tuple[Attribute, ...], changed: Collection[str]
) -> Relation | None:
    """The count table of the ⊎ of canonical forms: σ_{n≠0}(π_{A,sum(n)}(⊎ᵢ δ(formᵢ))).

    Reads earlier operands post-update and later ones pre-update. Differs from [B07] Definition 3.6,
    which reads all others post for Δ and pre for ∇ and counts Δ×Δ twice if ∪ is read as ⊎: it is
    telescoped. Count tables of the members of a union are added (3.3.1).
    """
    delta = forms_delta(forms, attributes, changed)
    return None if delta is None else consolidate(delta)


def forms_delta(
    forms: tuple[Canonical, ...], attributes: tuple[Attribute, ...], changed: Collection[str]
) -> Relation | None:
    """⊎ᵢ δ(formᵢ), not consolidated: an aggregate above it sums the counts anyway (3.3.2)."""
    terms = [_form_delta(form, changed) for form in forms]
    present = tuple(term for term in terms if term is not None)
    if len(present) == 1 and present[0].attributes == (*attributes, COUNT):
        return present[0]
    return Union(present, (*attributes, COUNT)) if present else None


def _form_delta(form: Canonical, changed: Collection[str]) -> Relation | None:
    """δ(Π_A(σ_θ(R₁ × … × Rₙ))), with each part of θ at the first place that knows its attributes."""
    theta = form.theta
    operands: list[Relation] = []
    for relation in form.relations:
        own = tuple(part for part in theta if references(part) <= frozenset(relation.attributes))
        theta = tuple(part for part in theta if part not in own)
        predicate = conjunction(own)
        operands.append(relation if predicate is None else Select(relation, predicate))
    deltas = tuple(derive(operand, changed) for operand in operands)
    joined = deltas[0] if len(operands) == 1 else join_delta(tuple(operands), deltas, theta)
    return None if joined is None else Project(joined, (*form.outputs, keep(COUNT)))
