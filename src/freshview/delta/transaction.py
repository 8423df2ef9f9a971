"""Deltas and transactions as values, for bags. [B07] 1.3–1.4, [IS00] 1.2.

A delta is a pair (Δ, ∇). Differs from [B07] Definition 1.11, which is about sets, because our
relations are bags: a delta is minimal for an instance i iff ∇ ⊆ i and Δ ∩ ∇ = ∅.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from freshview.algebra.evaluate import Bag, Database, Table


@dataclass(frozen=True)
class Delta:
    """(Δ, ∇): rows to insert and rows to delete."""

    inserted: Bag
    deleted: Bag

    def apply(self, instance: Bag) -> Bag:
        """(i ∸ ∇) ⊎ Δ. [B07] Definition 1.9."""
        return (instance - self.deleted) + self.inserted

    def inverse(self) -> Delta:
        """(∇, Δ). It undoes the delta where the delta is minimal. [B07] Definition 1.9, Remark 1.14."""
        return Delta(self.deleted, self.inserted)

    def is_minimal(self, instance: Bag) -> bool:
        """∇ ⊆ i and Δ ∩ ∇ = ∅. [B07] Definition 1.11, for bags."""
        return self.deleted <= instance and not self.inserted & self.deleted

    def signed(self) -> Bag:
        """One bag with signed counts: Δ positive, ∇ negative, zeros left out."""
        net = Counter(self.inserted)
        net.subtract(self.deleted)
        return Counter({row: count for row, count in net.items() if count})


def minimal(before: Bag, after: Bag) -> Delta:
    """The one minimal delta between two instances: (after ∸ before, before ∸ after). [B07] 1.13."""
    return Delta(after - before, before - after)


def from_signed(counts: Bag) -> Delta:
    """Δ and ∇ of a bag with signed counts."""
    return Delta(+counts, -counts)


@dataclass(frozen=True)
class Transaction:
    """Deltas of several tables that take effect together. [B07] Definition 1.15."""

    deltas: Mapping[str, Delta]

    def inverse(self) -> Transaction:
        return Transaction({table: delta.inverse() for table, delta in self.deltas.items()})

    def is_minimal(self, state: Mapping[str, Table]) -> bool:
        return all(delta.is_minimal(state[name].rows) for name, delta in self.deltas.items())

    def apply(self, state: Mapping[str, Table]) -> dict[str, Table]:
        return {
            name: Table(table.columns, self.deltas[name].apply(table.rows))
            if name in self.deltas
            else table
            for name, table in state.items()
        }

    def database(self, state: Mapping[str, Table]) -> Database:
        """Both states and the delta collection deltas(t), in which delta expressions are evaluated.

        [B07] Definition 1.17, with signed counts in place of two names per relation.
        """
        deltas = {
            name: Table(state[name].columns, delta.signed()) for name, delta in self.deltas.items()
        }
        return Database(post=self.apply(state), pre=dict(state), deltas=deltas)
