"""Pre- and post-update states of operands, and the signed count of a delta relation.

An operand of a delta rule is read before (PRE) or after (POST) the transaction; both are at hand
because a table's versions are. The papers write Q and Qⁿ, or s and s′.
"""

from __future__ import annotations

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Call, Column, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    Select,
    State,
    keep,
)
from freshview.algebra.schema import COUNT
from freshview.algebra.traverse import at


def pre(relation: Relation) -> Relation:
    return at(relation, State.PRE)


def post(relation: Relation) -> Relation:
    return at(relation, State.POST)


def consolidate(delta: Relation) -> Relation:
    """The minimal form of a delta: one row per distinct row, its net count, zeros dropped.

    σ_{n≠0}(π_{A, sum(n)}(δ)); the positive part is Δ, the negative part ∇, and Δ ∩ ∇ = ∅.
    """
    columns = tuple(attribute for attribute in delta.attributes if attribute != COUNT)
    net = AggregateCall("sum", (Column(COUNT),), "bigint")
    total = Aggregate(delta, columns, (AggregateOutput(COUNT, net),))
    return Select(
        total, Call("not", (Call("=", (Column(COUNT), integer(0)), "boolean"),), "boolean")
    )


def inverse(delta: Relation) -> Relation:
    """The delta that undoes this one: every count negated. [B07] Definition 1.9."""
    negated = Call("-", (integer(0), Column(COUNT)), "bigint")
    outputs = tuple(
        Output(COUNT, negated) if attribute == COUNT else keep(attribute)
        for attribute in delta.attributes
    )
    return Project(delta, outputs)
