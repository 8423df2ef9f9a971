"""Count refresh: a count table applied to an extent. [B07] Definition 3.5."""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    add,
    all_same,
    coalesce,
    equal,
    integer,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    OuterJoin,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    State,
    Union,
    keep,
)
from freshview.algebra.schema import COUNT, EXTENT_COUNT_NAME, Attribute, Numbering

CHANGE_NAME = "__change"


def count_refresh(count_table: Relation, extent: Relation) -> Relation:
    """R_count(c, e) = σ_{n≠0}(π_{A, sum(n)}(e ⊎ c)): the whole refreshed extent, as published."""
    columns = tuple(a for a in extent.attributes if a != COUNT)
    both = Union((extent, count_table), extent.attributes)
    total = AggregateOutput(COUNT, AggregateCall("sum", (Column(COUNT),), "bigint"))
    summed = Aggregate(both, columns, (total,))
    return Select(summed, Call("not", (equal(Column(COUNT), integer(0)),), "boolean"))


@dataclass(frozen=True, slots=True)
class TouchedExtent:
    """The rows of an extent that a count table touches, with their new counts.

    ``relation`` yields the view's columns, the new count ``__count`` (0: the row is to be deleted) and
    ``__change``, by how much it changed, which is the delta that views above this one take.
    """

    relation: Relation
    stored: Scan
    count: Attribute
    change: Attribute


def touched_extent(count_table: Relation, table: str, new: Numbering) -> TouchedExtent:
    """R_count restricted to the rows of c, c ⟕_{A ≐ A} e, so that the rest is never read.

    A count below zero would mean that the stored extent is not the view's; it raises.
    """
    columns = tuple(a for a in count_table.attributes if a != COUNT)
    stored_columns = tuple(new.attribute(a.name, a.type, a.nullable) for a in columns)
    stored_count = new.attribute(EXTENT_COUNT_NAME, "bigint")
    stored = Scan(table, (*stored_columns, stored_count), State.PRE)
    count = new.attribute(EXTENT_COUNT_NAME, "bigint")
    change = new.attribute(CHANGE_NAME, "bigint")
    total = add(coalesce(Column(stored_count), integer(0)), Column(COUNT), "bigint")
    outputs = (
        *(keep(a) for a in columns),
        Output(count, Call("nonnegative", (total,), "bigint")),
        Output(change, Column(COUNT)),
    )
    joined = OuterJoin(count_table, stored, all_same(columns, stored_columns), True, False)
    return TouchedExtent(Project(joined, outputs), stored, count, change)
