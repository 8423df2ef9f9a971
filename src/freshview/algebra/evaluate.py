"""The oracle: a bag evaluator in plain Python, slow and simple, against which every rule is proven.

A bag is a ``Counter`` of row tuples. Expressions follow SQL's three-valued logic with ``None`` as
null. What only Spark understands (opaque expressions, some window functions) the oracle refuses.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, assert_never

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate_windows import NoWindow, limited, windowed
from freshview.algebra.exact_sums import exact_sum, pieces, rest, rounded
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    Opaque,
    conjuncts,
    equality,
)
from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Conditional,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Leaf,
    Limit,
    MarkJoin,
    OuterJoin,
    Previous,
    Project,
    Recursion,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    State,
    Union,
    Values,
    Window,
)
from freshview.algebra.schema import Attribute

Row = tuple[Any, ...]
Bag = Counter[Row]
Value = Callable[[Row], Any]


class NotInOracle(Exception):
    """The oracle does not compute this node or expression."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table's columns and its rows."""

    columns: tuple[str, ...]
    rows: Bag

    def project(self, attributes: tuple[Attribute, ...]) -> Bag:
        places = [self.columns.index(attribute.name) for attribute in attributes]
        projected: Bag = Counter()
        for row, count in self.rows.items():
            projected[tuple(row[place] for place in places)] += count
        return projected


@dataclass(frozen=True, slots=True)
class Database:
    """Tables by name: one state, or a state before and one after a transaction with its deltas.

    A delta's rows are the table's columns; the count of a row is its signed count.
    """

    post: Mapping[str, Table]
    pre: Mapping[str, Table] = field(default_factory=dict)
    deltas: Mapping[str, Table] = field(default_factory=dict)
    given: Mapping[str, Bag] = field(default_factory=dict)
    """What earlier steps have computed, by the names of their temporaries."""
    levels: Mapping[int, Bag] = field(default_factory=dict)
    """The level before of each recursion whose step is being evaluated."""

    def leaf(self, leaf: Leaf) -> Bag:
        match leaf:
            case Scan(table, attributes, state):
                tables = self.pre if state is State.PRE else self.post
                return tables[table].project(attributes)
            case Changes(table, columns):
                counted: Bag = Counter()
                for row, count in self.deltas[table].project(columns).items():
                    counted[(*row, count)] += 1
                return counted
            case Given(name, _):
                return self.given[name]
            case Previous(loop, _):
                return self.levels[loop]
            case Values(_, rows):
                return Counter(tuple(function(one, ())(()) for one in row) for row in rows)


def evaluate(relation: Relation, database: Database) -> Bag:
    """The value of a relation: its rows, each with the number of its copies."""
    match relation:
        case Scan() | Changes() | Given() | Values() | Previous():
            return database.leaf(relation)
        case Select(child, predicate):
            holds = function(predicate, child.attributes)
            rows = evaluate(child, database)
            return Counter({row: count for row, count in rows.items() if holds(row) is True})
        case Project(child, outputs):
            columns = functions((o.expression for o in outputs), child.attributes)
            rows = evaluate(child, database)
            return _sum((tuple(f(row) for f in columns), count) for row, count in rows.items())
        case Join():
            return _sum((row + other, count) for row, other, count in _pairs(relation, database))
        case OuterJoin():
            return _outer_join(relation, database)
        case Semijoin(left, _, _, anti):
            partners = {row for row, _, _ in _pairs(relation, database)}
            rows = evaluate(left, database)
            return Counter({row: n for row, n in rows.items() if (row in partners) is not anti})
        case MarkJoin(left, _, _, _):
            partners = {row for row, _, _ in _pairs(relation, database)}
            rows = evaluate(left, database)
            return Counter({(*row, row in partners): count for row, count in rows.items()})
        case Intersection(left, right, all):
            common = evaluate(left, database) & evaluate(right, database)
            return common if all else Counter(dict.fromkeys(common, 1))
        case Difference(left, right, all):
            rows, others = evaluate(left, database), evaluate(right, database)
            return rows - others if all else Counter(row for row in rows if row not in others)
        case Aggregate():
            return _aggregate(relation, database)
        case Union(operands, _):
            return _sum(item for child in operands for item in evaluate(child, database).items())
        case Repeat(child, times):
            copies = function(times, child.attributes)
            rows = evaluate(child, database)
            return _sum((row, n * max(0, copies(row) or 0)) for row, n in rows.items())
        case Sort(child, _):
            return evaluate(child, database)
        case Limit(child):
            rows = evaluate(child, database)
            return limited(relation, rows, lambda e: function(e, child.attributes))
        case Window(child):
            rows = evaluate(child, database)
            values = lambda e: function(e, child.attributes)  # noqa: E731
            try:
                return windowed(relation, rows, values, _AGGREGATES)
            except NoWindow as missing:
                raise NotInOracle(str(missing)) from None
        case Expand(child, projections, _):
            each = [functions(projection, child.attributes) for projection in projections]
            rows = evaluate(child, database)
            return _sum(
                (tuple(f(row) for f in columns), count)
                for row, count in rows.items()
                for columns in each
            )
        case Generate():
            return _generated(relation, database)
        case Recursion():
            return _recursive(relation, database)
        case _:
            assert_never(relation)


def function(expression: Expression, attributes: tuple[Attribute, ...]) -> Value:
    """The expression as a Python function of a row with these attributes."""
    return functions([expression], attributes)[0]


def functions(expressions: Iterable[Expression], attributes: tuple[Attribute, ...]) -> list[Value]:
    places = {attribute.id: place for place, attribute in enumerate(attributes)}
    return [_function(expression, places) for expression in expressions]


def _function(expression: Expression, places: dict[int, int]) -> Value:
    match expression:
        case Column(attribute):
            return operator.itemgetter(places[attribute.id])
        case Literal():
            constant = expression.value
            return lambda _: constant
        case Call(operation, arguments):
            parts = [_function(argument, places) for argument in arguments]
            if operation in _LAZY:
                return _LAZY[operation](*parts)
            return _strict(_STRICT[operation], parts)
        case Opaque():
            raise NotInOracle(expression.text)


def _and(left: Value, right: Value) -> Value:
    def conjunction(row: Row) -> Any:
        a = left(row)
        if a is False:
            return False
        b = right(row)
        return False if b is False else None if a is None or b is None else True

    return conjunction


def _or(left: Value, right: Value) -> Value:
    def disjunction(row: Row) -> Any:
        a = left(row)
        if a is True:
            return True
        b = right(row)
        return True if b is True else None if a is None or b is None else False

    return disjunction


def _coalesce(*parts: Value) -> Value:
    return lambda row: next((v for part in parts if (v := part(row)) is not None), None)


def _in(sought: Value, *candidates: Value) -> Value:
    def membership(row: Row) -> Any:
        one, values = sought(row), [candidate(row) for candidate in candidates]
        if one is None:
            return None
        return True if one in values else None if None in values else False

    return membership


def _equals(left: Any, right: Any) -> bool:
    """NaN equals itself in Spark; here it is one object."""
    return left is right or bool(left == right)


_LAZY: dict[str, Callable[..., Value]] = {
    "and": _and,
    "or": _or,
    "in": _in,
    "coalesce": _coalesce,
    "array": lambda *parts: lambda row: tuple(part(row) for part in parts),
    "if": lambda test, yes, no: lambda row: yes(row) if test(row) is True else no(row),
    "is null": lambda part: lambda row: part(row) is None,
    "is not null": lambda part: lambda row: part(row) is not None,
    "<=>": lambda left, right: lambda row: _equals(left(row), right(row)),
}
"""Operations whose value may not be null when an argument is, or that skip an argument."""


def _strict(operation: Callable[..., Any], parts: list[Value]) -> Value:
    def call(row: Row) -> Any:
        values = [part(row) for part in parts]
        return None if None in values else operation(*values)

    return call


def _average(total: Any, count: int) -> Any:
    if count == 0:
        return None
    if isinstance(total, float):
        return (
            math.nan if math.isnan(total) else total / count
        )  # one NaN, which is then equal to itself
    return Decimal(total) / count


def _nonnegative(number: Any) -> Any:
    if number < 0:
        raise ArithmeticError(f"a count became {number}")
    return number


_STRICT: dict[str, Callable[..., Any]] = {
    "=": _equals,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "not": operator.not_,
    "cast": lambda value: value,
    "abs": abs,
    "average": _average,
    "nonnegative": _nonnegative,
    "piece": lambda value, place: pieces(value)[place],
    "rest": rest,
    "exact double": lambda *sums: rounded(sums[:-1]),
}
"""Operations that are null when an argument is."""


def _count(values: list[tuple[Any, int]]) -> int:
    return sum(count for one, count in values if one is not None)


def _total(values: list[tuple[Any, int]]) -> Any:
    present = [(one, count) for one, count in values if one is not None]
    if any(isinstance(one, float) for one, _ in present):
        return exact_sum(present)
    return sum(one * count for one, count in present) if present else None


def _wide_sum(rows: list[tuple[Any, int]]) -> Any:
    """The sum of pieces and rests, where there is a rest; copies are counted by the pieces."""
    present = [(row, count) for row, count in rows if row[-1] is not None]
    rests = [row[-1] for row, count in present for _ in range(count) if row[-1] != 0.0]
    if not rests:
        return None
    columns = zip(
        *(tuple(count * piece for piece in row[:-1]) for row, count in present), strict=True
    )
    return rounded([sum(column) for column in columns], rests)


def _single(values: list[tuple[Any, int]]) -> Any:
    if sum(count for _, count in values) > 1:
        raise ArithmeticError("a scalar subquery gave more than one row")
    return values[0][0] if values else None


_AGGREGATES: dict[str, Callable[[list[tuple[Any, int]]], Any]] = {
    "count": _count,
    "sum": _total,
    "avg": lambda values: _average(_total(values), _count(values)),
    "min": lambda values: min((one for one, _ in values if one is not None), default=None),
    "max": lambda values: max((one for one, _ in values if one is not None), default=None),
    "single_value": _single,
    "wide_sum": _wide_sum,
}


def _aggregate_function(
    call: AggregateCall, attributes: tuple[Attribute, ...]
) -> Callable[[list[tuple[Row, int]]], Any]:
    """The aggregate call as a function of rows with their counts."""
    wide = call.function == "wide_sum"
    if call.function not in _AGGREGATES or (len(call.arguments) > 1 and not wide):
        raise NotInOracle(call.function)
    holds = None if call.filter is None else function(call.filter, attributes)
    argument = function(call.arguments[0], attributes) if call.arguments else lambda _: True
    if wide:
        columns = functions(call.arguments, attributes)
        argument = lambda row: tuple(column(row) for column in columns)  # noqa: E731

    def aggregate(rows: list[tuple[Row, int]]) -> Any:
        values = [(argument(row), n) for row, n in rows if holds is None or holds(row) is True]
        if call.distinct:
            values = [(one, 1) for one in {v for v, _ in values}]
        return _AGGREGATES[call.function](values)

    return aggregate


def _aggregate(node: Aggregate, database: Database) -> Bag:
    attributes = node.child.attributes
    keys = functions(map(Column, node.group), attributes)
    calls = [_aggregate_function(output.call, attributes) for output in node.aggregates]
    groups: dict[Row, list[tuple[Row, int]]] = {} if node.group else {(): []}
    for row, count in evaluate(node.child, database).items():
        groups.setdefault(tuple(key(row) for key in keys), []).append((row, count))
    return Counter(key + tuple(call(rows) for call in calls) for key, rows in groups.items())


def _generated(node: Generate, database: Database) -> Bag:
    """Each row with each element of the array that EXPLODE is given; with null for none if ``outer``."""
    match node.generator:
        case Call("explode", (argument,)):
            elements = function(argument, node.child.attributes)
        case _:
            raise NotInOracle("a generator")
    nothing = (None,) if node.outer else ()
    return _sum(
        ((*row, one), count)
        for row, count in evaluate(node.child, database).items()
        for one in elements(row) or nothing
    )


LEVELS_MAX = 100
"""More levels than Spark makes of a recursion that names no limit of its own."""


def _recursive(node: Recursion, database: Database) -> Bag:
    """Level by level, until one has no rows."""
    level = evaluate(node.anchor, database)
    found = Counter(level)
    for _ in range(node.levels or LEVELS_MAX):
        level = evaluate(node.step, replace(database, levels={**database.levels, node.loop: level}))
        if not level:
            return found
        found.update(level)
    raise ArithmeticError("a recursion does not end")


def _outer_join(node: OuterJoin, database: Database) -> Bag:
    left, right = evaluate(node.left, database), evaluate(node.right, database)
    pairs = list(_pairs(node, database))
    joined = _sum((row + other, count) for row, other, count in pairs)
    if node.keeps_left:
        padding = (None,) * len(node.right.attributes)
        matched = {row for row, _, _ in pairs}
        joined.update({row + padding: n for row, n in left.items() if row not in matched})
    if node.keeps_right:
        padding = (None,) * len(node.left.attributes)
        matched = {other for _, other, _ in pairs}
        joined.update({padding + row: n for row, n in right.items() if row not in matched})
    return joined


def _pairs(node: Conditional, database: Database) -> Iterator[tuple[Row, Row, int]]:
    """The pairs of rows that satisfy the join condition, each with the number of its copies.

    An equality between two columns leads to the rows that can meet; the condition decides.
    """
    holds = None
    if node.on is not None:
        holds = function(node.on, node.left.attributes + node.right.attributes)
    others = evaluate(node.right, database)
    candidates = _by_equality(node, others)
    for row, count in evaluate(node.left, database).items():
        for other, other_count in candidates(row):
            if holds is None or holds(row + other) is True:
                yield row, other, count * other_count


def _by_equality(node: Conditional, others: Bag) -> Callable[[Row], Iterable[tuple[Row, int]]]:
    """The right rows that can satisfy an equality of the condition with a left row, or all."""
    left = {a.id: place for place, a in enumerate(node.left.attributes)}
    right = {a.id: place for place, a in enumerate(node.right.attributes)}
    for part in conjuncts(node.on):
        pair = equality(part)
        if pair is None:
            continue
        one, another = pair if pair[0].id in left else pair[::-1]
        if one.id in left and another.id in right:
            found: dict[Any, list[tuple[Row, int]]] = {}
            for row, count in others.items():
                found.setdefault(row[right[another.id]], []).append((row, count))
            place = left[one.id]
            return lambda row: found.get(row[place], ())
    every = tuple(others.items())
    return lambda _: every


def _sum(items: Iterable[tuple[Row, int]]) -> Bag:
    total: Bag = Counter()
    for row, count in items:
        total[row] += count
    return +total
