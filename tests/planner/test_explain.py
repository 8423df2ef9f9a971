"""EXPLAIN's operator table for a three-way join aggregate, as golden text."""

from __future__ import annotations

from freshview.planner.explain import operator_text
from tests.goldens import check_golden
from tests.planner.test_plan import plan_for


def _text(changed: dict[str, int]) -> str:
    plan = plan_for(changed)
    lines = [*operator_text(plan), "stages", *(f"  {stage}" for stage in plan.stages)]
    return "\n".join(lines)


def test_one_table_changed() -> None:
    check_golden("explain/revenue_lineitem_changed", _text({"lineitem": 10}))


def test_all_tables_changed() -> None:
    check_golden("explain/revenue_all_changed", _text({"lineitem": 10, "orders": 2, "customer": 1}))
