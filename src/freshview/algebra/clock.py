"""The clock as a source: tables of one row with the day or the moment, which change as it goes on.

``WHERE d >= current_date() - 30`` reads such a table as it reads ``d``: a row enters or leaves the
result because the table's one row was replaced, so the rules for tables are the rules for the clock.
The name of a clock says which function it is and in which time zone; no user's table can have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from freshview.algebra.expressions import (
    COMPARISONS,
    Call,
    Column,
    Expression,
    Literal,
    Opaque,
    cast,
    conjunction,
    conjuncts,
    is_null,
    references,
    walk,
)
from freshview.algebra.relations import Join, Relation, Scan, Semijoin
from freshview.algebra.schema import INTEGRAL_TYPES, Attribute, Numbering

DAY = "current_date()"
NOW = "now()"
LOCAL = "localtimestamp()"
_TYPES = {DAY: "date", NOW: "timestamp", LOCAL: "timestamp_ntz"}
_NAMES = {DAY: "today", NOW: "now", LOCAL: "local_now"}
_IN = " in "
_LAMBDA_VARIABLE = "lambda #"
_TIMES = frozenset(_TYPES.values())
RANGED = INTEGRAL_TYPES | _TIMES
"""Types of columns whose rows between two values can be looked up."""


def clock_table(function: str, zone: str | None = None) -> str:
    """The name of a clock: its function, and for a day or a local time the zone that decides it."""
    return function if zone is None else f"{function}{_IN}{zone}"


def clock_parts(table: str) -> tuple[str, str | None]:
    """The function and the time zone of a clock."""
    function, _, zone = table.partition(_IN)
    return function, zone or None


def is_clock(table: str) -> bool:
    return clock_parts(table)[0] in _TYPES


def clock_type(table: str) -> str:
    """The type of a clock's one column."""
    return _TYPES[clock_parts(table)[0]]


def clock_scan(table: str, new: Numbering) -> Scan:
    """One occurrence of a clock."""
    name = _NAMES[clock_parts(table)[0]]
    return Scan(table, (new.attribute(name, clock_type(table), nullable=False),))


def clocks_in(expression: Expression) -> tuple[str, ...]:
    """The clocks that an expression still reads as functions, each once."""
    found = (e.text for e in walk(expression) if isinstance(e, Opaque) and is_clock(e.text))
    return tuple(dict.fromkeys(found))


def is_moving(node: Semijoin) -> bool:
    """Whether E ⋉_p C is a moving window: C is a clock, or the product of several."""
    return not node.anti and node.on is not None and _is_of_clocks(node.right)


def _is_of_clocks(relation: Relation) -> bool:
    match relation:
        case Scan(table, _):
            return is_clock(table)
        case Join(left, right, None):
            return _is_of_clocks(left) and _is_of_clocks(right)
        case _:
            return False


def clock_terms(predicate: Expression, clock: frozenset[Attribute]) -> tuple[Expression, ...]:
    """The largest parts of a predicate that read the clock and nothing else, each once.

    A predicate depends on the clock by the values of these parts alone.
    """
    return tuple(dict.fromkeys(_terms(predicate, clock)))


def _terms(part: Expression, clock: frozenset[Attribute]) -> Iterator[Expression]:
    read = references(part)
    if not read & clock:
        return
    if read <= clock and not any(_is_variable(e) for e in walk(part)):
        yield part
        return
    for argument in part.arguments:
        yield from _terms(argument, clock)


def _is_variable(part: Expression) -> bool:
    return isinstance(part, Opaque) and part.text.startswith(_LAMBDA_VARIABLE)


def with_terms(predicate: Expression, values: Mapping[Expression, Expression]) -> Expression:
    """The predicate with parts of it replaced."""
    if predicate in values:
        return values[predicate]
    if isinstance(predicate, Column | Literal) or not predicate.arguments:
        return predicate
    return replace(predicate, arguments=tuple(with_terms(a, values) for a in predicate.arguments))


def compared_locally(part: Expression) -> Expression:
    """CAST(x AS TIMESTAMP) ∘ f as x ∘ CAST(f AS TIMESTAMP_NTZ), wherever f is of the clock alone.

    So Spark evaluates it, to which the clock is a constant. For a local time that a change of the clocks
    leaves out the two differ.
    """
    if isinstance(part, Column | Literal) or not clocks_in(part):
        return part
    if isinstance(part, Call) and part.operation in COMPARISONS:
        sides = part.arguments
        for place, one in enumerate(sides):
            other = sides[1 - place]
            if _is_local_moment(one) and clocks_in(other) and not references(other):
                fixed = (one.arguments[0], cast(other, _TYPES[LOCAL]))
                return replace(part, arguments=fixed if place == 0 else fixed[::-1])
    return replace(part, arguments=tuple(map(compared_locally, part.arguments)))


def _is_local_moment(part: Expression) -> bool:
    """CAST(x AS TIMESTAMP) of a TIMESTAMP_NTZ."""
    match part:
        case Call("cast", (value,), type):
            return (value.type, type) == (_TYPES[LOCAL], _TYPES[NOW])
        case _:
            return False


def compared_column(predicate: Expression, terms: tuple[Expression, ...]) -> Expression | None:
    """The one column, or its day or moment, with which every clock term of a predicate is compared.

    Then the predicate can turn for a row only if that value lies between the old and the new value
    of a term: elsewhere no comparison turns, and nothing else in the predicate reads the clock. None
    if there is no such column.
    """
    found = set(_compared(predicate, frozenset(terms)))
    return found.pop() if len(found) == 1 else None


def column_in(value: Expression) -> Attribute | None:
    """The column whose value, day or moment an expression is, if ranges of it can be looked up."""
    match value:
        case Column(attribute) if attribute.type in RANGED:
            return attribute
        case Call("cast", (Column(attribute),), type) if {attribute.type, type} <= _TIMES:
            return attribute
        case _:
            return None


def _compared(part: Expression, terms: frozenset[Expression]) -> Iterator[Expression | None]:
    if part in terms:
        yield None
        return
    if isinstance(part, Call) and part.operation in COMPARISONS:
        left, right = part.arguments
        for one, other in ((left, right), (right, left)):
            if other in terms and one.type == other.type and column_in(one) is not None:
                yield one
                return
    for argument in part.arguments:
        yield from _compared(argument, terms)


Limits = tuple[tuple[Attribute, Attribute], ...]
"""Pairs of attributes that hold the lower and the upper end of a range."""


def within(value: Expression, limits: Limits) -> Expression:
    """Whether a value lies in one of the ranges; true for every value if an end is unknown.

    ⋁ᵢ (lowᵢ is null ∨ highᵢ is null ∨ (lowᵢ ≤ a ∧ a ≤ highᵢ))
    """
    whole: Expression | None = None
    for low, high in limits:
        inside = conjunction(
            (
                Call("<=", (Column(low), value), "boolean"),
                Call("<=", (value, Column(high)), "boolean"),
            )
        )
        assert inside is not None
        for part in (is_null(Column(low)), is_null(Column(high)), inside):
            whole = part if whole is None else Call("or", (whole, part), "boolean")
    assert whole is not None
    return whole


def ranges_in(predicate: Expression | None) -> Iterator[tuple[Attribute, Limits]]:
    """The conjuncts of a predicate that ``within`` has made: the column and its ranges.

    Of a column's day or moment the ranges are of that type, which is the limits'.
    """
    for part in conjuncts(predicate):
        parts = _disjuncts(part)
        found: list[tuple[Expression, tuple[Attribute, Attribute]]] = []
        for place in range(0, len(parts) - len(parts) % 3, 3):
            match parts[place : place + 3]:
                case (
                    Call("is null", (Column(low),)),
                    Call("is null", (Column(high),)),
                    Call(
                        "and",
                        (
                            Call("<=", (Column(first), value)),
                            Call("<=", (again, Column(second))),
                        ),
                    ),
                ) if (first, second, value) == (low, high, again):
                    found.append((value, (low, high)))
        values = {value for value, _ in found}
        column = column_in(values.pop()) if len(values) == 1 else None
        if column is not None and 3 * len(found) == len(parts):
            yield column, tuple(limits for _, limits in found)


def _disjuncts(predicate: Expression) -> tuple[Expression, ...]:
    if isinstance(predicate, Call) and predicate.operation == "or":
        return tuple(part for argument in predicate.arguments for part in _disjuncts(argument))
    return (predicate,)
