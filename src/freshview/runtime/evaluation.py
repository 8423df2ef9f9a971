"""Spark evaluates: over local rows by a kept small plan, over tables by an ordinary query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshview.algebra.relations import Relation
from freshview.algebra.schema import Attribute, quoted
from freshview.frontend.scala import scala_of
from freshview.planner.lower import Prepared, prepare
from freshview.planner.lower_relations import TableLeaf
from freshview.planner.small_plans import Bound, SmallPlan, SmallPlans, TooLarge
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.kept_plans import NODE_BYTES, KeptPlans
from freshview.storage.interface import Rows

Settings = tuple[tuple[str, str], ...]


class Evaluator:
    """Evaluates relations, keeping the plan of each so that the next time is cheaper."""

    def __init__(self, spark: Callable[[], SparkSession]) -> None:
        self._spark = spark
        self._small_plans: dict[Settings, SmallPlans] = {}
        self._small: KeptPlans[SmallPlan] = KeptPlans(self._nodes_max)
        self._large: KeptPlans[Prepared] = KeptPlans(self._nodes_max)

    def evaluate(
        self,
        view: ViewEntry,
        variant: object,
        relation: Relation,
        leaves: Mapping[TableLeaf, Rows],
        bound: Bound,
    ) -> Rows:
        """The relation's rows: a ``pyarrow.Table`` if all leaves are local, else a DataFrame.

        So are rows past the bound: local rows that meet can be more than there were of them.

        The view and ``variant`` identify the plan, so that it need not be compared as a tree. The
        session has the settings under which the view was defined.
        """
        key = (view.name, variant)
        local = {leaf: rows for leaf, rows in leaves.items() if isinstance(rows, pa.Table)}
        if len(local) == len(leaves):
            settings = tuple(sorted(view.settings.items()))
            small = self._small.get(key, relation, lambda it: self._small_for(it, settings))
            with suppress(TooLarge):
                return small.run(local, bound)
        large = self._large.get(key, relation, lambda it: prepare(self._spark(), it))
        return large.dataframe(
            {leaf: frame_of(self._spark(), leaf.attributes, rows) for leaf, rows in leaves.items()}
        )

    def forget(self, view: str) -> None:
        """Drop the plans of a view whose definition is gone."""
        self._small.forget(view)
        self._large.forget(view)

    def _nodes_max(self) -> int:
        """What fits an eighth of the JVM's memory; two kinds of plans are kept."""
        runtime = scala_of(self._spark()).jvm.java.lang.Runtime.getRuntime()
        return int(runtime.maxMemory()) // (8 * NODE_BYTES)

    def _small_for(self, relation: Relation, settings: Settings) -> SmallPlan:
        if settings not in self._small_plans:
            self._small_plans[settings] = SmallPlans(self._spark())
        return self._small_plans[settings].prepare(relation)


def frame_of(spark: SparkSession, attributes: Sequence[Attribute], rows: Rows) -> DataFrame:
    """Rows as a DataFrame; local ones in the types of these attributes, by whose names they go."""
    if not isinstance(rows, pa.Table):
        return rows
    columns = ", ".join(f"{quoted(a.name)} {a.type}" for a in attributes)
    named = rows.select([a.name for a in attributes])
    frame: DataFrame = spark.createDataFrame(named, columns)
    return frame
