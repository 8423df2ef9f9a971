"""Random views, data and transactions for the oracle: small domains, so that rows meet and repeat.

A case is made from one seed, which hypothesis draws and a failure prints: drawing every choice by
itself would take ten times as long as evaluating the case.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Table
from freshview.algebra.expressions import Call, Column, Expression, cast, integer
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

Made = TypeVar("Made")


class Dice(random.Random):
    """Random choices that follow from a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def draw(self, make: Callable[[Dice], Made]) -> Made:
        return make(self)

    def __repr__(self) -> str:
        return f"Dice({self._seed})"


dice = st.builds(Dice, st.integers(0, 2**64 - 1))


def bags(width: int) -> st.SearchStrategy[Bag]:
    """Bags drawn by hypothesis itself, which can then make a failing one smaller."""
    value = st.one_of(st.none(), st.integers(0, 3))
    return st.lists(st.tuples(*[value] * width), max_size=4).map(Counter)


def rows(width: int, dice: Dice) -> Bag:
    """A bag with nulls and duplicates."""

    def value() -> int | None:
        return None if dice.random() < 0.2 else dice.randrange(4)

    return Counter(tuple(value() for _ in range(width)) for _ in range(dice.randrange(5)))


def states(dice: Dice) -> dict[str, Table]:
    return {name: Table(columns, rows(len(columns), dice)) for name, columns in TABLES.items()}


def transactions(state: dict[str, Table]) -> Callable[[Dice], Transaction]:
    """Deletions of rows that exist, insertions of any, and updates as both, of several tables."""

    def make(dice: Dice) -> Transaction:
        deltas = {}
        for name in dice.sample(sorted(state), dice.randrange(1, len(state) + 1)):
            before = state[name].rows
            present = sorted(before.elements(), key=repr)
            deleted = Counter(dice.sample(present, dice.randrange(min(len(present), 3) + 1)))
            after = (before - deleted) + rows(len(state[name].columns), dice)
            deltas[name] = minimal(before, after)
        return Transaction(deltas)

    return make


def retraction(state: dict[str, Table]) -> Transaction:
    """The transaction that empties every table."""
    return Transaction({name: Delta(Counter(), table.rows) for name, table in state.items()})


@dataclass
class Builder:
    """Builds random relations; ids are unique, so that any two of them can be joined."""

    dice: Dice
    new: Numbering

    def scan(self, table: str | None = None) -> Relation:
        name = table or self.dice.choice(sorted(TABLES))
        return Scan(name, tuple(self.new.attribute(column, "bigint") for column in TABLES[name]))

    def scalar(self, attributes: tuple[Attribute, ...]) -> Expression:
        kind = self.dice.randint(0, 3)
        if kind <= 1:
            return Column(self.dice.choice(attributes))
        if kind == 2:
            return integer(self.dice.randint(0, 3))
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
        make = self.dice.choice(
            [self.select, self.project, self.join, self.union, lambda _: self.scan()]
        )
        return make(depth)

    def aggregate(self, child: Relation) -> Aggregate:
        group = tuple(
            self.dice.sample(child.attributes, self.dice.randint(0, min(2, len(child.attributes))))
        )
        count = self.dice.randint(0 if group else 1, 3)
        outputs = [AggregateOutput(*self.call(child.attributes, place)) for place in range(count)]
        return Aggregate(child, group, tuple(outputs))

    def call(
        self, attributes: tuple[Attribute, ...], place: int
    ) -> tuple[Attribute, AggregateCall]:
        function = self.dice.choice(["count", "count *", "sum", "avg"])
        filtered = self.predicate(attributes) if self.dice.random() < 0.5 else None
        type = "double" if function == "avg" else "bigint"
        attribute = self.new.attribute(f"f{place}", type)
        if function == "count *":
            return attribute, AggregateCall("count", (), type, filter=filtered)
        argument: Expression = Column(self.dice.choice(attributes))
        if function == "avg":  # the average of BIGINT has no rule
            argument = cast(argument, "int")
        return attribute, AggregateCall(function, (argument,), type, filter=filtered)


Shape = Callable[[Builder], Relation]


def views(shape: Shape) -> Callable[[Dice], Relation]:
    """A view of a shape, with attribute ids counted from 1."""
    return lambda dice: shape(Builder(dice, Numbering(0)))


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
