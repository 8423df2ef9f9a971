"""Random views, data and transactions for the oracle: small domains, so that rows meet and repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Table
from freshview.algebra.expressions import Call, Column, Expression, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    Union,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.delta.transaction import Delta, Transaction, minimal

TABLES = {"r": ("a", "b", "c"), "s": ("b", "d"), "t": ("d", "e")}

values = st.one_of(st.none(), st.integers(0, 3))


def rows(width: int) -> st.SearchStrategy[Bag]:
    """A bag with nulls and duplicates."""
    return st.lists(st.tuples(*[values] * width), max_size=4).map(Counter)


states = st.fixed_dictionaries({name: rows(len(columns)) for name, columns in TABLES.items()}).map(
    lambda state: {name: Table(TABLES[name], bag) for name, bag in state.items()}
)


@st.composite
def transactions(draw: st.DrawFn, state: dict[str, Table]) -> Transaction:
    """Deletions of rows that exist, insertions of any, and updates as both, of several tables."""
    names = draw(st.sets(st.sampled_from(sorted(state)), min_size=1))
    deltas = {}
    for name in sorted(names):
        present = sorted(state[name].rows.elements(), key=repr)
        deleted = (
            draw(st.lists(st.sampled_from(present), unique=False, max_size=3)) if present else []
        )
        kept = state[name].rows & Counter(deleted)
        inserted = draw(rows(len(state[name].columns)))
        before = state[name].rows
        deltas[name] = minimal(before, (before - kept) + inserted)
    return Transaction(deltas)


def retraction(state: dict[str, Table]) -> Transaction:
    """The transaction that empties every table."""
    return Transaction({name: Delta(Counter(), table.rows) for name, table in state.items()})


@dataclass
class Builder:
    """Builds random relations; ids are unique, so that any two of them can be joined."""

    draw: st.DrawFn
    new: Numbering

    def scan(self, table: str | None = None) -> Relation:
        name = table or self.draw(st.sampled_from(sorted(TABLES)))
        return Scan(name, tuple(self.new.attribute(column, "bigint") for column in TABLES[name]))

    def scalar(self, attributes: tuple[Attribute, ...]) -> Expression:
        kind = self.draw(st.integers(0, 3))
        if kind <= 1:
            return Column(self.draw(st.sampled_from(attributes)))
        if kind == 2:
            return integer(self.draw(st.integers(0, 3)))
        left, right = (Column(self.draw(st.sampled_from(attributes))) for _ in range(2))
        return Call(self.draw(st.sampled_from(["+", "-", "*"])), (left, right), "bigint")

    def predicate(self, attributes: tuple[Attribute, ...], depth: int = 1) -> Expression:
        kind = self.draw(st.integers(0, 5 if depth else 3))
        if kind <= 2:
            operation = self.draw(st.sampled_from(["=", "<=>", "<", "<=", ">", ">="]))
            return Call(operation, (self.scalar(attributes), self.scalar(attributes)), "boolean")
        if kind == 3:
            operation = self.draw(st.sampled_from(["is null", "is not null"]))
            return Call(operation, (self.scalar(attributes),), "boolean")
        if kind == 4:
            return Call("not", (self.predicate(attributes, depth - 1),), "boolean")
        parts = (self.predicate(attributes, depth - 1), self.predicate(attributes, depth - 1))
        return Call(self.draw(st.sampled_from(["and", "or"])), parts, "boolean")

    def select(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        return Select(child, self.predicate(child.attributes))

    def project(self, depth: int) -> Relation:
        child = self.relation(depth - 1)
        count = self.draw(st.integers(1, 3))
        outputs = []
        for place in range(count):
            expression = self.scalar(child.attributes)
            outputs.append(Output(self.new.attribute(f"p{place}", "bigint"), expression))
        return Project(child, tuple(outputs))

    def join(self, depth: int, equal: bool | None = None) -> Relation:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        kind = self.draw(st.integers(0, 2)) if equal is None else 0 if equal else 1
        if kind == 0:
            sides = (
                Column(self.draw(st.sampled_from(left.attributes))),
                Column(self.draw(st.sampled_from(right.attributes))),
            )
            return Join(
                left, right, Call(self.draw(st.sampled_from(["=", "<=>"])), sides, "boolean")
            )
        if kind == 1:
            return Join(left, right, self.predicate(left.attributes + right.attributes))
        return Join(left, right)

    def union(self, depth: int) -> Relation:
        first, second = self.relation(depth - 1), self.relation(depth - 1)
        width = min(len(first.attributes), len(second.attributes))
        operands = tuple(
            Project(operand, tuple(keep(a) for a in operand.attributes[:width]))
            for operand in (first, second)
        )
        attributes = tuple(self.new.attribute(f"u{place}", "bigint") for place in range(width))
        return Union(operands, attributes)

    def relation(self, depth: int) -> Relation:
        """Any relation over σ, Π, ⋈, × and ⊎."""
        if depth <= 0:
            return self.scan()
        make = self.draw(
            st.sampled_from(
                [self.select, self.project, self.join, self.union, lambda _: self.scan()]
            )
        )
        return make(depth)

    def aggregate(self, child: Relation) -> Aggregate:
        group = tuple(
            self.draw(st.lists(st.sampled_from(child.attributes), unique=True, max_size=2))
        )
        count = self.draw(st.integers(0 if group else 1, 3))
        outputs = [AggregateOutput(*self.call(child.attributes, place)) for place in range(count)]
        return Aggregate(child, group, tuple(outputs))

    def call(
        self, attributes: tuple[Attribute, ...], place: int
    ) -> tuple[Attribute, AggregateCall]:
        function = self.draw(st.sampled_from(["count", "count *", "sum", "avg"]))
        filtered = self.predicate(attributes) if self.draw(st.booleans()) else None
        type = "double" if function == "avg" else "bigint"
        attribute = self.new.attribute(f"f{place}", type)
        if function == "count *":
            return attribute, AggregateCall("count", (), type, filter=filtered)
        argument = Column(self.draw(st.sampled_from(attributes)))
        return attribute, AggregateCall(function, (argument,), type, filter=filtered)


Shape = Callable[[Builder], Relation]


@st.composite
def views(draw: st.DrawFn, shape: Shape) -> Relation:
    """A view of a shape, with attribute ids counted from 1."""
    return shape(Builder(draw, Numbering(0)))


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
    "n_way_join": lambda b: Join(Join(b.join(1, equal=True), b.scan()), b.scan()),
    "union": lambda b: b.union(1),
    "nested": lambda b: b.relation(3),
}
