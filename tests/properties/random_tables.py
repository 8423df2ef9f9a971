"""Random tables and transactions for the oracle: small domains, so that rows meet and repeat.

A case is made from one seed, which hypothesis draws and a failure prints: drawing every choice by
itself would take ten times as long as evaluating the case.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st

from freshview.algebra.evaluate import Bag, Table
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


def rows(width: int, dice: Dice, most: int = 4) -> Bag:
    """A bag with nulls and duplicates."""

    def value() -> int | None:
        return None if dice.random() < 0.2 else dice.randrange(4)

    return Counter(tuple(value() for _ in range(width)) for _ in range(dice.randrange(most + 1)))


def states(dice: Dice, most: int = 4) -> dict[str, Table]:
    return {
        name: Table(columns, rows(len(columns), dice, most)) for name, columns in TABLES.items()
    }


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
