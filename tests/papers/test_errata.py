"""Where the papers slip: for each line, the printed form gives a wrong view and ours the recompute."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Database, Table, evaluate
from freshview.algebra.expressions import Column, equal, integer, is_null
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.delta.transaction import Delta, Transaction, minimal
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.papers.accesses import accesses
from tests.papers.published import Row, merge, oj_deletion, refresh
from tests.papers.test_barbier_costs import c_inc
from tests.properties.planned import defined, recomputed, refreshed, visible
from tests.properties.test_planned import named


def scan(new: Numbering, table: str, *columns: str) -> Scan:
    return Scan(table, tuple(new.attribute(column, "bigint") for column in columns))


def bag(*rows: Row) -> Bag:
    return Counter(rows)


def deleting(table: str, *rows: Row) -> Transaction:
    return Transaction({table: Delta(bag(), bag(*rows))})


def inserting(table: str, *rows: Row) -> Transaction:
    return Transaction({table: Delta(bag(*rows), bag())})


def ours(
    view: Relation,
    state: dict[str, Table],
    transaction: Transaction,
    technique: Technique = Technique.CHANGE_TABLE,
) -> Bag:
    """The view after a refresh by change tables, which has to be the recompute."""
    kept = strategy("v", named(view), technique)
    assert kept.reason is None, kept.reason
    stored, _ = refreshed(kept, recomputed(kept, state), state, transaction, None)
    assert stored == recomputed(kept, transaction.apply(state))
    shown = visible(kept, stored)
    assert shown == defined(kept, transaction.apply(state))
    return Counter(shown)


def after(view: Relation, state: dict[str, Table], transaction: Transaction) -> Bag:
    return evaluate(view, Database(transaction.apply(state)))


def sums(child: Relation, group: Attribute, argument: Attribute, new: Numbering) -> Aggregate:
    total = AggregateOutput(
        new.attribute("total", "bigint"), AggregateCall("sum", (Column(argument),), "bigint")
    )
    number = AggregateOutput(
        new.attribute("number", "bigint"), AggregateCall("count", (), "bigint")
    )
    return Aggregate(child, (group,), (total, number))


def full(left: Relation, right: Relation, a: Attribute, b: Attribute) -> OuterJoin:
    return OuterJoin(left, right, equal(Column(a), Column(b)), True, True)


class TestTable4Row7:
    """A full outer join over an aggregate-change table that creates a group with a dangling partner."""

    def view(self) -> Relation:
        new = Numbering(0)
        r, s = scan(new, "r", "k", "v"), scan(new, "s", "k")
        groups = sums(r, *r.attributes, new)
        return full(groups, s, groups.group[0], s.attributes[0])

    state: ClassVar[dict[str, Table]] = {
        "r": Table(("k", "v"), bag()),
        "s": Table(("k",), bag((1,))),
    }
    transaction = inserting("r", (1, 5))

    def test_published(self) -> None:
        """≡_G ∧ ≡_τ finds no match for the new group, and the padded row of its partner stays."""
        stored = [(None, None, None, 1)]
        change = [(1, 5, 1, 1)]
        found = refresh(
            stored,
            change,
            lambda v, c: (v[0], v[3]) == (c[0], c[3]),
            lambda v, c: False,
            lambda v, c: (v[0], v[1] + c[1], v[2] + c[2], v[3]),
        )
        assert sorted(found, key=repr) == sorted([(1, 5, 1, 1), (None, None, None, 1)], key=repr)
        assert Counter(found) != after(self.view(), self.state, self.transaction)

    def test_ours(self) -> None:
        assert ours(self.view(), self.state, self.transaction) == bag((1, 5, 1, 1))


class TestTheorem3Selection:
    """σ(r IS NULL) above R ⟗ S: "disregard the σ condition"."""

    def view(self) -> Relation:
        new = Numbering(0)
        r, s = scan(new, "r", "k"), scan(new, "s", "k")
        joined = full(r, s, r.attributes[0], s.attributes[0])
        return Select(joined, is_null(Column(r.attributes[0])))

    state: ClassVar[dict[str, Table]] = {"r": Table(("k",), bag()), "s": Table(("k",), bag((1,)))}
    transaction = inserting("r", (1,))

    def test_published(self) -> None:
        """σ_q(□V) is empty, so nothing matches the padded row (NULL, 1), which should go."""
        joined = [(1, 1)]
        change = [row for row in joined if row[0] is None]
        found = refresh(
            [(None, 1)], change, lambda v, c: v[1] == c[1], lambda v, c: False, lambda v, c: c
        )
        assert found == [(None, 1)]
        assert after(self.view(), self.state, self.transaction) == bag()

    def test_ours(self) -> None:
        """For r it is a singularity point; for s change tables pass."""
        kept = strategy("v", named(self.view()), Technique.CHANGE_TABLE)
        assert kept.row_layout is not None
        extent = kept.row_layout.extent
        points = [extent.singularity(part) for part in extent.parts]
        assert [point.code if point else None for point in points] == [
            "SINGULARITY_READS_PADDED_COLUMN",
            None,
        ]
        assert ours(self.view(), self.state, self.transaction) == bag()
        assert ours(self.view(), self.state, inserting("s", (2,))) == bag((None, 1), (None, 2))


class TestExample5:
    """COUNT(*) over an outer-join change table: a padded row that finds its partner is no new row."""

    def view(self) -> Relation:
        new = Numbering(0)
        r, s = scan(new, "r", "a", "c"), scan(new, "s", "d", "e")
        joined = full(r, s, r.attributes[1], s.attributes[0])
        return sums(joined, r.attributes[0], s.attributes[1], new)

    state: ClassVar[dict[str, Table]] = {
        "r": Table(("a", "c"), bag((7, 1))),
        "s": Table(("d", "e"), bag()),
    }
    transaction = inserting("s", (1, 5))

    def test_published(self) -> None:
        """□V = π(□V₃) counts the row (7, 1, 1, 5) of the change table as one more."""
        stored = [(7, None, 1)]
        change = [(7, 5, 1)]
        found = refresh(
            stored,
            change,
            lambda v, c: v[0] == c[0],
            lambda v, c: False,
            lambda v, c: (v[0], c[1] if v[1] is None else v[1] + c[1], v[2] + c[2]),
        )
        assert found == [(7, 5, 2)]
        assert after(self.view(), self.state, self.transaction) == bag((7, 5, 1))

    def test_ours(self) -> None:
        assert ours(self.view(), self.state, self.transaction) == bag((7, 5, 1))


class TestTable5Aggregation:
    """OJDeletion below an aggregate: Table 5 has no row for it, and row 6 of Table 4 is wrong there."""

    def view(self) -> Relation:
        new = Numbering(0)
        r, s = scan(new, "r", "a", "c"), scan(new, "s", "d", "e")
        joined = full(r, s, r.attributes[1], s.attributes[0])
        return sums(joined, s.attributes[0], s.attributes[1], new)

    state: ClassVar[dict[str, Table]] = {
        "r": Table(("a", "c"), bag((7, 1))),
        "s": Table(("d", "e"), bag((1, 5))),
    }
    transaction = deleting("r", (7, 1))

    def test_published(self) -> None:
        """□V has the deleted row (7, 1, 1, 5): aggregated, it takes away what stays as a padded row."""
        found = refresh(
            [(1, 5, 1)],
            [(1, -5, -1)],
            lambda v, c: v[0] == c[0] and v[2] + c[2] != 0,
            lambda v, c: v[0] == c[0] and v[2] + c[2] == 0,
            lambda v, c: (v[0], v[1] + c[1], v[2] + c[2]),
        )
        assert found == []
        assert after(self.view(), self.state, self.transaction) == bag((1, 5, 1))

    def test_ours(self) -> None:
        assert ours(self.view(), self.state, self.transaction) == bag((1, 5, 1))

    def test_ours_says_why(self) -> None:
        singular = strategy("v", named(self.view()), Technique.CHANGE_TABLE).singular
        assert singular is not None
        assert singular.code == "SINGULARITY_OUTER_JOIN_BELOW_AGGREGATE"


class TestAlgorithm1:
    """Deletions from one side of R ⟗ S."""

    def view(self) -> Relation:
        new = Numbering(0)
        r, s = scan(new, "r", "k", "v"), scan(new, "s", "k")
        return full(r, s, r.attributes[0], s.attributes[0])

    dangling: ClassVar[dict[str, Table]] = {
        "r": Table(("k", "v"), bag((1, 5))),
        "s": Table(("k",), bag()),
    }
    two: ClassVar[dict[str, Table]] = {
        "r": Table(("k", "v"), bag((1, 5), (1, 6))),
        "s": Table(("k",), bag((1,))),
    }

    def test_published_a_deleted_dangling_row_becomes_a_row_of_nulls(self) -> None:
        found = oj_deletion([(1, 5, None)], [(1, 5, None, 1)], width=2)
        assert found == [(None, None, None)]
        assert after(self.view(), self.dangling, deleting("r", (1, 5))) == bag()

    def test_ours_a_deleted_dangling_row_is_deleted(self) -> None:
        assert ours(self.view(), self.dangling, deleting("r", (1, 5))) == bag()

    def test_published_set_wise_loses_the_padded_row(self) -> None:
        """Each of two deleted rows sees the other and takes it for a partner that stays."""
        change = [(1, 5, 1, 1), (1, 6, 1, 1)]
        stored = [(1, 5, 1), (1, 6, 1)]
        assert oj_deletion(stored, change, width=2, set_wise=True) == []
        assert oj_deletion(stored, change, width=2) == [(None, None, 1)]
        gone = deleting("r", (1, 5), (1, 6))
        assert after(self.view(), self.two, gone) == bag((None, None, 1))

    def test_ours_decides_from_the_rows_that_are_left(self) -> None:
        gone = deleting("r", (1, 5), (1, 6))
        assert ours(self.view(), self.two, gone) == bag((None, None, 1))


class TestDuplicates:
    """⊔ matches one to one; MERGE does not."""

    def view(self) -> Relation:
        new = Numbering(0)
        r, s = scan(new, "r", "k", "v"), scan(new, "s", "k")
        groups = sums(r, *r.attributes, new)
        return Join(groups, s, equal(Column(groups.group[0]), Column(s.attributes[0])))

    state: ClassVar[dict[str, Table]] = {
        "r": Table(("k", "v"), bag((1, 5))),
        "s": Table(("k",), bag((1,), (1,))),
    }
    transaction = inserting("r", (1, 4))

    def test_published_by_merge(self) -> None:
        """Row 3 with duplicates in E₂: □V has the row twice, and MERGE refuses or updates twice."""
        stored = [(1, 5, 1, 1), (1, 5, 1, 1)]

        def j1(v: Row, c: Row) -> bool:
            return (v[0], v[3]) == (c[0], c[3])

        def update(v: Row, c: Row) -> Row:
            return (v[0], v[1] + c[1], v[2] + c[2], v[3])

        change = [(1, 4, 1, 1), (1, 4, 1, 1)]
        with pytest.raises(AssertionError, match="several rows match one"):
            merge(stored, change, j1, update)
        found = refresh(stored, change, j1, lambda v, c: False, update)
        assert Counter(found) == after(self.view(), self.state, self.transaction)

    def test_ours_counts_the_copies(self) -> None:
        found = ours(self.view(), self.state, self.transaction)
        assert found == bag((1, 9, 2, 1), (1, 9, 2, 1))


class TestSetsAndBags:
    """[B07] is about sets: its π and its minimality are wrong for bags."""

    def test_published_minimality_forbids_a_second_copy(self) -> None:
        """Δ ∩ i = ∅ (Definition 1.11) cannot insert a row that is there already."""
        before, delta = bag((1,)), Delta(bag((1,)), bag())
        assert delta.inserted & before, "not minimal as published"
        assert delta.apply(before) == bag((1,), (1,))

    def test_ours_is_minimal_for_bags(self) -> None:
        before = bag((1,))
        assert Delta(bag((1,)), bag()).is_minimal(before)
        assert minimal(before, bag((1,), (1,))) == Delta(bag((1,)), bag())

    def test_published_projection_loses_copies(self) -> None:
        """Δ(π_A(Q)) = π_A(ΔQ) − π_A(Q) is empty for a second row with the same a."""
        before, inserted = {(1, 5)}, {(1, 6)}
        assert {row[0] for row in inserted} - {row[0] for row in before} == set()

    def test_ours_counts_them(self) -> None:
        new = Numbering(0)
        r = scan(new, "r", "a", "b")
        view = Project(r, (keep(r.attributes[0]),))
        state = {"r": Table(("a", "b"), bag((1, 5)))}
        found = ours(view, state, inserting("r", (1, 6)), Technique.COUNTING)
        assert found == bag((1,), (1,))


class TestRemark62:
    """π_∅(R): not self-maintainable as a set, but with the number of its causes."""

    def test_published_two_states_with_one_view_need_two_answers(self) -> None:
        one, two = {("a",)}, {("a",), ("b",)}
        deleted = {("a",)}
        assert bool(one) == bool(two)
        assert bool(one - deleted) != bool(two - deleted)

    def test_ours_has_the_count_in_the_extent(self) -> None:
        """SELECT DISTINCT 1 FROM R: the refresh reads the delta and the view, never R."""
        new = Numbering(0)
        r = scan(new, "r", "a")
        one = new.attribute("one", "bigint")
        nothing = Aggregate(Project(r, (Output(one, integer(1)),)), (one,), ())
        kept = strategy("v", named(nothing), Technique.CHANGE_TABLE)
        for rows, left in ((bag((1,)), []), (bag((1,), (2,)), [(1,)])):
            state = {"r": Table(("a",), rows)}
            stored, reads = refreshed(
                kept, recomputed(kept, state), state, deleting("r", (1,)), None
            )
            assert reads["r"] == 0
            assert visible(kept, stored) == left


class TestTable42:
    """The costs price a product with what is computed of it, and have no row for π."""

    @staticmethod
    def join() -> tuple[Scan, Join]:
        new = Numbering(0)
        r, s = scan(new, "r", "a", "c"), scan(new, "s", "d", "e")
        return r, Join(r, s, equal(Column(r.attributes[0]), Column(s.attributes[0])))

    def test_published_is_no_cost_of_a_join(self) -> None:
        """(b + b) · d rows for one inserted row that meets one."""
        r, join = self.join()
        assert c_inc(Join(join.left, join.right), 1_000, 1) == 2_000 * 2
        with pytest.raises(AssertionError, match="no such row"):
            c_inc(Aggregate(r, r.attributes[:1], ()), 1_000, 1)

    def test_ours_counts_what_is_read(self) -> None:
        _, join = self.join()
        rows = Counter({(n, n): 1 for n in range(1_000)})
        state = {"r": Table(("a", "c"), rows), "s": Table(("d", "e"), rows)}
        kept = strategy("v", named(join))
        found = accesses(kept, state, inserting("r", (5, 5_000)))
        assert found.tables == {"s": 1}
        assert found.deltas == 1
