"""Plans are made once, kept while there is room, and dropped with their view."""

from __future__ import annotations

from freshview.algebra.relations import Relation, Scan, Sort
from freshview.algebra.schema import Numbering
from freshview.runtime.kept_plans import KeptPlans

SCAN = Scan("r", (Numbering(0).attribute("a", "bigint"),))


def of(nodes: int) -> Relation:
    relation: Relation = SCAN
    for _ in range(nodes - 1):
        relation = Sort(relation, ())
    return relation


class Made:
    """Plans that are told apart, and how many were made."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.kept: KeptPlans[str] = KeptPlans(lambda: most)

    def get(self, view: str, variant: int, nodes: int) -> str:
        return self.kept.get((view, variant), of(nodes), self._make)

    def _make(self, _: Relation) -> str:
        self.count += 1
        return f"plan {self.count}"


def test_a_plan_is_made_once() -> None:
    made = Made(10)
    assert made.get("v", 1, 3) == made.get("v", 1, 3) == "plan 1"
    assert made.get("v", 2, 3) == "plan 2"


def test_the_least_recently_used_plan_goes_first() -> None:
    made = Made(10)
    made.get("v", 1, 4)
    made.get("w", 1, 4)
    made.get("v", 1, 4)
    made.get("x", 1, 4)
    assert made.get("v", 1, 4) == "plan 1"
    assert made.get("w", 1, 4) == "plan 4"


def test_a_plan_larger_than_all_is_kept_until_the_next() -> None:
    made = Made(10)
    assert made.get("v", 1, 50) == made.get("v", 1, 50) == "plan 1"
    made.get("w", 1, 2)
    assert made.get("w", 1, 2) == "plan 2"
    assert made.get("v", 1, 50) == "plan 3"


def test_what_a_view_leaves_is_room_for_others() -> None:
    made = Made(10)
    made.get("v", 1, 5)
    made.get("v", 2, 4)
    made.get("w", 1, 1)
    made.kept.forget("v")
    made.get("x", 1, 9)
    assert made.get("w", 1, 1) == "plan 3"
    assert made.get("v", 1, 5) == "plan 5"
