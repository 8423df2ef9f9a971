"""Planned refreshes run by the oracle: steps, lookups and the refresh operator, without Spark.

A scan gets the rows that one of its probes finds, picked by the dice, and no others: a bound that
leaves out a row that matters gives a wrong view here. Without dice the way is taken that reads least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from freshview.algebra.evaluate import Bag, Database, Row, Table, evaluate
from freshview.algebra.relations import Changes, Leaf, Scan
from freshview.algebra.traverse import walk
from freshview.delta.derivation import Kind
from freshview.delta.transaction import Transaction
from freshview.group_recompute import top_rows
from freshview.planner.bounds import Origin, Range
from freshview.planner.lookups import LookUp, Probe
from freshview.planner.plan import ChangePlan, change_plan
from freshview.planner.strategy import Strategy
from tests.properties.random_tables import Dice


@dataclass(frozen=True)
class Fetched(Database):
    """The leaves of a refresh as far as they were fetched, and how many rows were read of each table."""

    whole: frozenset[str] = frozenset()
    held: dict[Leaf, Bag] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)

    def leaf(self, leaf: Leaf) -> Bag:
        return self.held[leaf] if leaf in self.held else Database.leaf(self, leaf)

    def values(self, origin: Origin) -> set[Any]:
        """Every value of an origin."""
        found = {None} if origin.padded else set()
        for leaf, attribute in origin.columns:
            place = leaf.attributes.index(attribute)
            found |= {row[place] for row in self.held[leaf]}
        return found

    def fetch(self, lookup: LookUp, dice: Dice | None) -> None:
        """Put the rows of a leaf there that one of its probes finds, or all of them."""
        leaf = lookup.leaf
        rows = Database.leaf(self, leaf)
        usable: list[Probe | Range] = []
        if leaf.table not in self.whole:
            usable += [
                probe
                for probe in lookup.probes
                if all(None not in self.values(origin) for origin in probe.without_null)
            ]
            usable += [held for held in lookup.ranges if None not in self._ends(held)]
        if any(not self.held[needed] for needed in lookup.needs):
            rows = Counter()
        elif usable and dice is None:
            rows = min((self._found(leaf, rows, p) for p in usable), key=Counter.total)
        elif usable:
            rows = self._found(leaf, rows, dice.choice(usable))
        self.held[leaf] = rows
        if leaf.table in self.whole:
            self.reads[leaf.table] = (self.pre or self.post)[leaf.table].rows.total()
        else:
            self.reads[leaf.table] += rows.total()

    def _ends(self, held: Range) -> list[Any]:
        """The ends of the ranges, low and high in turns, of the one row that holds them."""
        places = [held.leaf.attributes.index(a) for pair in held.limits for a in pair]
        return [row[place] for row in self.held[held.leaf] for place in places]

    def _found(self, leaf: Scan, rows: Bag, probe: Probe | Range) -> Bag:
        if isinstance(probe, Range):
            ends, place = self._ends(probe), leaf.attributes.index(probe.attribute)
            return Counter(
                {
                    row: count
                    for row, count in rows.items()
                    for value in [row[place]]
                    if value is not None and any(a <= value <= b for a, b in batched(ends))
                }
            )
        keys = self.values(probe.origin)
        if not probe.null_safe:
            keys.discard(None)
        place = leaf.attributes.index(probe.key)
        return Counter({row: count for row, count in rows.items() if row[place] in keys})


def batched(ends: list[Any]) -> list[tuple[Any, Any]]:
    """The ends of ranges two by two."""
    return list(zip(ends[::2], ends[1::2], strict=True))


def recomputed(strategy: Strategy, state: Mapping[str, Table]) -> Bag:
    """The stored rows of a view, computed from scratch."""
    return evaluate(strategy.rows, Database(state))


def visible(strategy: Strategy, stored: Bag) -> list[Row]:
    """The rows that a user sees, each as often as it is there."""
    places = [strategy.stored.index(a) for a in strategy.visible]
    counted = strategy.is_counted or strategy.has_copies
    shown = [
        tuple(row[p] for p in places) for row in stored for _ in range(row[-1] if counted else 1)
    ]
    return sorted(shown, key=repr)


def defined(strategy: Strategy, state: Mapping[str, Table]) -> list[Row]:
    """The rows of the view by its definition, which shares nothing with how it is stored."""
    return sorted(evaluate(strategy.relation, Database(state)).elements(), key=repr)


def kinds(transaction: Transaction) -> dict[str, Kind]:
    """What an observer of the deltas knows of each table."""
    return {
        name: Kind.ANY if delta.deleted else Kind.INSERTIONS
        for name, delta in transaction.deltas.items()
    }


@dataclass(frozen=True)
class Run:
    """The stored rows after a planned refresh, what was read, and how many rows □V had."""

    stored: Bag
    reads: Counter[str]
    change_rows: int = 0


def refreshed(
    strategy: Strategy,
    stored: Bag,
    state: dict[str, Table],
    transaction: Transaction,
    dice: Dice | None,
) -> tuple[Bag, Counter[str]]:
    """The stored rows after a planned refresh, and the rows read of each table and of the view."""
    done = run(strategy, stored, state, transaction, dice)
    return done.stored, done.reads


def run(
    strategy: Strategy,
    stored: Bag,
    state: dict[str, Table],
    transaction: Transaction,
    dice: Dice | None,
    whole: frozenset[str] = frozenset(),
) -> Run:
    """A planned refresh, step by step; tables in ``whole`` are read as a whole, once, and kept."""
    change = change_plan(strategy, kinds(transaction))
    if change is None:
        return Run(stored, Counter())
    database = transaction.database(state)
    names = tuple(a.name for a in strategy.stored)
    before = {**database.pre, strategy.view: Table(names, stored)}
    fetched = Fetched(database.post, before, database.deltas, whole=whole)
    direct = change.direct is not None and dice is not None and dice.random() < 0.5
    steps = change.direct if direct and change.direct is not None else change.stepwise
    by_key = _has_keys(strategy) and not direct and (dice is None or dice.random() < 0.8)
    for step in steps.steps:
        for leaf in walk(step.relation):
            if isinstance(leaf, Changes) and leaf not in fetched.held:
                fetched.held[leaf] = Database.leaf(fetched, leaf)
                changed = sum(abs(row[-1]) * n for row, n in fetched.held[leaf].items())
                fetched.reads[f"Δ{leaf.table}"] += changed
        for lookup in step.lookups:
            if lookup.leaf not in fetched.held:
                fetched.fetch(lookup, dice)
        if by_key and steps.stored not in fetched.held and step.reads(steps.stored):
            rows = _touched_rows(change, fetched, steps.stored, dice)
            fetched.held[steps.stored] = rows
            fetched.reads[strategy.view] += len(rows)
        if step.leaf is not None:
            rows = evaluate(step.relation, fetched)
            fetched.held[step.leaf] = rows
        else:
            touched = evaluate(step.relation, fetched)
            rows = fetched.held.get(change.keys[0].leaf, Counter())
            return Run(_applied(strategy, stored, touched), fetched.reads, len(rows))
    raise AssertionError("the last step is the refresh")


def _has_keys(strategy: Strategy) -> bool:
    return not strategy.is_read_whole


@contextmanager
def spare_rows(least: int) -> Iterator[None]:
    """Views of first rows keep so few to spare that some deletions use them up."""
    with patch.object(top_rows, "SPARE_LEAST", least):
        yield


def _touched_rows(change: ChangePlan, fetched: Fetched, stored: Scan, dice: Dice | None) -> Bag:
    """The stored rows that the change tables lead to, by one column of each, and no others."""
    rows = Database.leaf(fetched, stored)
    names = [a.name for a in stored.attributes]
    found: Bag = Counter()
    for keys in change.keys:
        held = keys.leaf.attributes
        where = () if keys.where is None else (held.index(keys.where),)
        unless = [held.index(a) for a in keys.unless]
        asked = [
            row
            for row in fetched.held[keys.leaf]
            if all(row[p] is True for p in where) and not any(row[p] is True for p in unless)
        ]
        ways = []
        for key, column in keys.columns:
            place = keys.leaf.attributes.index(column)
            ways.append((names.index(key.name), {row[place] for row in asked}))
        one = max(ways, key=lambda way: len(way[1])) if dice is None else dice.choice(ways)
        found |= Counter({row: n for row, n in rows.items() if row[one[0]] in one[1]})
    return found


def _applied(strategy: Strategy, stored: Bag, touched: Bag) -> Bag:
    """Set and delete rows by key, as storage does; a key must come once."""
    names = [a.name for a in strategy.stored]
    places = [strategy.stored.index(key) for key in strategy.key]
    rows: dict[Row, Row] = {tuple(row[p] for p in places): row for row in stored}
    assert len(rows) == stored.total()
    seen: set[Row] = set()
    for row, copies in touched.items():
        new = row[: len(names)]
        key = tuple(new[p] for p in places)
        assert copies == 1, "a stored row comes once"
        assert key not in seen, "a key comes once"
        seen.add(key)
        old = rows.pop(key, None)
        if strategy.is_counted:
            assert new[-1] - row[len(names)] == (old[-1] if old else 0), "the change is the change"
            if new[-1]:
                rows[key] = new
            continue
        keep, was = row[len(names) : len(names) + 2]
        assert was is (old is not None)
        if old is not None:
            shown = [strategy.stored.index(a) for a in _shown(strategy)]
            assert tuple(old[p] for p in shown) == row[len(names) + 2 :]
        if strategy.row_layout is not None and keep:
            assert new[-1] > 0
        if keep:
            rows[key] = new
    return Counter(rows.values())


def _shown(strategy: Strategy) -> tuple[Any, ...]:
    layout = strategy.layout or strategy.row_layout or strategy.top
    assert layout is not None
    shown = tuple(output.attribute for output in layout.visible)
    counted = strategy.row_layout or strategy.top
    return shown if counted is None else (*shown, counted.count)
