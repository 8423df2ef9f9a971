"""Strategies, lookups and stages, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Column, equal, same
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    Limit,
    OuterJoin,
    Project,
    Relation,
    Scan,
    Semijoin,
    Window,
)
from freshview.algebra.schema import Numbering
from freshview.algebra.windows import Frame, WindowCall, WindowOutput, total_order
from freshview.delta.derivation import Kind
from freshview.planner.cost import Costs, LastRecompute, full_ms, incremental_ms
from freshview.planner.lookups import LookUp
from freshview.planner.plan import Limits, RefreshPlan, Source, change_plan, refresh_plan
from freshview.planner.stages import (
    ApplyRows,
    EvaluateRefresh,
    EvaluateStep,
    LookUpRows,
    ReadChanges,
    ReadStored,
    ScanRows,
)
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.planner.shop import revenue

SIZES = {"lineitem": 6_000_000, "orders": 1_500_000, "customer": 150_000}


def any_change(*tables: str) -> dict[str, Kind]:
    return dict.fromkeys(tables, Kind.ANY)


def lookups(view: Relation, *changed: str) -> tuple[LookUp, ...]:
    """The lookups of a view's change table when these tables change."""
    change = change_plan(strategy("v", view), any_change(*changed))
    assert change is not None
    return change.stepwise.steps[0].lookups


def plan_for(
    changed: dict[str, int], view_rows: int = 25, limits: Limits | None = None
) -> RefreshPlan:
    kept = strategy("revenue", revenue())
    change = change_plan(kept, any_change(*changed))
    assert change is not None
    sources = {
        name: Source(name, 3, 4 if name in changed else 3, size, changed.get(name, 0))
        for name, size in SIZES.items()
    }
    return refresh_plan(kept, change, sources, 7, view_rows, limits or Limits(), None)


def test_an_aggregate_over_joins_is_kept_by_a_change_table() -> None:
    kept = strategy("revenue", revenue())
    assert kept.technique is Technique.CHANGE_TABLE
    assert [a.name for a in kept.key] == ["nation"]
    assert [a.name for a in kept.stored] == [
        "nation", "n", "revenue", "__rows", "__present1", "__sum1",
    ]  # fmt: skip


def test_a_join_is_kept_by_counting_with_all_columns_as_key() -> None:
    project = revenue()
    assert isinstance(project, Project)
    assert isinstance(project.child, Aggregate)
    kept = strategy("joined", project.child.child)
    assert kept.technique is Technique.COUNTING
    assert kept.stored[-1].name == "__count"
    assert len(kept.key) == len(kept.visible)


def test_lookups_lead_outwards_from_the_delta() -> None:
    stages = plan_for({"lineitem": 10}).stages
    assert [type(s) for s in stages] == [
        ReadChanges, LookUpRows, LookUpRows, ReadStored, EvaluateRefresh, ApplyRows,
    ]  # fmt: skip
    orders, customer = stages[1], stages[2]
    assert isinstance(orders, LookUpRows)
    assert isinstance(customer, LookUpRows)
    assert (orders.leaf.table, orders.probes[0].key.name, orders.version) == (
        "orders",
        "o_orderkey",
        3,
    )
    assert [a.name for _, a in customer.probes[0].origin.columns] == ["o_custkey"]
    assert (orders.expected, customer.expected) == (10, 10)


def test_earlier_operands_are_read_after_the_change_and_later_ones_before() -> None:
    stages = plan_for({"lineitem": 5, "orders": 5, "customer": 5}).stages
    read = [(s.leaf.table, s.leaf.state.value) for s in stages if isinstance(s, LookUpRows)]
    assert read == [
        ("orders", "pre"), ("customer", "pre"),
        ("lineitem", "post"), ("customer", "pre"),
        ("orders", "post"), ("lineitem", "post"),
    ]  # fmt: skip


def test_a_fan_out_is_expected_from_the_sizes() -> None:
    stages = plan_for({"customer": 2}).stages
    expected = {s.leaf.table: s.expected for s in stages if isinstance(s, LookUpRows)}
    assert expected == {"orders": 20, "lineitem": 80}


def test_too_many_expected_rows_become_a_scan_and_so_does_what_hangs_on_them() -> None:
    stages = plan_for({"customer": 100}, limits=Limits(lookup_rows=500)).stages
    assert [s.leaf.table for s in stages if isinstance(s, ScanRows)] == ["orders", "lineitem"]


def test_a_large_view_is_read_by_the_keys_of_its_change_table() -> None:
    stages = plan_for({"lineitem": 10}, view_rows=1_000_000).stages
    kinds = [type(s) for s in stages]
    assert kinds.index(EvaluateStep) < kinds.index(ReadStored) < kinds.index(EvaluateRefresh)
    stored = next(s for s in stages if isinstance(s, ReadStored))
    assert stored.by_key
    assert stored.expected == 10


def test_the_one_row_of_an_aggregate_without_groups_is_read_without_a_key() -> None:
    new = Numbering(0)
    rows = Scan("l", (new.attribute("a", "bigint"),))
    count = AggregateOutput(new.attribute("n", "bigint"), AggregateCall("count", (), "bigint"))
    kept = strategy("v", Aggregate(rows, (), (count,)))
    change = change_plan(kept, any_change("l"))
    assert change is not None
    source = {"l": Source("l", 3, 4, 100, 5)}
    stages = refresh_plan(kept, change, source, 7, 1, Limits(whole_view_rows=0), None).stages
    assert [s.by_key for s in stages if isinstance(s, ReadStored)] == [False]
    assert EvaluateStep not in {type(s) for s in stages}


def test_a_product_has_no_key_and_is_scanned() -> None:
    new = Numbering(0)
    left = Scan("l", (new.attribute("a", "bigint"),))
    right = Scan("r", (new.attribute("b", "bigint"),))
    assert [lookup.probes for lookup in lookups(Join(left, right), "l")] == [()]


def test_null_safe_equality_alone_asks_for_null_keys() -> None:
    new = Numbering(0)
    left = Scan("l", (new.attribute("a", "bigint"), new.attribute("x", "bigint")))
    right = Scan("r", (new.attribute("b", "bigint"), new.attribute("y", "bigint")))
    (a, x), (b, y) = left.attributes, right.attributes
    view = Join(left, right, same(Column(a), Column(b)))
    assert [p.null_safe for p in lookups(view, "l")[0].probes] == [True]
    strict = Join(left, right, equal(Column(x), Column(y)))
    assert [p.null_safe for p in lookups(strict, "l")[0].probes] == [False]


def test_a_self_join_keeps_its_occurrences_apart() -> None:
    new = Numbering(0)
    one = Scan("t", (new.attribute("a", "bigint"), new.attribute("b", "bigint")))
    two = Scan("t", (new.attribute("a", "bigint"), new.attribute("b", "bigint")))
    view = Join(one, two, equal(Column(one.attributes[0]), Column(two.attributes[1])))
    assert [lookup.leaf.state.value for lookup in lookups(view, "t")] == ["pre", "post"]


@pytest.mark.parametrize(
    ("kind", "technique", "code"),
    [("outer", Technique.CHANGE_TABLE, None), ("semi", Technique.DELTA, None),
     ("nested", Technique.CHANGE_TABLE, None), ("max", Technique.CHANGE_TABLE, None),
     ("distinct", Technique.GROUP_RECOMPUTE, None), ("double", Technique.CHANGE_TABLE, None),
     ("limit", Technique.GROUP_RECOMPUTE, None), ("offset", Technique.DELTA, None),
     ("window", Technique.DELTA, None), ("map", Technique.FULL, "LIMIT_ORDER_OPEN")],
)  # fmt: skip
def test_the_technique_follows_from_the_operators(
    kind: str, technique: Technique, code: str | None
) -> None:
    new = Numbering(0)
    left = Scan("l", (new.attribute("a", "bigint"), new.attribute("x", "double")))
    right = Scan("r", (new.attribute("b", "bigint"),))
    a, x = left.attributes
    on = equal(Column(a), Column(right.attributes[0]))
    call = {
        "max": AggregateCall("max", (Column(a),), "bigint"),
        "distinct": AggregateCall("count", (Column(a),), "bigint", distinct=True),
        "double": AggregateCall("sum", (Column(x),), "double"),
    }.get(kind, AggregateCall("count", (), "bigint"))
    grouped = Aggregate(left, (a,), (AggregateOutput(new.attribute("f", "bigint"), call),))
    order = total_order((), left.attributes)
    ranked = WindowCall("rank", (Column(a),), "bigint", Frame(True, None, 0))
    unordered = Scan("m", (new.attribute("m", "map<bigint,bigint>"),))
    views = {
        "outer": OuterJoin(left, right, on, True, False),
        "semi": Semijoin(left, right, on),
        "nested": Join(grouped, right, on),
        "limit": Limit(left, 3, 0, order),
        "offset": Limit(left, None, 3, order),
        "window": Window(left, (WindowOutput(new.attribute("n", "bigint"), ranked),), (), order),
        "map": Limit(unordered, 3, 0, total_order((), unordered.attributes)),
    }
    kept = strategy("v", views.get(kind, grouped))
    assert kept.technique is technique
    assert (kept.reason and kept.reason.code) == code


def test_auto_prefers_the_cheaper_estimate() -> None:
    assert Costs(100, 50).prefers_full
    assert not Costs(100, 150).prefers_full
    assert incremental_ms(0, ()) < incremental_ms(1_000, ()) < incremental_ms(1_000, (10_000_000,))


def test_only_the_part_of_a_recompute_that_its_rows_took_follows_the_tables() -> None:
    assert full_ms(5, LastRecompute(500, 5)) == 500
    assert full_ms(3, LastRecompute(500, 4)) == pytest.approx(500, abs=1)
    assert full_ms(0, LastRecompute(500, 4)) == pytest.approx(500, abs=1)
    assert full_ms(2_000_000, LastRecompute(10_800, 1_000_000)) == pytest.approx(20_800)
    assert full_ms(10_000_000, LastRecompute(500, 10)) == pytest.approx(6_500)
    assert full_ms(0, LastRecompute(50, 1_000_000)) == 0  # faster per row than was measured here
    assert full_ms(1_000, LastRecompute(500, 0)) == full_ms(1_000, None)


def test_strategy_depends_on_the_definition_only() -> None:
    assert strategy("v", revenue()) == strategy("v", revenue())
    assert replace(strategy("v", revenue()), view="w") == strategy("w", revenue())
