"""Spark evaluates: over local rows by a kept small plan, over tables by an ordinary query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from freshview.algebra.relations import Relation
from freshview.algebra.schema import Attribute, quoted
from freshview.planner.lower import Prepared, TableLeaf, prepare
from freshview.planner.small_plans import Bound, SmallPlan, SmallPlans, TooLarge
from freshview.runtime.catalog import ViewEntry
from freshview.storage.interface import Rows

PlanKey = tuple[str, object]
Settings = tuple[tuple[str, str], ...]


class Evaluator:
    """Evaluates relations, keeping the plan of each so that the next time is cheaper."""

    def __init__(self, spark: Callable[[], SparkSession]) -> None:
        self._spark = spark
        self._small_plans: dict[Settings, SmallPlans] = {}
        self._small: dict[PlanKey, SmallPlan] = {}
        self._large: dict[PlanKey, Prepared] = {}

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
            if key not in self._small:
                self._small[key] = self._small_for(relation, tuple(sorted(view.settings.items())))
            with suppress(TooLarge):
                return self._small[key].run(local, bound)
        if key not in self._large:
            self._large[key] = prepare(self._spark(), relation)
        return self._large[key].dataframe(
            {leaf: frame_of(self._spark(), leaf.attributes, rows) for leaf, rows in leaves.items()}
        )

    def forget(self, view: str) -> None:
        """Drop the plans of a view whose definition is gone."""
        self._small = {key: plan for key, plan in self._small.items() if key[0] != view}
        self._large = {key: plan for key, plan in self._large.items() if key[0] != view}

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
