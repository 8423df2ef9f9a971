"""Random expressions, states and transactions of sets, for the thesis's tables."""

from __future__ import annotations

from collections import Counter

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Table
from freshview.algebra.expressions import Column
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Difference,
    Intersection,
    Join,
    Relation,
    Select,
    Union,
)
from freshview.delta.transaction import Transaction, minimal
from tests.properties.generators import Builder
from tests.properties.random_tables import TABLES, Dice


def set_rows(width: int, dice: Dice) -> Bag:
    return Counter(
        {tuple(dice.randrange(3) for _ in range(width)) for _ in range(dice.randrange(5))}
    )


def set_state(dice: Dice) -> dict[str, Table]:
    return {name: Table(columns, set_rows(len(columns), dice)) for name, columns in TABLES.items()}


def set_transaction(state: dict[str, Table], dice: Dice) -> Transaction:
    """A minimal transaction between two states of sets."""
    changed = dice.sample(sorted(state), dice.randrange(1, len(state) + 1))
    return Transaction(
        {n: minimal(state[n].rows, set_rows(len(state[n].columns), dice)) for n in changed}
    )


class SetBuilder(Builder):
    """Builds expressions of sets: σ, π, ∪, ∩, −, × and, where asked for, aggregation."""

    aggregates = False

    def projection(self, child: Relation) -> Aggregate:
        count = self.dice.randint(1, min(3, len(child.attributes)))
        return Aggregate(child, tuple(self.dice.sample(child.attributes, count)), ())

    def aggregation(self, child: Relation) -> Aggregate:
        group = tuple(self.dice.sample(child.attributes, self.dice.randint(0, 1)))
        call = AggregateCall(
            self.dice.choice(["sum", "count", "min", "max"]),
            (Column(self.dice.choice(child.attributes)),),
            "bigint",
        )
        return Aggregate(child, group, (AggregateOutput(self.new.attribute("f", "bigint"), call),))

    def narrow(self, depth: int) -> Relation:
        """An expression of two columns, so that any two of them are compatible."""
        child = self.set_expression(depth)
        while len(child.attributes) < 2:
            child = Join(child, self.scan())
        return Aggregate(child, tuple(self.dice.sample(child.attributes, 2)), ())

    def set_expression(self, depth: int, kind: str | None = None) -> Relation:
        if depth <= 0:
            return self.scan()
        kinds = ["σ", "π", "∪", "∩", "−", "×", "R"] + ["π,f"] * self.aggregates
        match kind or self.dice.choice(kinds):
            case "σ":
                child = self.set_expression(depth - 1)
                return Select(child, self.predicate(child.attributes))
            case "π":
                return self.projection(self.set_expression(depth - 1))
            case "∪":
                left, right = self.narrow(depth - 1), self.narrow(depth - 1)
                columns = tuple(self.new.attribute(name, "bigint") for name in ("u", "v"))
                return Aggregate(Union((left, right), columns), columns, ())
            case "∩":
                return Intersection(self.narrow(depth - 1), self.narrow(depth - 1), all=False)
            case "−":
                return Difference(self.narrow(depth - 1), self.narrow(depth - 1), all=False)
            case "×":
                return Join(self.set_expression(depth - 1), self.set_expression(depth - 1))
            case "π,f":
                return self.aggregation(self.set_expression(depth - 1))
            case _:
                return self.scan()
