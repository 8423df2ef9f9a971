"""Plans kept for the next refresh, as many as memory has room for: the least recently used one goes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from freshview.algebra.relations import Relation
from freshview.algebra.traverse import walk

PlanKey = tuple[str, object]
_Plan = TypeVar("_Plan")

NODE_BYTES = 70_000
"""What a node of a relation comes to as Spark's plan in the JVM, measured for views of TPC-DS."""


@dataclass(frozen=True, slots=True)
class _Kept(Generic[_Plan]):
    plan: _Plan
    nodes: int


class KeptPlans(Generic[_Plan]):
    """Plans by view and variant, of so many nodes together; the last one is kept whatever its size.

    ``nodes_max`` is asked when the first plan is made: it may depend on a JVM that has to be started.
    Safe to share between threads.
    """

    def __init__(self, nodes_max: Callable[[], int]) -> None:
        self._nodes_max = nodes_max
        self._most: int | None = None
        self._nodes = 0
        self._kept: dict[PlanKey, _Kept[_Plan]] = {}
        self._lock = threading.Lock()

    def get(self, key: PlanKey, relation: Relation, make: Callable[[Relation], _Plan]) -> _Plan:
        """The plan of a key, made of its relation if it is not there."""
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is None:
                kept = _Kept(make(relation), sum(1 for _ in walk(relation)))
                self._nodes += kept.nodes
            self._kept[key] = kept
            self._let_go()
            return kept.plan

    def forget(self, view: str) -> None:
        """Drop the plans of a view."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == view]:
                self._nodes -= self._kept.pop(key).nodes

    def _let_go(self) -> None:
        if self._most is None:
            self._most = self._nodes_max()
        while self._nodes > self._most and len(self._kept) > 1:
            self._nodes -= self._kept.pop(next(iter(self._kept))).nodes
