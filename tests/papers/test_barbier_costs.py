"""[B07] 4.3.2: looking up is constant, ∩ and − are driven by their left operand, c_inc/c_ev → 0.

A theorem to test, not a cost model to run on: Table 4.2 prices × as a product and leaves out π.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from freshview.algebra.evaluate import Database, Row, Table, evaluate, function
from freshview.algebra.expressions import Column, equal, integer
from freshview.algebra.relations import (
    Aggregate,
    Difference,
    Intersection,
    Join,
    Project,
    Relation,
    Scan,
    Select,
    Union,
    Values,
)
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import walk
from freshview.delta.states import post
from freshview.delta.transaction import Delta, Transaction
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.papers.accesses import accesses
from tests.papers.sets import SetBuilder, set_state
from tests.properties.random_tables import TABLES, Dice, dice
from tests.properties.test_planned import named


class Probing:
    """Answers whether a row is in an expression without evaluating it; counts looks into relations."""

    def __init__(self, state: dict[str, Table]) -> None:
        self.state = state
        self.looks = 0

    def has(self, query: Relation, row: Row) -> bool:
        """Lemma 4.5, by induction on the expression."""
        match query:
            case Scan(table, attributes):
                self.looks += 1
                held = self.state[table]
                assert tuple(a.name for a in attributes) == held.columns
                return row in held.rows
            case Select(child, predicate):
                return function(predicate, child.attributes)(row) is True and self.has(child, row)
            case Intersection(left, right):
                return self.has(left, row) and self.has(right, row)
            case Difference(left, right):
                return self.has(left, row) and not self.has(right, row)
            case Aggregate(Union((left, right), _), _, ()):
                return self.has(left, row) or self.has(right, row)
            case Join(left, right, None):
                width = len(left.attributes)
                return self.has(left, row[:width]) and self.has(right, row[width:])
            case _:
                raise AssertionError("the lemma leaves out π and aggregation")

    def rows(self, query: Relation) -> set[Row]:
        """Lemma 4.6: ∩ and − loop over their left operand and look each row up in the right one."""
        match query:
            case Scan(table, _):
                self.looks += len(self.state[table].rows)
                return set(self.state[table].rows)
            case Select(child, predicate):
                holds = function(predicate, child.attributes)
                return {row for row in self.rows(child) if holds(row) is True}
            case Intersection(left, right):
                return {row for row in self.rows(left) if self.has(right, row)}
            case Difference(left, right):
                return {row for row in self.rows(left) if not self.has(right, row)}
            case Aggregate(Union((left, right), _), _, ()):
                return self.rows(left) | self.rows(right)
            case Join(left, right, None):
                others = self.rows(right)
                return {row + other for row in self.rows(left) for other in others}
            case _:
                raise AssertionError("the lemma leaves out π and aggregation")


class WithoutProjection(SetBuilder):
    """Expressions over σ, ∪, ∩, − and × alone."""

    def narrow(self, depth: int) -> Relation:
        return self.over(self.dice.choice(["s", "t"]), depth)

    def over(self, table: str, depth: int) -> Relation:
        """An expression of two columns."""
        if depth <= 0:
            return self.scan(table)
        kind = self.dice.choice(["σ", "∪", "∩", "−"])
        if kind == "σ":
            child = self.over(table, depth - 1)
            return Select(child, self.predicate(child.attributes))
        return self.set_expression(depth, kind)


def query_of(data: Dice) -> Relation:
    builder = WithoutProjection(data, Numbering(0))
    kind = data.choice(["σ", "∪", "∩", "−", "×"])
    if kind == "×":
        return Join(builder.narrow(1), builder.narrow(1))
    return builder.over("s", 2)


def leaves(query: Relation) -> int:
    return sum(isinstance(node, Scan) for node in walk(query))


@settings(max_examples=500)
@given(data=dice)
def test_lemma_4_5_a_lookup_takes_constant_time(data: Dice) -> None:
    """At most one look per relation name, however large the relations are."""
    query = query_of(data)
    for size in (1, 50):
        state = {
            name: Table(t.columns, Counter({tuple([n] * len(t.columns)): 1 for n in range(size)}))
            for name, t in set_state(data).items()
        }
        probing = Probing(state)
        probing.has(query, tuple([0] * len(query.attributes)))
        assert probing.looks <= leaves(query)


@settings(max_examples=500)
@given(data=dice)
def test_lemma_4_6_the_left_operand_drives(data: Dice) -> None:
    builder = WithoutProjection(data, Numbering(0))
    left, right = builder.scan("s"), builder.over("s", 1)
    kind = data.choice([Intersection, Difference])
    query = kind(left, right, all=False)
    state = set_state(data)
    probing = Probing(state)
    found = probing.rows(query)
    rows = len(state["s"].rows)
    assert probing.looks <= rows + rows * leaves(right)
    assert Counter(dict.fromkeys(found, 1)) == evaluate(post(query), Database(state))


def c_ev(query: Relation, b: float) -> float:
    """Table 4.2, second column."""
    match query:
        case Values():
            return 1
        case Scan():
            return b
        case Select(child, _) | Project(child, _):
            return c_ev(child, b)
        case Join(left, right, None):
            return c_ev(left, b) * c_ev(right, b)
        case Intersection(left, right) | Difference(left, right):
            return c_ev(left, b) + c_ev(right, b)
        case Aggregate(Union((left, right), _), _, ()):
            return c_ev(left, b) + c_ev(right, b)
        case _:
            raise AssertionError("Table 4.2 has no such row")


def c_inc(query: Relation, b: float, d: float) -> float:
    """Table 4.2, third column."""
    match query:
        case Values():
            return 0
        case Scan():
            return d
        case Select(child, _) | Project(child, _):
            return c_inc(child, b, d)
        case Join(left, right, None):
            every = c_ev(left, b) + c_ev(right, b)
            return every * (c_inc(left, b, d) + c_inc(right, b, d))
        case Intersection(left, right) | Difference(left, right):
            return c_inc(left, b, d) + c_inc(right, b, d)
        case Aggregate(Union((left, right), _), _, ()):
            return c_inc(left, b, d) + c_inc(right, b, d)
        case _:
            raise AssertionError("Table 4.2 has no such row")


def queries() -> dict[str, Relation]:
    """A query for each row of Table 4.2, over relations of equal size."""
    new = Numbering(0)
    r, s = (Scan("s", tuple(new.attribute(c, "bigint") for c in TABLES["s"])) for _ in range(2))
    both = Union((r, s), r.attributes)
    return {
        "i": Values(r.attributes, ()),
        "R": r,
        "σ": Select(r, equal(Column(r.attributes[0]), Column(r.attributes[0]))),
        "∪": Aggregate(both, r.attributes, ()),
        "∩": Intersection(r, s, all=False),
        "−": Difference(r, s, all=False),
        "×": Join(r, s),
    }


@pytest.mark.parametrize(
    ("row", "ev", "inc"),
    [
        ("i", 1, 0),
        ("R", 100, 3),
        ("σ", 100, 3),
        ("∪", 200, 6),
        ("∩", 200, 6),
        ("−", 200, 6),
        ("×", 10_000, 1_200),
    ],
)
def test_table_4_2(row: str, ev: int, inc: int) -> None:
    """b = 100, d = 3; the looks that an evaluation takes are no more than its cost."""
    query = queries()[row]
    assert (c_ev(query, 100), c_inc(query, 100, 3)) == (ev, inc)
    if row != "i":
        width = len(TABLES["s"])
        rows = Counter({tuple([n] * width): 1 for n in range(100)})
        probing = Probing({"s": Table(TABLES["s"], rows)})
        found = probing.rows(query)
        assert max(probing.looks, len(found)) <= ev


@settings(max_examples=500)
@given(data=dice)
def test_theorem_4_7_the_ratio_of_the_costs_goes_to_zero(data: Dice) -> None:
    """Ten times b/d is at most a tenth of the ratio, for every expression."""
    query = query_of(data)
    ratios = [c_inc(query, b, 1.0) / c_ev(query, b) for b in (1e3, 1e4, 1e5, 1e6)]
    for larger, smaller in itertools.pairwise(ratios):
        assert smaller <= larger / 9.9
    assert ratios[-1] < 1e-4


COUNTED: dict[str, Callable[[Scan, Scan], Relation]] = {
    "σ": lambda r, s: Select(r, equal(Column(r.attributes[1]), integer(1))),
    "∪": lambda r, s: Aggregate(Union((r, s), r.attributes), r.attributes, ()),
    "∩": lambda r, s: Intersection(r, s, all=False),
    "−": lambda r, s: Difference(r, s, all=False),
    "⋈": lambda r, s: Join(r, s, equal(Column(r.attributes[0]), Column(s.attributes[0]))),
}


@pytest.mark.parametrize("query", COUNTED)
def test_theorem_4_7_counted(query: str) -> None:
    """d = 4 rows of each table: the rows that a planned refresh reads do not grow with b."""
    reads = [_rows_read(COUNTED[query], b) for b in (100, 1_000, 10_000)]
    assert reads[0] == reads[1] == reads[2]
    assert reads[0] <= 40


def _rows_read(query: Callable[[Scan, Scan], Relation], b: int) -> int:
    new = Numbering(0)
    r, s = (Scan(t, tuple(new.attribute(c, "bigint") for c in "kv")) for t in "rs")
    made = strategy("v", named(query(r, s)), Technique.DELTA)
    assert made.reason is None
    rows = Counter({(n, n % 2): 1 for n in range(b)})
    state = {t: Table(("k", "v"), rows) for t in "rs"}
    delta = Delta(Counter([(b, 1), (b + 1, 0)]), Counter([(3, 1), (4, 0)]))
    found = accesses(made, state, Transaction(dict.fromkeys("rs", delta)))
    return found.total
