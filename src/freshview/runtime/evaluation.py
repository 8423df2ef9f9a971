"""Spark evaluates: over local rows in a session made for small plans, over tables in the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshview.algebra.relations import Relation
from freshview.planner.lower import Prepared, TableLeaf, prepare
from freshview.planner.small_plans import SmallPlans
from freshview.storage.interface import Rows


class Evaluator:
    """Evaluates relations, keeping the prepared plan of each so that the next time is cheaper."""

    def __init__(self, spark: Callable[[], SparkSession]) -> None:
        self._spark = spark
        self._small: SmallPlans | None = None
        self._prepared: dict[tuple[str, object, bool], Prepared] = {}
        self.evaluations = 0

    def evaluate(
        self, name: str, version: object, relation: Relation, leaves: Mapping[TableLeaf, Rows]
    ) -> Rows:
        """The relation's rows: a ``pyarrow.Table`` if all leaves are local, else a DataFrame.

        ``name`` and ``version`` identify the plan, so that it need not be compared as a tree.
        """
        self.evaluations += 1
        local = {leaf: rows for leaf, rows in leaves.items() if isinstance(rows, pa.Table)}
        if len(local) == len(leaves):
            small = self.small()
            return small.run(self._plan(name, version, relation, small.session, True), local)
        spark = self._spark()
        prepared = self._plan(name, version, relation, spark, False)
        frames: dict[TableLeaf, DataFrame] = {
            leaf: self.small().dataframe(leaf, rows) if isinstance(rows, pa.Table) else rows
            for leaf, rows in leaves.items()
        }
        return prepared.dataframe(frames)

    def small(self) -> SmallPlans:
        if self._small is None:
            self._small = SmallPlans(self._spark())
        return self._small

    def forget(self, name: str) -> None:
        """Drop the plans of a view whose definition is gone."""
        self._prepared = {key: plan for key, plan in self._prepared.items() if key[0] != name}

    def _plan(
        self, name: str, version: object, relation: Relation, session: SparkSession, small: bool
    ) -> Prepared:
        key = (name, version, small)
        if key not in self._prepared:
            self._prepared[key] = prepare(session, relation)
        return self._prepared[key]
