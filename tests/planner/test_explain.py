"""EXPLAIN's operator table for a three-way join aggregate, as golden text."""

from __future__ import annotations

import pytest

from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import tables
from freshview.planner.derivation_text import derivation_text
from freshview.planner.explain import (
    alternatives_text,
    node_text,
    operator_text,
    technique_text,
    update_text,
)
from freshview.planner.techniques import WANTED, strategy
from tests.goldens import check_golden
from tests.papers.stores import Views
from tests.planner.shop import revenue
from tests.planner.test_plan import plan_for
from tests.properties.generators import Builder
from tests.properties.random_tables import Dice
from tests.properties.test_parts import having_below_join
from tests.properties.test_planned import named


def _text(changed: dict[str, int]) -> str:
    plan = plan_for(changed)
    lines = [*operator_text(plan), "stages", *(f"  {stage}" for stage in plan.stages)]
    return "\n".join(lines)


def test_one_table_changed() -> None:
    check_golden("explain/revenue_lineitem_changed", _text({"lineitem": 10}))


def test_all_tables_changed() -> None:
    check_golden("explain/revenue_all_changed", _text({"lineitem": 10, "orders": 2, "customer": 1}))


VIEWS = {
    "revenue": revenue,
    "city_sales": lambda: Views(Numbering(0)).city_sales(),
    "ss_full_info": lambda: Views(Numbering(0)).ss_full_info(),
    "having_below_join": lambda: having_below_join(Builder(Dice(3), Numbering(0))),
}


@pytest.mark.parametrize(
    ("view", "technique"),
    [("revenue", "auto"), ("city_sales", "auto"), ("city_sales", "delta"),
     ("city_sales", "group_recompute"), ("ss_full_info", "auto"), ("ss_full_info", "delta"),
     ("having_below_join", "auto")],
)  # fmt: skip
def test_nodes_update_list_and_derivation(view: str, technique: str) -> None:
    """Per node technique, formula and what else was possible; θ and U; the derivation of each source."""
    kept = strategy("v", named(VIEWS[view]()), WANTED[technique])
    assert kept.reason is None
    lines = [
        technique_text(kept),
        *alternatives_text(kept),
        "nodes",
        *node_text(kept),
        "refresh operator",
        *update_text(kept),
    ]
    for source in tables(kept.relation):
        lines += [f"{source} changes", *derivation_text(kept, source)]
    check_golden(f"explain/{view}_{technique}", "\n".join(lines))
