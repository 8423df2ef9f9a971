"""What a rule of lineage gives: the rows of each operand that contribute, and those that are not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from freshview.algebra.expressions import Column, Expression, all_same, substitute
from freshview.algebra.relations import Aggregate, Project, Relation, Semijoin, keep, renaming
from freshview.algebra.schema import Attribute, Numbering
from freshview.lineage.emptiness import is_empty_over_nothing


@dataclass(frozen=True, slots=True)
class Asked:
    """E*: the rows of an operand E that rows of the result come from, in the attributes of E.

    It says which rows of E these are, not how many copies of each there are.
    """

    operand: Relation
    rows: Relation


@dataclass(frozen=True, slots=True)
class Absent:
    """No row of an operand meets ``rows`` by the condition ``on``, and that is why they are there.

    If they are ``padded``, nulls stand for the row that is missing.
    """

    operand: Relation
    on: Expression | None
    rows: Relation
    padded: bool = False


Found = Asked | Absent


def part_of(rows: Relation, attributes: tuple[Attribute, ...]) -> Relation:
    """π_A(rows)."""
    if rows.attributes == attributes:
        return rows
    return Project(rows, tuple(keep(attribute) for attribute in attributes))


def apart(rows: Relation, attributes: Iterable[Attribute], new: Numbering) -> Project:
    """π_A(rows) under attributes of its own, so that a relation with the same ones can meet it."""
    held = tuple(attributes)
    fresh = tuple(new.attribute(a.name, a.type) for a in held)
    return Project(rows, renaming(fresh, held))


def meeting(operand: Relation, rows: Relation, on: Expression | None, new: Numbering) -> Relation:
    """E ⋉_on rows."""
    others = apart(rows, rows.attributes, new)
    if on is not None:
        theirs = zip(rows.attributes, map(Column, others.attributes), strict=True)
        on = substitute(on, dict(theirs))
    return Semijoin(operand, others, on)


def equal_in(
    operand: Relation,
    own: tuple[Attribute, ...],
    rows: Relation,
    theirs: tuple[Attribute, ...],
    new: Numbering,
) -> Relation:
    """E ⋉_{A ≡ B} rows: the rows of E that agree with one of ``rows``, nulls equal.

    Columns that Spark cannot compare (maps, variants) are left out: rows that differ in nothing else
    are taken together.
    """
    pairs = [(a, b) for a, b in zip(own, theirs, strict=True) if is_comparable(a)]
    others: Relation = apart(rows, (b for _, b in pairs), new)
    if pairs:
        others = Aggregate(others, others.attributes, ())
    return Semijoin(operand, others, all_same((a for a, _ in pairs), others.attributes))


def is_comparable(attribute: Attribute) -> bool:
    """Whether Spark has ≡ for values of the attribute's type."""
    return "map<" not in attribute.type and "variant" not in attribute.type


def without_partner(
    operand: Relation,
    on: Expression | None,
    rows: Relation,
    new: Numbering,
    *,
    padded: bool = False,
) -> Iterator[Found]:
    """What an operand contributes to ``rows`` by having no partner of theirs.

    Nothing, as a rule, and that is said. But an operand that has rows over empty tables (a global
    aggregate) could come to meet them if its own rows were left out: then all of it contributes.
    """
    yield Absent(operand, on, rows, padded)
    if not is_empty_over_nothing(operand):
        yield Asked(operand, meeting(operand, rows, None, new))
