"""Scalar expressions: columns, literals, calls that we understand, and opaque ones that only Spark does.

``Call`` names an operation of ``OPERATIONS``: rules may reason about it and the oracle computes it.
``Opaque`` is anything else Spark can evaluate; of it we know the arguments, the type and whether it
is deterministic. Both may keep a ``template``, the object the front end made them from, which the
lowering rebinds to new arguments: the meaning of an imported expression is always Spark's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from freshview.algebra.schema import Attribute

COMPARISONS = frozenset({"=", "<=>", "<", "<=", ">", ">="})
ARITHMETIC = frozenset({"+", "-", "*"})
OPERATIONS = (
    COMPARISONS
    | ARITHMETIC
    | {
        "and",
        "or",
        "not",
        "is null",
        "is not null",
        "coalesce",
        "if",
        "cast",
        "in",
        "average",
        "abs",
    }
    | {"nonnegative", "array", "explode"}
    | {"piece", "rest", "exact double"}
)
"""The last three are those of ``exact_sums``: piece(x, place), rest(x), and the value of six sums of pieces
with the number of values behind them."""


@dataclass(frozen=True, slots=True)
class Column:
    """The value of one attribute."""

    attribute: Attribute

    @property
    def type(self) -> str:
        return self.attribute.type

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. ``value`` is its Python value; ``text`` tells literals apart that Python cannot."""

    value: object
    type: str
    text: str = ""
    template: object = field(default=None, compare=False, repr=False)

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Call:
    """An operation that the algebra understands, with SQL's meaning of nulls."""

    operation: str
    arguments: tuple[Expression, ...]
    type: str
    template: object = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        assert self.operation in OPERATIONS, f"unknown operation {self.operation}"


@dataclass(frozen=True, slots=True)
class Opaque:
    """An expression that only Spark understands; ``text`` identifies what its arguments do not say."""

    text: str
    arguments: tuple[Expression, ...]
    type: str
    deterministic: bool = True
    template: object = field(default=None, compare=False, repr=False)


Expression = Column | Literal | Call | Opaque

TRUE = Literal(True, "boolean", "true")


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    yield expression
    for argument in expression.arguments:
        yield from walk(argument)


def references(expression: Expression) -> frozenset[Attribute]:
    """The attributes that an expression reads."""
    if isinstance(expression, Column):
        return frozenset((expression.attribute,))
    return frozenset(e.attribute for e in walk(expression) if isinstance(e, Column))


def is_deterministic(expression: Expression) -> bool:
    return all(e.deterministic for e in walk(expression) if isinstance(e, Opaque))


def substitute(expression: Expression, values: dict[Attribute, Expression]) -> Expression:
    """The expression with each attribute in ``values`` replaced; the same object if none occurs."""
    if isinstance(expression, Column):
        return values.get(expression.attribute, expression)
    if isinstance(expression, Literal) or not expression.arguments:
        return expression
    arguments = tuple(substitute(a, values) for a in expression.arguments)
    if all(new is old for new, old in zip(arguments, expression.arguments, strict=True)):
        return expression
    return replace(expression, arguments=arguments)


def conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    """The parts of a predicate that must all hold."""
    if predicate is None or predicate == TRUE:
        return ()
    if isinstance(predicate, Call) and predicate.operation == "and":
        return tuple(part for argument in predicate.arguments for part in conjuncts(argument))
    return (predicate,)


def conjunction(parts: tuple[Expression, ...]) -> Expression | None:
    """The predicate that holds when all parts do; None stands for "always"."""
    if not parts:
        return None
    whole = parts[0]
    for part in parts[1:]:
        whole = Call("and", (whole, part), "boolean")
    return whole


def equality(expression: Expression) -> tuple[Attribute, Attribute] | None:
    """The two attributes of ``a = b`` or ``a <=> b`` over columns of one type, else None."""
    match expression:
        case Call("=" | "<=>", (Column(left), Column(right))) if left.type == right.type:
            return left, right
        case _:
            return None


def column(attribute: Attribute) -> Column:
    return Column(attribute)


def integer(value: int) -> Literal:
    return Literal(value, "bigint", str(value))


def null(type: str) -> Literal:
    return Literal(None, type, "null")


def add(left: Expression, right: Expression, type: str) -> Call:
    return Call("+", (left, right), type)


def cast(value: Expression, type: str) -> Expression:
    return value if value.type == type else Call("cast", (value,), type)


def either(condition: Expression, then: Expression, otherwise: Expression) -> Call:
    return Call("if", (condition, then, otherwise), then.type)


def coalesce(value: Expression, default: Expression) -> Call:
    return Call("coalesce", (value, default), value.type)


def is_null(value: Expression) -> Call:
    return Call("is null", (value,), "boolean")


def equal(left: Expression, right: Expression) -> Call:
    return Call("=", (left, right), "boolean")


def same(left: Expression, right: Expression) -> Call:
    """``left <=> right``: equal, or both null."""
    return Call("<=>", (left, right), "boolean")


def all_same(left: Iterable[Attribute], right: Iterable[Attribute]) -> Expression | None:
    """≡ between attributes, pair by pair and null-safe; None, which is "always", if there are none."""
    pairs = zip(left, right, strict=True)
    return conjunction(tuple(same(Column(a), Column(b)) for a, b in pairs))
