"""Random views over the tables of ``random_tables.py``, each built from one seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    coalesce,
    conjunction,
    equal,
    integer,
    null,
    same,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Difference,
    Expand,
    Generate,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Output,
    Previous,
    Project,
    Recursion,
    Relation,
    Scan,
    Select,
    Semijoin,
    Union,
    Window,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.windows import (
    Frame,
    Ordering,
    WindowCall,
    WindowOutput,
    total_order,
)
from tests.properties.random_tables import TABLES, Dice


@dataclass
class Builder:
    """Builds random relations; ids are unique, so that any two of them can be joined."""

    dice: Dice
    new: Numbering
    everything: bool = False
    """Whether operands are of any operator, or of σ, Π, ⋈, × and ⊎ only."""

    def scan(self, table: str | None = None) -> Relation:
        name = table or self.dice.choice(sorted(TABLES))
        return Scan(name, tuple(self.new.attribute(column, "bigint") for column in TABLES[name]))

    def scalar(self, attributes: tuple[Attribute, ...]) -> Expression:
        kind = self.dice.randint(0, 4)
        if kind <= 1:
            return Column(self.dice.choice(attributes))
        if kind == 2:
            return integer(self.dice.randint(0, 3))
        if kind == 3:
            return coalesce(Column(self.dice.choice(attributes)), integer(7))
        left, right = (Column(self.dice.choice(attributes)) for _ in range(2))
        return Call(self.dice.choice(["+", "-", "*"]), (left, right), "bigint")

    def predicate(self, attributes: tuple[Attribute, ...], depth: int = 1) -> Expression:
        kind = self.dice.randint(0, 5 if depth else 3)
        if kind <= 2:
            operation = self.dice.choice(["=", "<=>", "<", "<=", ">", ">="])
            return Call(operation, (self.scalar(attributes), self.scalar(attributes)), "boolean")
        if kind == 3:
            operation = self.dice.choice(["is null", "is not null"])
            return Call(operation, (self.scalar(attributes),), "boolean")
        if kind == 4:
            return Call("not", (self.predicate(attributes, depth - 1),), "boolean")
        parts = (self.predicate(attributes, depth - 1), self.predicate(attributes, depth - 1))
        return Call(self.dice.choice(["and", "or"]), parts, "boolean")

    def select(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        return Select(child, self.predicate(child.attributes))

    def project(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        count = self.dice.randint(1, 3)
        outputs = []
        for place in range(count):
            expression = self.scalar(child.attributes)
            outputs.append(Output(self.new.attribute(f"p{place}", "bigint"), expression))
        return Project(child, tuple(outputs))

    def join(self, depth: int, equal: bool | None = None) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        kind = self.dice.randint(0, 2) if equal is None else 0 if equal else 1
        if kind == 0:
            sides = (
                Column(self.dice.choice(left.attributes)),
                Column(self.dice.choice(right.attributes)),
            )
            return Join(left, right, Call(self.dice.choice(["=", "<=>"]), sides, "boolean"))
        if kind == 1:
            return Join(left, right, self.predicate(left.attributes + right.attributes))
        return Join(left, right)

    def union(self, depth: int) -> Relation:
        operands = self._alike(depth)
        width = len(operands[0].attributes)
        attributes = tuple(self.new.attribute(f"u{place}", "bigint") for place in range(width))
        return Union(operands, attributes)

    def _alike(self, depth: int) -> tuple[Relation, Relation]:
        """Two relations of the same width."""
        first, second = self.relation(depth - 1), self.relation(depth - 1)
        width = min(len(first.attributes), len(second.attributes), self.dice.randint(1, 3))
        left, right = (
            Project(operand, tuple(keep(a) for a in self.dice.sample(operand.attributes, width)))
            for operand in (first, second)
        )
        return left, right

    def intersection(self, depth: int, all: bool | None = None) -> Relation:
        return Intersection(*self._alike(depth), self._either(all))

    def difference(self, depth: int, all: bool | None = None) -> Relation:
        return Difference(*self._alike(depth), self._either(all))

    def _either(self, given: bool | None) -> bool:
        return self.dice.random() < 0.5 if given is None else given

    def condition(self, left: Relation, right: Relation) -> Expression | None:
        """An equality, more than one, an equality and a predicate, a predicate alone, or none."""
        parts: list[Expression] = []
        kind = self.dice.randrange(10)
        for _ in range(1 if kind < 7 else 2 if kind < 8 else 0):
            sides = (
                Column(self.dice.choice(left.attributes)),
                Column(self.dice.choice(right.attributes)),
            )
            parts.append(self.dice.choice([equal, same])(*sides))
        if kind in (5, 6, 8):
            parts.append(self.predicate(left.attributes + right.attributes))
        return conjunction(tuple(parts))

    def null_safe_join(self, depth: int) -> Relation:
        """L ⋈_{<=>} σ_{a<=>b}(R), and more conditions on either: nulls that meet nulls."""
        right = self.relation(depth - 1)
        one, other = (Column(self.dice.choice(right.attributes)) for _ in range(2))
        inner = Select(right, self.dice.choice([equal, same])(one, other))
        left = self.relation(depth - 1)
        found = same(Column(self.dice.choice(left.attributes)), self.dice.choice([one, other]))
        return Join(left, inner, found)

    def outer_join(self, depth: int, kind: str | None = None) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        kept = kind or self.dice.choice(["left", "right", "full"])
        on = self.condition(left, right)
        return OuterJoin(left, right, on, kept != "right", kept != "left")

    def semijoin(self, depth: int, anti: bool | None = None) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        return Semijoin(left, right, self.condition(left, right), self._either(anti))

    def mark_join(self, depth: int) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        mark = self.new.attribute("m", "boolean", nullable=False)
        marked = MarkJoin(left, right, self.condition(left, right), mark)
        number = Call("if", (Column(mark), integer(1), integer(0)), "bigint")
        shown = Output(self.new.attribute("marked", "bigint"), number)
        return Project(marked, (*(keep(a) for a in left.attributes), shown))

    def null_aware_antijoin(self, depth: int) -> Relation:
        """NOT IN: a row goes if it equals a row of the right side, or if one of both is null."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        found = equal(
            Column(self.dice.choice(left.attributes)), Column(self.dice.choice(right.attributes))
        )
        unknown = Call("is null", (found,), "boolean")
        return Semijoin(left, right, Call("or", (found, unknown), "boolean"), True)

    def scalar_subquery(self, depth: int) -> Relation:
        """One row of aggregates over all rows, beside each row of the left side or compared with it."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        value = Aggregate(right, (), (self.whole_call(right.attributes, 0),))
        joined = Join(left, value)
        if self.dice.random() < 0.5:
            return joined
        sides = (Column(self.dice.choice(left.attributes)), Column(value.attributes[0]))
        return Select(joined, Call(self.dice.choice(["<", "=", ">="]), sides, "boolean"))

    def correlated_subquery(self, depth: int) -> Relation:
        """Aggregates of the rows that match a row, where a count of none is 0."""
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        group = self.dice.choice(right.attributes)
        value = Aggregate(right, (group,), (self.whole_call(right.attributes, 0),))
        joined = OuterJoin(
            left,
            value,
            equal(Column(self.dice.choice(left.attributes)), Column(group)),
            True,
            False,
        )
        shown = coalesce(Column(value.attributes[-1]), integer(0))
        made = Output(self.new.attribute("q", "bigint"), shown)
        return Project(joined, (*(keep(a) for a in left.attributes), made))

    def distinct(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        width = self.dice.randint(1, min(3, len(child.attributes)))
        return Aggregate(child, tuple(self.dice.sample(child.attributes, width)), ())

    def grouped(self, depth: int) -> Relation:
        """An aggregate whose results are numbers, so that it can be below anything."""
        child = self.relation(depth - 1)
        group = self._group(child, 0)
        calls = [
            self.whole_call(child.attributes, place) for place in range(self.dice.randint(1, 2))
        ]
        return Aggregate(child, group, tuple(calls))

    def whole_call(self, attributes: tuple[Attribute, ...], place: int) -> AggregateOutput:
        function = self.dice.choice(["count", "sum", "min", "max"])
        argument = Column(self.dice.choice(attributes))
        distinct = self.dice.random() < 0.2
        filtered = self.predicate(attributes) if self.dice.random() < 0.2 else None
        call = AggregateCall(function, (argument,), "bigint", distinct, filtered)
        return AggregateOutput(self.new.attribute(f"f{place}", "bigint"), call)

    def ordering(self, attributes: tuple[Attribute, ...]) -> Ordering:
        return Ordering(
            Column(self.dice.choice(attributes)),
            descending=self.dice.random() < 0.4,
            nulls_last=self.dice.random() < 0.4,
        )

    def window(self, depth: int) -> Relation:
        """Window functions with ties, frames that reach over the ends, and no partition at all."""
        child = self.relation(depth - 1)
        by = tuple(map(Column, self._group(child, 0)))
        order = tuple(self.ordering(child.attributes) for _ in range(self.dice.randint(0, 2)))
        outputs = tuple(
            WindowOutput(self.new.attribute(f"w{place}", "bigint"), self.window_call(child, order))
            for place in range(self.dice.randint(1, 2))
        )
        ties: tuple[Ordering, ...] = ()
        if any(output.call.needs_total_order for output in outputs):
            known = (*map(Ordering, by), *order)
            ties = total_order(known, child.attributes)[len(known) :]
        return Window(child, outputs, by, order, ties)

    def window_call(self, child: Relation, order: tuple[Ordering, ...]) -> WindowCall:
        function = self.dice.choice(
            ["row_number", "rank", "dense_rank", "lag", "lead", "sum", "count", "min", "max"]
        )
        argument = Column(self.dice.choice(child.attributes))
        if function in ("row_number", "rank", "dense_rank"):
            arguments: tuple[Expression, ...] = ()
            if function != "row_number":
                arguments = tuple(key.expression for key in order)
            return WindowCall(function, arguments, "bigint", Frame(True, None, 0))
        if function in ("lag", "lead"):
            distance = self.dice.randint(1, 2)
            place = -distance if function == "lag" else distance
            default = self.scalar(child.attributes)
            arguments = (argument, integer(distance), default)
            return WindowCall(function, arguments, "bigint", Frame(True, place, place))
        frames = [Frame(False, None, None), Frame(False, None, 0), Frame(False, 0, None)]
        frames += [
            Frame(True, None, 0),
            Frame(True, -1, 1),
            Frame(True, -2, -1),
            Frame(True, 1, None),
        ]
        return WindowCall(function, (argument,), "bigint", self.dice.choice(frames))

    def expand(self, depth: int) -> Relation:
        """Each row once per grouping, with nulls for what it does not group by."""
        child = self.relation(depth - 1)
        width = self.dice.randint(1, min(3, len(child.attributes)))
        grouped = self.dice.sample(child.attributes, width)
        made = tuple(self.new.attribute(f"g{i}", "bigint") for i in range(width + 1))
        projections = tuple(
            (
                *(Column(a) if self.dice.random() < 0.6 else null("bigint") for a in grouped),
                integer(number),
            )
            for number in range(self.dice.randint(1, 3))
        )
        return Expand(child, projections, made)

    def generate(self, depth: int) -> Relation:
        """EXPLODE of arrays with nulls, without elements, and of none."""
        child = self.relation(depth - 1)
        elements = [self.scalar(child.attributes) for _ in range(self.dice.randint(0, 3))]
        array = Call("array", tuple(elements), "array<bigint>")
        some = Call("if", (self.predicate(child.attributes), array, null(array.type)), array.type)
        generator = Call("explode", (some,), "bigint")
        made = (self.new.attribute("e", "bigint"),)
        return Generate(child, generator, self.dice.random() < 0.5, made)

    def recursion(self, depth: int) -> Relation:
        """Two columns and the number of the level, of which there are three at most."""
        anchor = self._level(self.relation(min(depth, 2) - 1), integer(0))
        loop = self.new.attribute("loop", "bigint").id
        before = Previous(loop, self._level_columns("b"))
        number = Column(before.attributes[-1])
        going = Select(before, Call("<", (number, integer(2)), "boolean"))
        beside = self.relation(min(depth, 2) - 1)
        on = self.condition(going, beside)
        step = self.dice.choice(self.steps(going, beside, on))
        step = self._level(step, Call("+", (number, integer(1)), "bigint"))
        return Recursion(anchor, step, loop, None, self._level_columns("l"))

    def steps(
        self, going: Relation, beside: Relation, on: Expression | None
    ) -> tuple[Relation, ...]:
        """What Spark lets a recursion do with the level before."""
        return (
            Join(going, beside, on),
            OuterJoin(going, beside, on, True, False),
            Semijoin(going, beside, on, self._either(None)),
        )

    def _level_columns(self, name: str) -> tuple[Attribute, ...]:
        return tuple(self.new.attribute(f"{name}{place}", "bigint") for place in range(3))

    def _level(self, child: Relation, number: Expression) -> Relation:
        values = (self.scalar(child.attributes), self.scalar(child.attributes), number)
        return Project(child, tuple(map(Output, self._level_columns("m"), values)))

    def limit(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        order = tuple(self.ordering(child.attributes) for _ in range(self.dice.randint(0, 2)))
        count = None if self.dice.random() < 0.1 else self.dice.randint(0, 3)
        offset = self.dice.choice([0, 0, 1, 2])
        return Limit(child, count, offset, total_order(order, child.attributes))

    def relation(self, depth: int) -> Relation:
        """Any relation over σ, Π, ⋈, × and ⊎, or over every operator that has a delta rule."""
        if depth <= 0:
            return self.scan()
        linear = [self.select, self.project, self.join, self.union, lambda _: self.scan()]
        linear.append(self.null_safe_join)
        others = [
            self.outer_join, self.semijoin, self.mark_join, self.intersection, self.difference,
            self.distinct, self.grouped, self.window, self.expand, self.generate, self.limit,
            self.null_aware_antijoin, self.scalar_subquery, self.correlated_subquery, self.recursion,
        ]  # fmt: skip
        return self.dice.choice([*linear, *others] if self.everything else linear)(depth)

    def _group(self, child: Relation, least: int) -> tuple[Attribute, ...]:
        most = min(2, len(child.attributes))
        return tuple(self.dice.sample(child.attributes, self.dice.randint(least, most)))

    def aggregate(self, child: Relation) -> Aggregate:
        group = self._group(child, 0)
        count = self.dice.randint(0 if group else 1, 3)
        outputs = [AggregateOutput(*self.call(child.attributes, place)) for place in range(count)]
        return Aggregate(child, group, tuple(outputs))

    def call(
        self, attributes: tuple[Attribute, ...], place: int
    ) -> tuple[Attribute, AggregateCall]:
        functions = ["count", "count *", "sum", "avg"]
        if self.everything:
            functions += ["min", "max", "min", "max"]
        function = self.dice.choice(functions)
        filtered = self.predicate(attributes) if self.dice.random() < 0.5 else None
        type = "double" if function == "avg" else "bigint"
        attribute = self.new.attribute(f"f{place}", type)
        if function == "count *":
            return attribute, AggregateCall("count", (), type, filter=filtered)
        argument: Expression = Column(self.dice.choice(attributes))
        distinct = self.everything and self.dice.random() < 0.1
        return attribute, AggregateCall(function, (argument,), type, distinct, filtered)


Shape = Callable[[Builder], Relation]


def views(shape: Shape, everything: bool = False) -> Callable[[Dice], Relation]:
    """A view of a shape, with attribute ids counted from 1."""
    return lambda dice: shape(Builder(dice, Numbering(0), everything))


def _self_join(b: Builder) -> Relation:
    left, right = b.scan("r"), b.scan("r")
    on = Call("=", (Column(left.attributes[0]), Column(right.attributes[1])), "boolean")
    return Join(left, right, on)


SHAPES: dict[str, Shape] = {
    "scan": lambda b: b.scan(),
    "selection": lambda b: b.select(1),
    "projection": lambda b: b.project(1),
    "product": lambda b: Join(b.scan(), b.scan()),
    "equijoin": lambda b: b.join(1, equal=True),
    "non_equijoin": lambda b: b.join(1, equal=False),
    "self_join": _self_join,
    "null_safe_join": lambda b: b.null_safe_join(1),
    "n_way_join": lambda b: Join(Join(b.join(1, equal=True), b.scan()), b.scan()),
    "union": lambda b: b.union(1),
    "nested": lambda b: b.relation(3),
}

OPERATORS: dict[str, Shape] = {
    "left_outer_join": lambda b: b.outer_join(1, "left"),
    "right_outer_join": lambda b: b.outer_join(1, "right"),
    "full_outer_join": lambda b: b.outer_join(1, "full"),
    "semijoin": lambda b: b.semijoin(1, anti=False),
    "antijoin": lambda b: b.semijoin(1, anti=True),
    "mark_join": lambda b: b.mark_join(1),
    "set_intersection": lambda b: b.intersection(1, all=False),
    "bag_intersection": lambda b: b.intersection(1, all=True),
    "set_difference": lambda b: b.difference(1, all=False),
    "bag_difference": lambda b: b.difference(1, all=True),
    "distinct": lambda b: b.distinct(1),
    "aggregate": lambda b: b.grouped(1),
    "window": lambda b: b.window(1),
    "grouping_sets": lambda b: b.expand(1),
    "generate": lambda b: b.generate(1),
    "limit": lambda b: b.limit(1),
    "recursion": lambda b: b.recursion(1),
    "nested": lambda b: b.relation(3),
}
"""Shapes with operators beyond σ, Π, ⋈, × and ⊎; to be built with ``everything``."""
