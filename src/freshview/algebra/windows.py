"""Window functions, their frames, and the orders in which rows are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from freshview.algebra.expressions import Call, Column, Expression
from freshview.algebra.schema import INTEGRAL_TYPES, Attribute, decimal_type

BY_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
"""Functions that give rows which tie in the order the same value, whatever comes first."""

WHOLE_FRAME = frozenset({"count", "min", "max", "bool_and", "bool_or", "every", "some"})
"""Aggregates whose value does not depend on the order in which a frame's rows are taken."""

SUMMED = frozenset({"sum", "avg"})
"""The same, over a type whose sums are exact."""

UNORDERED = ("map<", "variant", "interval", "void", "geo")
"""What a type's name holds if Spark has no order for its values: a part of it is enough."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """One key of an order, with Spark's default that a null is less than every value."""

    expression: Expression
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows around the current one a function sees, by rows or by values (RANGE).

    ``start`` and ``end`` are offsets, 0 is the current row (by values: with its peers), None is no
    end. What they cannot say (a distance in values) is in ``text``, and in the template alone.
    """

    by_rows: bool
    start: int | None
    end: int | None
    text: str = ""
    template: object = field(default=None, compare=False, repr=False)

    @property
    def is_everything(self) -> bool:
        return self.start is None and self.end is None and not self.text


@dataclass(frozen=True, slots=True)
class WindowCall:
    """``function(arguments)`` over a frame; the template is Spark's function."""

    function: str
    arguments: tuple[Expression, ...]
    type: str
    frame: Frame
    text: str = ""
    """What identifies a function of Spark's beside its arguments."""
    deterministic: bool = True
    template: object = field(default=None, compare=False, repr=False)

    @property
    def needs_total_order(self) -> bool:
        """Whether its value depends on which of the rows that tie in the order comes first."""
        if self.function in BY_PEERS:
            return False
        if self.frame.by_rows and not self.frame.is_everything:
            return True
        if self.function in SUMMED:
            return not all(_adds_exactly(argument.type) for argument in self.arguments)
        return self.function not in WHOLE_FRAME


@dataclass(frozen=True, slots=True)
class WindowOutput:
    """``call AS attribute``."""

    attribute: Attribute
    call: WindowCall


def _adds_exactly(type: str) -> bool:
    return type in INTEGRAL_TYPES or decimal_type(type) is not None


def is_ordered(type: str) -> bool:
    """Whether Spark can sort by values of a type, and only equal values tie in it."""
    if any(unordered in type for unordered in UNORDERED):
        return type.startswith("interval ") and "map<" not in type
    return "collate" not in type or type.startswith("string collate")


def total_order(order: Iterable[Ordering], attributes: Iterable[Attribute]) -> tuple[Ordering, ...]:
    """An order, and every attribute that it does not have yet, so that only equal rows tie.

    A collation may take different texts for equal, so these are told apart by their bytes.
    Attributes of types without an order are left out: see ``is_total``.
    """
    found = list(order)
    known = {key.expression for key in found}
    for attribute in attributes:
        keys: list[Expression] = [Column(attribute)]
        if attribute.type.startswith("string collate"):
            keys.append(Call("cast", (Column(attribute),), "string"))
        if is_ordered(attribute.type):
            found += [Ordering(key) for key in keys if key not in known]
    return tuple(found)


def is_total(order: Iterable[Ordering], attributes: Iterable[Attribute]) -> bool:
    """Whether rows that tie in an order are equal in all of these attributes."""
    known = {key.expression for key in order}
    return all(
        Column(a) in known
        and (
            not a.type.startswith("string collate") or Call("cast", (Column(a),), "string") in known
        )
        for a in attributes
    )
