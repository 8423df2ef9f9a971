"""The nodes of the algebra as Catalyst's, one method per kind of node.

Every attribute that a node defines is a new Catalyst attribute named ``c<id>``, so no two occurrences of
a table are ever confused. Leaves are empty relations of the right types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from freshview.algebra.expressions import references
from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Previous,
    Project,
    Recursion,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    Window,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.windows import Ordering
from freshview.frontend.scala import (
    CATALYST,
    JavaObject,
    java_context,
    java_session,
    scala_of,
)
from freshview.planner.lower_expressions import ExpressionLowering
from freshview.planner.row_order import apart, in_one_order, needs_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TableLeaf = Scan | Changes | Given
JOIN_TYPES = CATALYST + "plans."


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One leaf of the plan: which table it reads and the empty relation that holds its place."""

    leaf: TableLeaf
    placeholder: JavaObject
    attributes: tuple[JavaObject, ...]
    rows: JavaObject
    """The placeholder's RDD, of one partition."""


@dataclass(frozen=True, slots=True)
class Built:
    """A Catalyst plan under construction, with the Catalyst attribute of each of ours."""

    plan: JavaObject
    columns: Mapping[int, JavaObject]


class PlanLowering:
    """Builds the Catalyst plan of one relation."""

    def __init__(
        self,
        spark: SparkSession,
        expressions: ExpressionLowering,
        join_hint: JavaObject | None = None,
    ) -> None:
        self._spark = spark
        self._scala = scala_of(spark)
        self._expressions = expressions
        no_hint = self._scala.singleton(CATALYST + "plans.logical.JoinHint").NONE()
        self._join_hint = no_hint if join_hint is None else join_hint
        self.occurrences: list[Occurrence] = []
        self._loops: dict[int, int] = {}

    def query(self, relation: Relation, names: Mapping[Attribute, str]) -> JavaObject:
        """Spark's QueryExecution of a relation with its columns named."""
        built = self.relation(relation)
        visible = [
            self._expressions.alias(built.columns[attribute.id], name)
            for attribute, name in names.items()
        ]
        top = self._scala.node("Project", self._scala.seq(visible), built.plan)
        return dataset_of(self._spark, top).queryExecution()

    def relation(self, relation: Relation) -> Built:
        """One node with everything below it."""
        match relation:
            case Scan() | Changes() | Given():
                return self._leaf(relation)
            case Previous():
                return self._level(relation)
            case Recursion():
                return self._recursion(relation)
            case Values():
                return self._values(relation)
            case Select():
                return self._select(relation)
            case Project():
                return self._project(relation)
            case Join():
                return self._join(relation, "Inner")
            case OuterJoin():
                return self._join(relation, _outer_kind(relation))
            case Semijoin():
                return self._join(relation, "LeftAnti" if relation.anti else "LeftSemi")
            case MarkJoin():
                return self._mark_join(relation)
            case Intersection():
                return self._set_operation(relation, "Intersect")
            case Difference():
                return self._set_operation(relation, "Except")
            case Aggregate():
                return self._aggregate(relation)
            case Union():
                return self._union(relation)
            case Repeat():
                return self._repeat(relation)
            case Window():
                return self._window(relation)
            case Expand():
                return self._expand(relation)
            case Generate():
                return self._generate(relation)
            case Sort():
                return self._sort(relation)
            case Limit():
                return self._limit(relation)
            case _:
                assert_never(relation)

    def _leaf(self, leaf: TableLeaf) -> Built:
        attributes = tuple(self._new(attribute) for attribute in leaf.attributes)
        scala = self._scala
        none = scala.type("java.util.ArrayList")()
        rows = java_context(self._spark).parallelize(none, 1).rdd()
        placeholder = scala.new(
            "org.apache.spark.sql.execution.LogicalRDD",
            scala.seq(attributes),
            rows,
            scala.singleton(CATALYST + "plans.physical.SinglePartition"),
            scala.seq([]),
            False,
            scala.none,
            java_session(self._spark),
            scala.none,
            scala.none,
        )
        self.occurrences.append(Occurrence(leaf, placeholder, attributes, rows))
        return Built(placeholder, _by_id(leaf.attributes, attributes))

    def _new(self, attribute: Attribute) -> JavaObject:
        kind = self._expressions.type(attribute.type)
        return self._expressions.attribute(f"c{attribute.id}", kind)

    def _values(self, values: Values) -> Built:
        scala = self._scala
        attributes = [self._new(attribute) for attribute in values.attributes]
        columns = _by_id(values.attributes, attributes)
        if not values.attributes and len(values.rows) == 1:
            return Built(scala.node("OneRowRelation"), columns)
        if not values.rows:
            empty = scala.node(
                "LocalRelation", scala.seq(attributes), scala.seq([]), False, scala.none
            )
            return Built(empty, columns)
        rows = [
            scala.seq([self._expressions.expression(value, {}) for value in row])
            for row in values.rows
        ]
        table = CATALYST + "analysis.ResolvedInlineTable"
        return Built(scala.new(table, scala.seq(rows), scala.seq(attributes)), columns)

    def _select(self, select: Select) -> Built:
        child = self.relation(select.child)
        condition = self._expressions.expression(select.predicate, child.columns)
        return Built(self._scala.node("Filter", condition, child.plan), child.columns)

    def _project(self, project: Project) -> Built:
        child = self.relation(project.child)
        named, columns = [], {}
        for output in project.outputs:
            value = self._expressions.expression(output.expression, child.columns)
            if output.is_kept:
                made, reference = value, value
            else:
                made = self._expressions.alias(value, f"c{output.attribute.id}")
                reference = made.toAttribute()
            named.append(made)
            columns[output.attribute.id] = reference
        return Built(self._scala.node("Project", self._scala.seq(named), child.plan), columns)

    def _join(self, join: Join | OuterJoin | Semijoin, kind: str) -> Built:
        left, right = self.relation(join.left), self.relation(join.right)
        both = {**left.columns, **right.columns}
        on = None if join.on is None else self._expressions.expression(join.on, both)
        joined = self._join_node(left, right, self._scala.singleton(JOIN_TYPES + kind), on)
        return Built(joined, left.columns if isinstance(join, Semijoin) else both)

    def _join_node(
        self, left: Built, right: Built, kind: JavaObject, on: JavaObject | None
    ) -> JavaObject:
        condition = self._scala.some(on)
        return self._scala.node("Join", left.plan, right.plan, kind, condition, self._join_hint)

    def _mark_join(self, join: MarkJoin) -> Built:
        left, right = self.relation(join.left), self.relation(join.right)
        both = {**left.columns, **right.columns}
        on = None if join.on is None else self._expressions.expression(join.on, both)
        boolean = self._expressions.type("boolean")
        mark = self._expressions.attribute(f"c{join.mark.id}", boolean, nullable=False)
        kind = self._scala.new(JOIN_TYPES + "ExistenceJoin", mark)
        columns = {**left.columns, join.mark.id: mark}
        return Built(self._join_node(left, right, kind, on), columns)

    def _set_operation(self, node: Intersection | Difference, kind: str) -> Built:
        left, right = self.relation(node.left), self.relation(node.right)
        return Built(self._scala.node(kind, left.plan, right.plan, node.all), left.columns)

    def _aggregate(self, aggregate: Aggregate) -> Built:
        first, *others = apart(aggregate)
        if others:
            return self._joined_by_group(aggregate, [first, *others])
        aggregate = first
        child = self.relation(aggregate.child)
        if needs_order(aggregate):
            child = Built(
                *in_one_order(child.plan, child.columns, aggregate, self._expressions, self._scala)
            )
        group = [child.columns[attribute.id] for attribute in aggregate.group]
        columns = _by_id(aggregate.group, group)
        results = list(group)
        for output in aggregate.aggregates:
            value = self._expressions.aggregate(output.call, child.columns)
            made = self._expressions.alias(value, f"c{output.attribute.id}")
            results.append(made)
            columns[output.attribute.id] = made.toAttribute()
        scala = self._scala
        node = scala.node("Aggregate", scala.seq(group), scala.seq(results), child.plan, scala.none)
        return Built(node, columns)

    def _joined_by_group(self, whole: Aggregate, parts: Sequence[Aggregate]) -> Built:
        """Aggregates of the same groups, side by side."""
        built, *others = [self._aggregate(part) for part in parts]
        for other in others:
            on = None
            for attribute in whole.group:
                pair = (built.columns[attribute.id], other.columns[attribute.id])
                same = self._scala.expression("EqualNullSafe", *pair)
                on = same if on is None else self._scala.expression("And", on, same)
            inner = self._scala.singleton(JOIN_TYPES + "Inner")
            joined = self._join_node(built, other, inner, on)
            built = Built(joined, {**other.columns, **built.columns})
        return built

    def _union(self, union: Union) -> Built:
        """Catalyst names the columns of a union by those of its first child."""
        children = [self.relation(child) for child in union.children]
        first = [children[0].columns[a.id] for a in union.children[0].attributes]
        scala = self._scala
        node = scala.node("Union", scala.seq([child.plan for child in children]), False, False)
        return Built(node, _by_id(union.attributes, first))

    def _recursion(self, node: Recursion) -> Built:
        """Spark tells loops apart by a number, which is new for each that is lowered."""
        scala = self._scala
        number = scala.singleton(CATALYST + "plans.logical.CTERelationDef").newId()
        anchor = self.relation(node.anchor)
        self._loops[node.loop] = number
        step = self.relation(node.step)
        made = [self._new(attribute) for attribute in node.attributes]
        ids = scala.seq([attribute.exprId() for attribute in made])
        levels = scala.none if node.levels is None else scala.some(node.levels)
        loop = scala.node("UnionLoop", number, anchor.plan, step.plan, ids, scala.none, levels)
        return Built(loop, _by_id(node.attributes, made))

    def _level(self, level: Previous) -> Built:
        made = [self._new(attribute) for attribute in level.attributes]
        node = self._scala.node(
            "UnionLoopRef", self._loops[level.loop], self._scala.seq(made), False
        )
        return Built(node, _by_id(level.attributes, made))

    def _repeat(self, repeat: Repeat) -> Built:
        child = self.relation(repeat.child)
        times = self._expressions.expression(repeat.times, child.columns)
        if repeat.times.type != "bigint":
            times = self._expressions.cast_to(times, "bigint")
        copied = [child.columns[attribute.id] for attribute in repeat.attributes]
        made = [reference.newInstance() for reference in copied]
        scala = self._scala
        generator = scala.expression("ReplicateRows", scala.seq([times, *copied]))
        node = scala.node(
            "Generate",
            generator,
            scala.seq(list(range(len(copied)))),
            False,
            scala.none,
            scala.seq(made),
            child.plan,
        )
        return Built(node, _by_id(repeat.attributes, made))

    def _window(self, window: Window) -> Built:
        child = self.relation(window.child)
        columns, made = dict(child.columns), []
        scala = self._scala
        partition = [self._expressions.expression(e, child.columns) for e in window.partition]
        order = self._expressions.order(window.order, child.columns)
        for output in window.outputs:
            value = self._expressions.window(output.call, partition, order, child.columns)
            alias = self._expressions.alias(value, f"c{output.attribute.id}")
            made.append(alias)
            columns[output.attribute.id] = alias.toAttribute()
        node = scala.node(
            "Window",
            scala.seq(made),
            scala.seq(partition),
            scala.seq(order),
            self._in_total_order(window, child),
            scala.none,
        )
        return Built(node, columns)

    def _in_total_order(self, window: Window, child: Built) -> JavaObject:
        """The child sorted so that rows which tie in the window's order come in one certain order.

        Spark sorts the rows of a window by its partition and order; rows that are sorted by more
        than that are left as they are.
        """
        if not window.ties:
            return child.plan
        scala, columns = self._scala, child.columns
        by = tuple(Ordering(e) for e in window.partition if references(e))
        keys = [self._expressions.expression(key.expression, columns) for key in by]
        spread = scala.node(
            "RepartitionByExpression", scala.seq(keys), child.plan, scala.none, scala.none
        )
        if not keys:
            spread = scala.node("Repartition", 1, True, child.plan)
        order = self._expressions.order((*by, *window.order, *window.ties), columns)
        return scala.node("Sort", scala.seq(order), False, spread, scala.none)

    def _expand(self, expand: Expand) -> Built:
        child = self.relation(expand.child)
        scala = self._scala
        projections = [
            scala.seq([self._expressions.expression(e, child.columns) for e in projection])
            for projection in expand.projections
        ]
        passed = set(expand.child.attributes)
        made = [child.columns[a.id] if a in passed else self._new(a) for a in expand.attributes]
        node = scala.node("Expand", scala.seq(projections), scala.seq(made), child.plan)
        return Built(node, _by_id(expand.attributes, made))

    def _generate(self, generate: Generate) -> Built:
        child = self.relation(generate.child)
        generator = self._expressions.expression(generate.generator, child.columns)
        made = [self._new(attribute) for attribute in generate.generated]
        scala = self._scala
        node = scala.node(
            "Generate",
            generator,
            scala.seq([]),
            generate.outer,
            scala.none,
            scala.seq(made),
            child.plan,
        )
        return Built(node, {**child.columns, **_by_id(generate.generated, made)})

    def _sort(self, sort: Sort) -> Built:
        child = self.relation(sort.child)
        order = self._expressions.order(sort.order, child.columns)
        scala = self._scala
        node = scala.node("Sort", scala.seq(order), True, child.plan, scala.none)
        return Built(node, child.columns)

    def _limit(self, limit: Limit) -> Built:
        child = self.relation(limit.child)
        scala = self._scala
        kind = self._expressions.type("int")
        order = self._expressions.order(limit.order, child.columns)
        plan = scala.node("Sort", scala.seq(order), True, child.plan, scala.none)
        if limit.offset:
            plan = scala.node("Offset", scala.expression("Literal", limit.offset, kind), plan)
        if limit.count is not None:
            count = scala.expression("Literal", limit.count, kind)
            plan = scala.node("GlobalLimit", count, scala.node("LocalLimit", count, plan))
        return Built(plan, child.columns)


def _outer_kind(join: OuterJoin) -> str:
    if join.keeps_left and join.keeps_right:
        return "FullOuter"
    return "LeftOuter" if join.keeps_left else "RightOuter"


def _by_id(attributes: Sequence[Attribute], values: Sequence[JavaObject]) -> dict[int, JavaObject]:
    return {attribute.id: value for attribute, value in zip(attributes, values, strict=True)}


def dataset_of(spark: SparkSession, plan: JavaObject) -> JavaObject:
    dataset = scala_of(spark).singleton("org.apache.spark.sql.classic.Dataset")
    return dataset.ofRows(java_session(spark), plan)
