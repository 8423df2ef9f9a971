"""[GM06] 5.1, 7 and 9: which sources a refresh queries, when it does, and that none of them is idle.

For each tree and each changed table the sources queried are named. That fewer would not do is shown by a
pair of states in which the view, the change and all other queried tables are the same, and the view
after the change is not: whoever does not look at the table cannot tell the two apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import ClassVar

import pytest
from hypothesis import given, settings

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Database, Row, Table, evaluate
from freshview.algebra.expressions import Column, equal
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    OuterJoin,
    Relation,
    Scan,
    Union,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import tables, walk
from freshview.delta.derivation import Kind
from freshview.delta.transaction import Delta, Transaction
from freshview.planner.plan import change_plan
from freshview.planner.strategy import Strategy
from freshview.planner.techniques import strategy
from tests.properties.planned import recomputed, run
from tests.properties.random_tables import Dice, dice
from tests.properties.test_planned import named


class Trees:
    """Expression trees over r(k, v), s(k, v) and t(k, v)."""

    def __init__(self) -> None:
        self.new = Numbering(0)
        self.r, self.s, self.t = (self._scan(name) for name in "rst")

    def _scan(self, table: str) -> Scan:
        return Scan(table, tuple(self.new.attribute(c, "bigint") for c in "kv"))

    def totals(self, child: Relation, *group: Attribute) -> Aggregate:
        calls = {
            "total": AggregateCall("sum", (Column(child.attributes[1]),), "bigint"),
            "n": AggregateCall("count", (), "bigint"),
        }
        outputs = (AggregateOutput(self.new.attribute(n, "bigint"), c) for n, c in calls.items())
        return Aggregate(child, group or child.attributes[:1], tuple(outputs))

    def _on(self, left: Relation, right: Relation) -> tuple[Relation, Relation, object]:
        return left, right, equal(Column(left.attributes[0]), Column(right.attributes[0]))

    def aggregate(self) -> Relation:
        """π(R): the change table needs no source."""
        return self.totals(self.r)

    def joined_aggregate(self) -> Relation:
        """π(R) ⋈ S."""
        return Join(*self._on(self.totals(self.r), self.s))  # type: ignore[arg-type]

    def composed(self) -> Relation:
        """Example 1: π(π(R) ⋈ S)."""
        inner = self.totals(self.r)
        joined = Join(*self._on(inner, self.s))  # type: ignore[arg-type]
        total, count = (
            AggregateOutput(
                self.new.attribute(o.attribute.name, "bigint"),
                AggregateCall("sum", (Column(o.attribute),), "bigint"),
            )
            for o in inner.aggregates
        )
        return Aggregate(joined, (self.s.attributes[0],), (total, count))

    def outer(self) -> Relation:
        """Example 2: (R ⟗ S) ⟗ T."""
        inner = OuterJoin(*self._on(self.r, self.s), True, True)  # type: ignore[arg-type]
        on = equal(Column(self.s.attributes[0]), Column(self.t.attributes[0]))
        return OuterJoin(inner, self.t, on, True, True)

    def union(self) -> Relation:
        """π(R) ⊎ π(S), tagged."""
        left, right = self.totals(self.r), self.totals(self.s)
        names = tuple(self.new.attribute(a.name, a.type) for a in left.attributes)
        return Union((left, right), names)


QUERIED = {
    ("aggregate", "r"): "",
    ("joined_aggregate", "r"): "s",
    ("joined_aggregate", "s"): "r",
    ("composed", "r"): "s",
    ("composed", "s"): "r",
    ("outer", "r"): "st",
    ("union", "r"): "",
    ("union", "s"): "",
}


def kept(tree: str) -> Strategy:
    return strategy("v", named(getattr(Trees(), tree)()))


def queried(made: Strategy, changed: str, kind: Kind) -> set[str]:
    """The tables that a refresh reads besides the changes and the view."""
    change = change_plan(made, {changed: kind})
    assert change is not None
    leaves = (node for step in change.stepwise.steps for node in walk(step.relation))
    return {leaf.table for leaf in leaves if isinstance(leaf, Scan)} - {made.view}


@pytest.mark.parametrize(("tree", "changed"), QUERIED)
@pytest.mark.parametrize("kind", Kind)
def test_theorem_5_no_other_source_is_queried(tree: str, changed: str, kind: Kind) -> None:
    assert queried(kept(tree), changed, kind) == set(QUERIED[tree, changed])


def depends(relation: Relation, changed: str, source: str) -> bool:
    """Whether two states differ in this source alone, as far as one can see, and in the view after."""
    seen: dict[object, str] = {}
    for state in _states(tables(relation)):
        before = evaluate(relation, Database(state))
        for row in _rows():
            transaction = Transaction({changed: Delta(Counter([row]), Counter())})
            after = _text(evaluate(relation, Database(transaction.apply(state))))
            others = tuple(_text(state[t].rows) for t in state if t not in (source, changed))
            if seen.setdefault((_text(before), others, row), after) != after:
                return True
    return False


@pytest.mark.parametrize(
    ("tree", "changed", "source"),
    [(tree, changed, s) for (tree, changed), found in QUERIED.items() for s in found],
)
def test_theorem_5_no_source_can_be_left_out(tree: str, changed: str, source: str) -> None:
    """Only a full outer join holds its tables: see optimisation 2."""
    assert depends(kept(tree).relation, changed, source) == (tree != "outer")


class TestOptimisation2:
    """A subexpression computed from the view's own contents: fewer sources, and more rows.

    freshview queries the sources, see docs/decisions/0007-sources-and-the-view.md.
    """

    @settings(max_examples=300)
    @given(data=dice)
    def test_a_full_outer_join_holds_its_tables(self, data: Dice) -> None:
        """(R ⟗ S) ⟗ T: each table is Π of the view's rows that have a row of it."""
        made = kept("outer")
        layout = made.row_layout
        assert layout is not None
        state = {name: Table(("k", "v"), _bag(data)) for name in "rst"}
        rows = evaluate(layout.held(layout.leaf("v", Numbering(900))), _stored(made, state))
        places = {a: place for place, a in enumerate(layout.columns)}
        for part, name in zip(layout.extent.parts, "rst", strict=True):
            columns = [places[a] for a in (*part.key, *part.states)]
            held = {tuple(row[c] for c in columns) for row in rows}
            found = Counter({row[:-1]: row[-1] for row in held if row[-1] is not None})
            assert found == state[name].rows

    @settings(max_examples=300)
    @given(data=dice)
    def test_a_product_holds_the_product_of_its_other_operands(self, data: Dice) -> None:
        """V = R × (S × T), |R| > 0: S × T is V's count by their columns, divided by |R|."""
        r, s, t = (_bag(data) for _ in range(3))
        view = _times(r, _times(s, t))
        if r:
            found = Counter[Row]()
            for row, copies in view.items():
                found[row[2:]] += copies
            assert {row: n // r.total() for row, n in found.items()} == _times(s, t)
            assert view.total() == r.total() * s.total() * t.total(), "read instead of |S| + |T|"


def _bag(dice: Dice) -> Bag:
    rows = [(dice.choice([None, 1, 2, 3]), dice.randrange(2)) for _ in range(dice.randrange(5))]
    return Counter(rows)


def _times(left: Bag, right: Bag) -> Bag:
    return Counter({a + b: m * n for a, m in left.items() for b, n in right.items()})


def _stored(made: Strategy, state: dict[str, Table]) -> Database:
    names = tuple(a.name for a in made.stored)
    view = {"v": Table(names, recomputed(made, state))}
    return Database(view, view)


def _rows() -> tuple[Row, ...]:
    return ((1, 1), (2, 1))


def _states(names: tuple[str, ...]) -> Iterator[dict[str, Table]]:
    """All states with at most one row in each table, and some with two."""
    few: tuple[Bag, ...] = (Counter(), *(Counter([row]) for row in _rows()), Counter(_rows()))
    for bags in product(few, repeat=len(names)):
        yield {n: Table(("k", "v"), bag) for n, bag in zip(names, bags, strict=True)}


def _text(rows: Bag) -> str:
    return repr(sorted(rows.items(), key=repr))


class TestLateUpdates:
    """[GM06] 5.1: MIN and MAX ask the base only if the view's row is there and may lose its extremum."""

    rows: ClassVar[Bag] = Counter({(1, 5): 1, (1, 7): 2, (1, 9): 1, (2, 4): 1})

    def made(self) -> Strategy:
        new = Numbering(0)
        k, v = (new.attribute(c, "bigint") for c in "kv")
        outputs = tuple(
            AggregateOutput(new.attribute(f, "bigint"), AggregateCall(f, (Column(v),), "bigint"))
            for f in ("min", "max")
        )
        return strategy("v", named(Aggregate(Scan("r", (k, v)), (k,), outputs)))

    @pytest.mark.parametrize(
        ("inserted", "deleted", "reads"),
        [
            ([(1, 1), (3, 3)], [], 0),
            ([], [(1, 7)], 0),
            ([], [(2, 4)], 0),
            ([(1, 9)], [(1, 9), (1, 7)], 0),
            ([(1, 11)], [(1, 9)], 0),
            ([], [(1, 9)], 3),
            ([], [(1, 5)], 3),
            ([(2, 8)], [(1, 9), (2, 4)], 4),
        ],
        ids=[
            "insertions",
            "a value in between",
            "the whole group",
            "taken and given back",
            "replaced by a higher one",
            "the maximum",
            "the minimum",
            "the minimum of one group, the maximum of another",
        ],
    )
    def test_base_rows_read(self, inserted: list[Row], deleted: list[Row], reads: int) -> None:
        state = {"r": Table(("k", "v"), self.rows)}
        transaction = Transaction({"r": Delta(Counter(inserted), Counter(deleted))})
        made = self.made()
        done = run(made, recomputed(made, state), state, transaction, None)
        assert done.stored == recomputed(made, transaction.apply(state))
        assert done.reads["r"] == reads


def test_section_9_an_update_of_an_aggregated_column_is_one_row() -> None:
    """(1, 5) becomes (1, 6): ⟨1, +1, 0⟩, where insertions and deletions have two rows."""
    made = kept("aggregate")
    state = {"r": Table(("k", "v"), Counter({(1, 5): 1, (1, 2): 1, (2, 2): 1}))}
    transaction = Transaction({"r": Delta(Counter([(1, 6)]), Counter([(1, 5)]))})
    done = run(made, recomputed(made, state), state, transaction, None)
    assert done.stored == recomputed(made, transaction.apply(state))
    assert done.change_rows == 1
    assert done.reads == {"Δr": 2, "v": 1}
