"""[GM06] Examples 3, 4 and 5 and Table 3: derivations and their values, and what Example 5 reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import pytest

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Table, evaluate
from freshview.algebra.expressions import Call, Column, equal, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    OuterJoin,
    Relation,
    Scan,
    Select,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.change_table.aggregate import change_table
from freshview.delta.aggregate_states import aggregate_states
from freshview.delta.derivation import Derivation
from freshview.delta.derive import derive
from freshview.delta.transaction import Delta, Transaction
from freshview.planner.derivation_text import derivation_text
from freshview.planner.explain import update_text
from freshview.planner.strategy import Strategy, Technique
from freshview.planner.techniques import strategy
from tests.goldens import check_golden
from tests.papers.accesses import accesses
from tests.papers.published import refresh
from tests.papers.stores import SCHEMAS, Views
from tests.properties.planned import recomputed, refreshed, visible
from tests.properties.test_planned import named


def kept(view: Relation) -> Strategy:
    made = strategy("v", named(view), Technique.CHANGE_TABLE)
    assert made.reason is None, made.reason
    return made


class TestExample3:
    """CategorySales of C1 ⟨690, 4⟩ and C2 ⟨210, 2⟩, with □CategorySales of Figure 2(b)."""

    items: ClassVar[Bag] = Counter({(1, "C1"): 1, (2, "C2"): 1})
    sales: ClassVar[Bag] = Counter(
        {
            (1, 7, 1, 96, 300): 1,
            (2, 7, 1, 96, 200): 1,
            (3, 8, 1, 96, 100): 1,
            (4, 8, 1, 96, 90): 1,
            (5, 7, 2, 96, 110): 1,
            (6, 8, 2, 96, 100): 1,
        }
    )
    inserted: ClassVar[Bag] = Counter(
        {
            (11, 7, 1, 97, 100): 1,
            (12, 7, 1, 97, 50): 1,
            (13, 9, 1, 97, 20): 1,
            (14, 7, 2, 97, 70): 1,
            (15, 9, 2, 97, 50): 1,
        }
    )

    def test_by_the_refresh_operator(self) -> None:
        def refreshed_by(*change: tuple[object, int, int]) -> list[tuple[object, ...]]:
            return refresh(
                [("C1", 690, 4), ("C2", 210, 2)],
                list(change),
                lambda v, c: v[0] == c[0] and v[2] + c[2] != 0,
                lambda v, c: v[0] == c[0] and v[2] + c[2] == 0,
                lambda v, c: (v[0], v[1] + c[1], v[2] + c[2]),
            )

        updated = refreshed_by(("C1", 170, 3), ("C2", 120, 2))
        assert sorted(updated) == [("C1", 860, 7), ("C2", 330, 4)]
        assert refreshed_by(("C2", -210, -2)) == [("C1", 690, 4)]

    def test_by_freshview(self) -> None:
        assert self.after(Delta(self.inserted, Counter())) == [("C1", 860, 7), ("C2", 330, 4)]
        of_c2 = Counter({row: 1 for row in self.sales if row[2] == 2})
        assert self.after(Delta(Counter(), of_c2)) == [("C1", 690, 4)]

    def after(self, delta: Delta) -> list[tuple[object, ...]]:
        rows: dict[str, Bag] = {"items": self.items, "sales": self.sales}
        state = {name: Table(SCHEMAS[name], bag) for name, bag in rows.items()}
        made = kept(Views(Numbering(0)).category_sales())
        stored = recomputed(made, state)
        assert visible(made, stored) == [("C1", 690, 4), ("C2", 210, 2)]
        stored, reads = refreshed(made, stored, state, Transaction({"sales": delta}), None)
        assert reads["sales"] == 0
        return visible(made, stored)


def test_table_3() -> None:
    """N: how a deleted row with expr = 7 comes into the change table."""
    new = Numbering(0)
    g, expr = new.attribute("g", "bigint"), new.attribute("expr", "bigint")
    calls = {
        "COUNT(*)": AggregateCall("count", (), "bigint"),
        **{f"{f.upper()}(expr)": AggregateCall(f, (Column(expr),), "bigint") for f in FUNCTIONS},
    }
    outputs = tuple(AggregateOutput(new.attribute(n, "bigint"), c) for n, c in calls.items())
    node = Aggregate(Scan("r", (g, expr)), (g,), outputs)
    states = aggregate_states(node, new)
    delta = derive(node.child, Derivation(node.child, ("r",), new=new))
    assert delta is not None
    table = change_table(node, delta.relation, states, new)
    transaction = Transaction({"r": Delta(Counter(), Counter({(1, 7): 1}))})
    state = {"r": Table(("g", "expr"), Counter({(1, 7): 1, (1, 9): 1}))}
    (row,) = evaluate(table, transaction.database(state))
    held: dict[Attribute, object] = dict(zip(table.attributes, row, strict=True))
    total = states.of(calls["SUM(expr)"]).total
    assert total is not None
    found = {
        "COUNT(*)": held[states.rows],
        "SUM(expr)": held[total],
        "MIN(expr)": held[states.of(calls["MIN(expr)"]).extremum("min").lost],
        "MAX(expr)": held[states.of(calls["MAX(expr)"]).extremum("max").lost],
    }
    lines = [f"{name:<12}{value}" for name, value in found.items()]
    check_golden("papers/gupta_mumick_table_3", "\n".join(("deleted: expr = 7", *lines)))


FUNCTIONS = ("sum", "min", "max")


def derived(made: Strategy, source: str) -> Iterator[str]:
    yield from derivation_text(made, source)
    yield from update_text(made)


def test_example_4() -> None:
    """□V₁ at the first aggregate, through the join by row 4, through the second by row 6."""
    views = Views(Numbering(0))
    lines: list[str] = []
    for view in (views.city_sales(), views.category_sales()):
        lines += derived(kept(view), "sales")
    check_golden("papers/gupta_mumick_example_4", "\n".join(lines))


class TestExample5:
    """V = π_{A,B,sum(D),sum(E),count}(σ_{A>5}((R ⟗_{C=D} S) ⋈ T)), with ΔS and with ∇S.

    The paper reads the rows of R that ΔS meets, and those of T that these meet. Counting rows
    rightly takes one thing more, whether a row of R had a partner before: rows of S with its key.
    """

    columns: ClassVar = {"r": ("A", "B", "C"), "s": ("D", "E"), "t": ("A", "B", "L")}
    r: ClassVar[Bag] = Counter({(a, a % 7, a % 50): 1 for a in range(1_000)})
    s: ClassVar[Bag] = Counter({(d % 40, d): 1 for d in range(200)})
    t: ClassVar[Bag] = Counter({(a, a % 7, 0): 1 for a in range(500)})

    def view(self) -> Relation:
        new = Numbering(0)
        r, s, t = (
            Scan(name, tuple(new.attribute(c, "bigint") for c in columns))
            for name, columns in self.columns.items()
        )
        a, b, c = r.attributes
        d, e = s.attributes
        outer = OuterJoin(r, s, equal(Column(c), Column(d)), True, True)
        joined = Join(outer, t, _natural((a, b), t.attributes[:2]))
        chosen = Select(joined, Call("<", (integer(5), Column(a)), "boolean"))
        calls = {
            "F": AggregateCall("sum", (Column(d),), "bigint"),
            "H": AggregateCall("sum", (Column(e),), "bigint"),
            "Num": AggregateCall("count", (), "bigint"),
        }
        outputs = tuple(AggregateOutput(new.attribute(n, "bigint"), c) for n, c in calls.items())
        return Aggregate(chosen, (a, b), outputs)

    def test_the_aggregate_is_a_singularity_point(self) -> None:
        singular = kept(self.view()).singular
        assert singular is not None
        assert singular.code == "SINGULARITY_OUTER_JOIN_BELOW_AGGREGATE"

    def test_derivation(self) -> None:
        text = "\n".join(derived(kept(self.view()), "s"))
        check_golden("papers/gupta_mumick_example_5", text)

    @pytest.mark.parametrize(
        "delta",
        [
            Delta(Counter({(45, 1): 1, (3, 7): 1, (99, 1): 1}), Counter()),
            Delta(Counter(), Counter({(3, 3): 1, (4, 4): 1})),
        ],
        ids=["inserted", "deleted"],
    )
    def test_reads_only_what_joins_the_change(self, delta: Delta) -> None:
        rows: dict[str, Bag] = {"r": self.r, "s": self.s, "t": self.t}
        state = {name: Table(self.columns[name], bag) for name, bag in rows.items()}
        found = accesses(kept(self.view()), state, Transaction({"s": delta}))
        changed = {d for d, _ in (*delta.inserted, *delta.deleted)}
        met = [row for row in self.r if row[2] in changed]
        keys = {row[0] for row in met}
        partners = [row for row in self.s if row[0] in {c for _, _, c in met}]
        after = len(partners) - delta.deleted.total() if delta.deleted else 0
        assert found.tables == {
            "r": len(met),
            "t": sum(row[0] in keys for row in self.t),
            "s": len(partners) + after,
        }
        groups = len({row[:2] for row in met if row[0] > 5 and row[0] < 500})
        assert found.view == 2 * groups, "each group of the view is read and set once"


def _natural(left: tuple[Attribute, ...], right: tuple[Attribute, ...]) -> Call:
    on = [equal(Column(a), Column(b)) for a, b in zip(left, right, strict=True)]
    return Call("and", (on[0], on[1]), "boolean")
