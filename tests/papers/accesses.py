"""Tuple accesses of a planned refresh, counted while the oracle runs it: the paper's cost model.

A row read from a table or from a view is one access, a row set or deleted in a view is another. As
published, small tables are read as a whole and kept in memory, and each row of □V looks for a match and
sets a row; here only rows that are found are read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from freshview.algebra.evaluate import Bag, Table
from freshview.delta.transaction import Transaction
from freshview.planner.strategy import Strategy
from tests.properties.planned import defined, recomputed, run, visible


@dataclass(frozen=True)
class Accesses:
    """What a refresh read of each table, and read and wrote of the view."""

    deltas: int
    """Rows of the changes, for each occurrence of them in the plan."""
    tables: Counter[str]
    view: int
    asked_and_set: int
    """What the view costs as published: two accesses for each row of □V."""

    @property
    def total(self) -> int:
        return self.deltas + self.tables.total() + self.view


def accesses(
    strategy: Strategy,
    state: dict[str, Table],
    transaction: Transaction,
    whole: frozenset[str] = frozenset(),
) -> Accesses:
    """Refresh the view and count; the result has to be the recompute."""
    stored = recomputed(strategy, state)
    done = run(strategy, stored, state, transaction, None, whole)
    assert done.stored == recomputed(strategy, transaction.apply(state))
    assert visible(strategy, done.stored) == defined(strategy, transaction.apply(state))
    reads = done.reads.copy()
    read = reads.pop(strategy.view, 0)
    changes = [reads.pop(name) for name in list(reads) if name.startswith("Δ")]
    written = _written(strategy, stored, done.stored)
    return Accesses(sum(changes), reads, read + written, 2 * done.change_rows)


def _written(strategy: Strategy, before: Bag, after: Bag) -> int:
    """Rows set or deleted, by key."""
    places = [strategy.stored.index(a) for a in strategy.key]

    def keys(rows: Bag) -> set[tuple[object, ...]]:
        return {tuple(row[p] for p in places) for row in rows}

    return len(keys(after - before) | keys(before - after))
