"""Whole rows of a base table for the columns of them that a view reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    Scan,
    keep,
)
from freshview.algebra.schema import Numbering
from freshview.lineage.asked import equal_in, is_comparable
from freshview.lineage.trace import Contribution

COPIES = "__copies"


def base_rows(found: Contribution, columns: Mapping[str, str], new: Numbering) -> Relation:
    """R ⋉_≡ R*: every row of the table that the view cannot tell from a contributing one, counted.

    ``columns`` are the table's, with their types; the number of copies is the last one. Rows with a
    column that cannot be compared are not counted: each is there by itself.
    """
    read = {a.name: a for a in found.scan.attributes}
    every = tuple(read.get(name) or new.attribute(name, type) for name, type in columns.items())
    whole = Scan(found.scan.table, every)
    rows = equal_in(whole, found.scan.attributes, found.rows, found.rows.attributes, new)
    copies = new.attribute(_free(COPIES, columns), "bigint", nullable=False)
    if all(map(is_comparable, every)):
        count = AggregateOutput(copies, AggregateCall("count", (), "bigint"))
        return Aggregate(rows, every, (count,))
    return Project(rows, (*map(keep, every), Output(copies, integer(1))))


def _free(name: str, columns: Iterable[str]) -> str:
    """The name, or one with _ behind it that no column has."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name
