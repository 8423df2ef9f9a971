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
    OuterJoin,
    Project,
    Scan,
    Semijoin,
)
from freshview.algebra.schema import Numbering
from freshview.planner.cost import Costs, LastRecompute, full_ms, incremental_ms
from freshview.planner.lookups import separate
from freshview.planner.plan import Limits, RefreshPlan, Source, change_plan, refresh_plan
from freshview.planner.stages import (
    ApplyRows,
    EvaluateChange,
    EvaluateRefresh,
    LookUpRows,
    ReadChanges,
    ReadStored,
    ScanRows,
)
from freshview.planner.strategy import Technique, strategy
from tests.planner.shop import revenue

SIZES = {"lineitem": 6_000_000, "orders": 1_500_000, "customer": 150_000}


def plan_for(
    changed: dict[str, int], view_rows: int = 25, limits: Limits | None = None
) -> RefreshPlan:
    kept = strategy("revenue", revenue())
    change = change_plan(kept, frozenset(changed))
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
    assert customer.probes[0].source.name == "o_custkey"
    assert (orders.expected, customer.expected) == (10, 10)


def test_earlier_operands_are_read_after_the_change_and_later_ones_before() -> None:
    stages = plan_for({"lineitem": 5, "orders": 5, "customer": 5}).stages
    read = [
        (s.leaf.term, s.leaf.table, s.leaf.state.value) for s in stages if isinstance(s, LookUpRows)
    ]
    assert read == [
        (1, "orders", "pre"), (1, "customer", "pre"),
        (2, "lineitem", "post"), (2, "customer", "pre"),
        (3, "orders", "post"), (3, "lineitem", "post"),
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
    assert kinds.index(EvaluateChange) < kinds.index(ReadStored) < kinds.index(EvaluateRefresh)
    stored = next(s for s in stages if isinstance(s, ReadStored))
    assert stored.by_key
    assert stored.expected == 10


def test_the_one_row_of_an_aggregate_without_groups_is_read_without_a_key() -> None:
    new = Numbering(0)
    rows = Scan("l", (new.attribute("a", "bigint"),))
    count = AggregateOutput(new.attribute("n", "bigint"), AggregateCall("count", (), "bigint"))
    kept = strategy("v", Aggregate(rows, (), (count,)))
    change = change_plan(kept, frozenset({"l"}))
    assert change is not None
    source = {"l": Source("l", 3, 4, 100, 5)}
    stages = refresh_plan(kept, change, source, 7, 1, Limits(whole_view_rows=0), None).stages
    assert [s.by_key for s in stages if isinstance(s, ReadStored)] == [False]
    assert EvaluateChange not in {type(s) for s in stages}


def test_a_product_has_no_key_and_is_scanned() -> None:
    new = Numbering(0)
    left = Scan("l", (new.attribute("a", "bigint"),))
    right = Scan("r", (new.attribute("b", "bigint"),))
    change = change_plan(strategy("v", Join(left, right)), frozenset({"l"}))
    assert change is not None
    assert change.terms[0].lookups[0].probes == ()


def test_null_safe_equality_alone_asks_for_null_keys() -> None:
    new = Numbering(0)
    left = Scan("l", (new.attribute("a", "bigint"), new.attribute("x", "bigint")))
    right = Scan("r", (new.attribute("b", "bigint"), new.attribute("y", "bigint")))
    (a, x), (b, y) = left.attributes, right.attributes
    view = Join(left, right, same(Column(a), Column(b)))
    change = strategy("v", view).change({"l"})
    assert change is not None
    assert [p.null_safe for p in separate(change)[1][0].lookups[0].probes] == [True]
    strict = Join(left, right, equal(Column(x), Column(y)))
    change = strategy("v", strict).change({"l"})
    assert change is not None
    assert [p.null_safe for p in separate(change)[1][0].lookups[0].probes] == [False]


def test_a_self_join_keeps_its_occurrences_apart() -> None:
    new = Numbering(0)
    one = Scan("t", (new.attribute("a", "bigint"), new.attribute("b", "bigint")))
    two = Scan("t", (new.attribute("a", "bigint"), new.attribute("b", "bigint")))
    view = Join(one, two, equal(Column(one.attributes[0]), Column(two.attributes[1])))
    change = strategy("v", view).change({"t"})
    assert change is not None
    _, terms = separate(change)
    assert [(t.number, t.lookups[0].leaf.state.value) for t in terms] == [(1, "pre"), (2, "post")]


@pytest.mark.parametrize(
    ("kind", "code"),
    [("outer", "NO_RULE_OUTER_JOIN"), ("semi", "NO_RULE_SEMIJOIN"), ("max", "AGGREGATE_NOT_DISTRIBUTIVE"),
     ("distinct", "DISTINCT_AGGREGATE"), ("double", "INEXACT_SUM"), ("nested", "NO_RULE_NESTED_AGGREGATE")],
)  # fmt: skip
def test_what_has_no_rule_is_recomputed_with_a_reason(kind: str, code: str) -> None:
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
    views = {
        "outer": OuterJoin(left, right, on, True, False),
        "semi": Semijoin(left, right, on),
        "nested": Join(grouped, right, on),
    }
    kept = strategy("v", views.get(kind, grouped))
    assert kept.technique is Technique.FULL
    assert kept.reason is not None
    assert kept.reason.code == code


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
