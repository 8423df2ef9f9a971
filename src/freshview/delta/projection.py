"""Projection without duplicate elimination, and repetition: linear."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.expressions import Call, Column, cast, coalesce, either, integer
from freshview.algebra.relations import Output, Project, Repeat, keep
from freshview.algebra.schema import COUNT
from freshview.delta.derivation import Signed, with_count


def projection_delta(node: Project, child: Signed) -> Signed:
    """δ(Π_A(E)) = Π_{A,n}(δE). Reads no state.

    Differs from [B07] Table 4.1, π, because Π keeps duplicates: no other reason for a row to stay
    has to be looked for, its count says it. π with duplicate elimination is an aggregate without
    aggregate functions.
    """
    return replace(child, relation=Project(child.relation, (*node.outputs, keep(COUNT))))


def repetition_delta(node: Repeat, child: Signed) -> Signed:
    """δ of rows repeated ``times`` times: n · max(0, times), and nothing where it is null."""
    times = coalesce(cast(node.times, "bigint"), integer(0))
    several = Call("*", (Column(COUNT), times), "bigint")
    copies = either(Call("<", (integer(0), times), "boolean"), several, integer(0))
    return replace(child, relation=with_count(child.relation, Output(COUNT, copies)))
