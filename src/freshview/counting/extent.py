"""Extent and count table of a view. [B07] Definitions 3.2, 3.4 and 3.6.

Our bags are extents: a row of a view and the number of its copies, which for an SPJ view is the
number of its derivations. No duplicate elimination is meant or done.
"""

from __future__ import annotations

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Column
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    keep,
)
from freshview.algebra.schema import COUNT, EXTENT_COUNT_NAME
from freshview.algebra.traverse import numbering
from freshview.delta.derivation import Derivation
from freshview.delta.derive import derive
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


def count_table(view: Relation, derivation: Derivation) -> Relation | None:
    """The count table of a view: σ_{n≠0}(π_{A,sum(n)}(δV)).

    Of the canonical form, δ reads earlier operands post-update and later ones pre-update. Differs
    from [B07] Definition 3.6, which reads all others post for Δ and pre for ∇ and counts Δ×Δ twice if
    ∪ is read as ⊎: it is telescoped. Count tables of the members of a union are added (3.3.1).
    """
    delta = derive(view, derivation)
    return None if delta is None else consolidate(delta.relation)
