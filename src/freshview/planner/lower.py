"""Algebra to one Spark plan, built node by node in the JVM and analyzed once.

The DataFrame API would analyze after each step. Here the logical plan is put together from
Catalyst's own constructors (``lower_relations.py``) over empty leaves; ``Prepared`` is that plan, and each
evaluation only puts the DataFrames in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from freshview.algebra.relations import (
    Relation,
)
from freshview.algebra.schema import Attribute
from freshview.frontend.scala import (
    JavaObject,
    analyzed_plan,
    items,
    scala_of,
)
from freshview.planner.lower_expressions import ExpressionLowering
from freshview.planner.lower_relations import Occurrence, PlanLowering, TableLeaf, dataset_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Lowered:
    """A DataFrame and the column of it that holds each attribute of the relation."""

    dataframe: DataFrame
    columns: dict[Attribute, str]


class Prepared:
    """The analyzed plan of a relation over empty leaves; evaluating it again costs no lowering."""

    def __init__(self, spark: SparkSession, relation: Relation) -> None:
        self._spark = spark
        self._scala = scala_of(spark)
        self.columns = column_names(relation.attributes)
        building = PlanLowering(spark, ExpressionLowering(spark))
        self.analyzed = building.query(relation, self.columns).analyzed()
        self.occurrences = tuple(building.occurrences)

    @property
    def leaves(self) -> tuple[TableLeaf, ...]:
        """The leaves that an evaluation must provide, each once."""
        return tuple(dict.fromkeys(occurrence.leaf for occurrence in self.occurrences))

    def dataframe(self, leaves: Mapping[TableLeaf, DataFrame]) -> DataFrame:
        """The relation over these DataFrames, whose columns have the names of the leaf's."""
        placed = [(o.placeholder, self._placed(o, leaves[o.leaf])) for o in self.occurrences]
        plan = self.analyzed.transformDown(self._scala.map(placed)) if placed else self.analyzed
        return as_dataframe(self._spark, dataset_of(self._spark, plan))

    def _placed(self, occurrence: Occurrence, df: DataFrame) -> JavaObject:
        """The DataFrame's plan, yielding the attributes of the placeholder."""
        plan = analyzed_plan(df)
        found = dict(zip(df.columns, items(plan.output()), strict=True))
        scala = self._scala
        renamed = [
            scala.expression(
                "Alias",
                found[attribute.name],
                f"c{attribute.id}",
                target.exprId(),
                scala.seq([]),
                scala.none,
                scala.seq([]),
            )
            for attribute, target in zip(
                occurrence.leaf.attributes, occurrence.attributes, strict=True
            )
        ]
        return scala.node("Project", scala.seq(renamed), plan)


def prepare(spark: SparkSession, relation: Relation) -> Prepared:
    """The plan of a relation, ready to be evaluated over changing leaves."""
    return Prepared(spark, relation)


def lower(
    spark: SparkSession, relation: Relation, leaves: Mapping[TableLeaf, DataFrame]
) -> Lowered:
    """The relation over DataFrames that hold its leaves, for a plan that is evaluated once."""
    prepared = Prepared(spark, relation)
    return Lowered(prepared.dataframe(leaves), prepared.columns)


def column_names(attributes: Sequence[Attribute]) -> dict[Attribute, str]:
    """Each attribute's name where it is the only one of that name, ``c<id>`` otherwise."""
    count = Counter(attribute.name.lower() for attribute in attributes)
    return {a: a.name if count[a.name.lower()] == 1 else f"c{a.id}" for a in attributes}


def as_dataframe(spark: SparkSession, dataset: JavaObject) -> DataFrame:
    """A Dataset of rows in the JVM as PySpark knows it."""
    return DataFrame(dataset, spark)
