"""Catalyst's logical plan nodes to ours, one function per kind of node.

Each node is imported with the columns Catalyst says it yields, by position and expression id. Our
relation may carry more attributes than these (a joined subquery, say); what is above reads only the
ones it names. Ids of attributes are handed out in the order of their first appearance, so the same
text always gives the same algebra. Attributes are nullable throughout: Catalyst's nullability does
not survive the outer joins that our rules may put above a node.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Call, Column, Expression, conjunction, conjuncts
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Difference,
    Expand,
    Generate,
    Intersection,
    Join,
    MarkJoin,
    OuterJoin,
    Output,
    Previous,
    Project,
    Recursion,
    Relation,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    Window,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.windows import Ordering, WindowOutput, total_order
from freshview.errors import UnsupportedOperator
from freshview.frontend.aggregation import Aggregation, named_output, projected, results
from freshview.frontend.expressions import ExpressionImport, Scope, type_name
from freshview.frontend.leaves import local_rows, range_rows, refused, stand_in_scan
from freshview.frontend.rules import desugared
from freshview.frontend.scala import JavaObject, Scala, items
from freshview.frontend.single_join import single_join, single_join_by_values
from freshview.frontend.windows import (
    certain_order,
    limited,
    order_below,
    orderings,
    window_call,
)


@dataclass(frozen=True, slots=True)
class Imported:
    """A relation and, by position, the columns its Catalyst plan yields."""

    relation: Relation
    output: tuple[tuple[int, Attribute], ...]

    @property
    def scope(self) -> Scope:
        """What an expression over this node may read."""
        attributes: dict[int, Attribute] = {}
        for identifier, attribute in self.output:
            attributes.setdefault(identifier, attribute)
        return Scope(attributes)


class PlanImport:
    """Imports the plan of one definition."""

    def __init__(self, scala: Scala) -> None:
        self._scala = scala
        self._numbering = Numbering(0)
        self._loops: dict[int, int] = {}
        self._loop_numbers = itertools.count(1)
        self._expressions = ExpressionImport(scala, self._subquery, self._exists)
        self._nodes: dict[str, Callable[[JavaObject], Imported]] = {
            "Project": self._project,
            "Filter": self._filter,
            "Join": self._join,
            "Aggregate": self._aggregate,
            "Union": self._union,
            "UnionLoop": self._recursion,
            "UnionLoopRef": self._level,
            "Intersect": self._set_operation,
            "Intersect All": self._set_operation,
            "Except": self._set_operation,
            "Except All": self._set_operation,
            "Window": self._window,
            "Expand": self._expand,
            "Generate": self._generate,
            "Sort": self._sort,
            "GlobalLimit": self._limit,
            "Offset": self._offset,
            "OneRowRelation": self._one_row,
            "Range": self._range,
            "LocalRelation": self._local_relation,
            "ResolvedInlineTable": self._inline_table,
        }

    def query(self, plan: JavaObject, names: Sequence[str]) -> Relation:
        """A whole query: exactly its visible columns, in order and by name."""
        return self._exactly(self.node(desugared(self._scala, plan)), names)

    def node(self, plan: JavaObject) -> Imported:
        """One node with everything below it."""
        kind = plan.nodeName()
        if kind == "LogicalRDD":
            return Imported(*stand_in_scan(plan, self._numbering))
        if kind in PASSED_THROUGH:
            return self.node(plan.child())
        imported = self._nodes.get(kind)
        if imported is None:
            raise refused(kind, plan)
        return imported(plan)

    def _exactly(self, imported: Imported, names: Sequence[str] | None = None) -> Relation:
        """The relation with the columns of its plan only, each its own attribute."""
        outputs: list[Output] = []
        taken: set[Attribute] = set()
        for position, (_, attribute) in enumerate(imported.output):
            name = attribute.name if names is None else names[position]
            output = named_output(Column(attribute), name, taken, self._numbering)
            taken.add(output.attribute)
            outputs.append(output)
        relation = imported.relation
        if tuple(outputs) == tuple(keep(attribute) for attribute in relation.attributes):
            return relation
        return Project(relation, tuple(outputs))

    def _exists(self, plan: JavaObject, scope: Scope) -> Expression:
        """Whether a plan that reads nothing from outside has rows, as a mark joined below."""
        inner = self.node(desugared(self._scala, plan))
        mark = self._numbering.attribute("exists", "boolean")
        scope.attached.append(lambda child: MarkJoin(child, inner.relation, None, mark))
        return Column(mark)

    def _subquery(self, source: JavaObject, scope: Scope) -> Expression:
        """An uncorrelated scalar subquery as the column of a one-row relation joined below."""
        if source.outerAttrs().size() or source.joinCond().size():
            raise UnsupportedOperator(
                operator="scalar subquery",
                reason="Spark's rules could not turn its correlation into a join",
            )
        relation = self._exactly(self.node(desugared(self._scala, source.plan())))
        value = relation.attributes[0]
        if not yields_one_row(relation):
            made = self._numbering.attribute(value.name, value.type)
            call = AggregateCall("single_value", (Column(value),), value.type)
            relation, value = Aggregate(relation, (), (AggregateOutput(made, call),)), made
        scope.attached.append(lambda child: Join(child, relation))
        return Column(value)

    def _project(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        scope = child.scope
        outputs: list[Output] = []
        columns: list[tuple[int, Attribute]] = []
        taken: set[Attribute] = set()
        for source in items(plan.projectList()):
            expression = self._expressions.expression(source, scope)
            output = named_output(expression, _name(source, expression), taken, self._numbering)
            taken.add(output.attribute)
            outputs.append(output)
            columns.append((source.exprId().id(), output.attribute))
        relation = scope.over(child.relation)
        if tuple(outputs) != tuple(keep(attribute) for attribute in relation.attributes):
            relation = Project(relation, tuple(outputs))
        return Imported(relation, tuple(columns))

    def _filter(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        scope = child.scope
        predicate = self._expressions.expression(plan.condition(), scope)
        return Imported(selected(scope.over(child.relation), predicate), child.output)

    def _join(self, plan: JavaObject) -> Imported:
        left, right = self.node(plan.left()), self.node(plan.right())
        scope = Scope({**right.scope.attributes, **left.scope.attributes})
        on: Expression | None = None
        if plan.condition().isDefined():
            on = self._expressions.expression(plan.condition().get(), scope)
        base = scope.over(left.relation)
        both = left.output + right.output
        kind = str(plan.joinType().toString())
        match kind:
            case "Inner" | "Cross":
                return Imported(Join(base, right.relation, on), both)
            case "LeftOuter" | "RightOuter" | "FullOuter":
                outer = OuterJoin(
                    base, right.relation, on, kind != "RightOuter", kind != "LeftOuter"
                )
                return Imported(outer, both)
            case "LeftSemi" | "LeftAnti":
                semi = Semijoin(base, right.relation, on, anti=kind == "LeftAnti")
                return Imported(semi, left.output)
        if kind.startswith("ExistenceJoin("):
            mark = self._numbering.attribute("exists", "boolean")
            column = (plan.joinType().exists().exprId().id(), mark)
            return Imported(MarkJoin(base, right.relation, on, mark), (*left.output, column))
        if kind == "LeftSingle":
            single = single_join(self._scala, self._numbering, base, right.relation, on)
            if single is None:
                single = self._single_by_values(plan, Imported(base, left.output), right)
            if single is not None:
                relation, held = single
                columns = tuple((i, held[attribute]) for i, attribute in right.output)
                return Imported(relation, (*left.output, *columns))
        raise refused(f"Join {kind}", plan)

    def _single_by_values(
        self, plan: JavaObject, left: Imported, right: Imported
    ) -> tuple[Relation, dict[Attribute, Attribute]] | None:
        """A LeftSingle join of any condition, for which the left side is imported once more."""
        again = self.node(plan.left())
        scope = Scope({**right.scope.attributes, **again.scope.attributes})
        on: Expression | None = None
        if plan.condition().isDefined():
            on = self._expressions.expression(plan.condition().get(), scope)
        same = {b: a for (_, a), (_, b) in zip(left.output, again.output, strict=True)}
        once_more = scope.over(again.relation)
        return single_join_by_values(
            self._numbering, left.relation, once_more, same, right.relation, on
        )

    def _aggregate(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        aggregation = Aggregation(self._expressions, self._numbering, child.scope)
        group: dict[int, Attribute] = {}
        keys: dict[Attribute, None] = {}
        for source in items(plan.groupingExpressions()):
            expression = self._expressions.expression(source, aggregation.below)
            attribute = aggregation.attribute(expression, "group")
            keys.setdefault(attribute)
            if source.nodeName() == "AttributeReference":
                group[source.exprId().id()] = attribute
        found = results(aggregation, group, items(plan.aggregateExpressions()))
        relation = projected(found, aggregation.relation(child.relation, tuple(keys)))
        return Imported(relation, tuple((i, o.attribute) for i, o in found.outputs))

    def _union(self, plan: JavaObject) -> Imported:
        children = [self._exactly(self.node(child)) for child in items(plan.children())]
        output = self._new_columns(items(plan.output()))
        relation = Union(tuple(children), tuple(attribute for _, attribute in output))
        return Imported(relation, output)

    def _recursion(self, plan: JavaObject) -> Imported:
        """WITH RECURSIVE. Spark's number of the loop comes again where its table is read twice."""
        anchor = self._exactly(self.node(plan.anchor()))
        loop = self._loops[plan.id()] = next(self._loop_numbers)
        step = self._exactly(self.node(plan.recursion()))
        output = self._new_columns(items(plan.output()))
        levels = plan.maxDepth().get() if plan.maxDepth().isDefined() else None
        attributes = tuple(attribute for _, attribute in output)
        return Imported(Recursion(anchor, step, loop, levels, attributes), output)

    def _level(self, plan: JavaObject) -> Imported:
        """The rows of the level before, which the step of a recursion reads."""
        if plan.accumulated():
            raise refused("UnionLoopRef", plan)
        output = self._new_columns(items(plan.output()))
        level = Previous(self._loops[plan.loopId()], tuple(attribute for _, attribute in output))
        return Imported(level, output)

    def _set_operation(self, plan: JavaObject) -> Imported:
        left, right = (self._exactly(self.node(child)) for child in items(plan.children()))
        kind = Intersection if plan.nodeName().startswith("Intersect") else Difference
        ids = [column.exprId().id() for column in items(plan.output())]
        relation = kind(left, right, bool(plan.isAll()))
        return Imported(relation, tuple(zip(ids, relation.attributes, strict=True)))

    def _new_columns(self, sources: list[JavaObject]) -> tuple[tuple[int, Attribute], ...]:
        return tuple(
            (s.exprId().id(), self._numbering.attribute(str(s.name()), type_name(s.dataType())))
            for s in sources
        )

    def _window(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        scope = child.scope
        partition = self._all(plan.partitionSpec(), scope)
        order = orderings(self._expressions, plan.orderSpec(), scope)
        outputs, columns = [], []
        for source in items(plan.windowExpressions()):
            if source.nodeName() == "AttributeReference":
                continue  # carried along from the child by Spark's rules for LATERAL
            call = window_call(self._expressions, source.child(), scope)
            made = self._numbering.attribute(str(source.name()), call.type)
            outputs.append(WindowOutput(made, call))
            columns.append((source.exprId().id(), made))
        below, shown = scope.over(child.relation), tuple(a for _, a in child.output)
        numbers_rows = all(output.call.function == "row_number" for output in outputs)
        kept = order_below(below) if numbers_rows and not order else None
        if kept is not None:
            below, order, shown = kept.child, kept.order, kept.child.attributes
        elif numbers_rows and not order:
            order = certain_order(partition, shown)
        ties: tuple[Ordering, ...] = ()
        if any(output.call.needs_total_order for output in outputs):
            by = tuple(map(Ordering, partition))
            ties = total_order((*by, *order), shown)[len(by) + len(order) :]
        relation: Relation = Window(below, tuple(outputs), partition, order, ties)
        if kept is not None:
            made_here = tuple(attribute for _, attribute in (*child.output, *columns))
            relation = Project(relation, tuple(map(keep, made_here)))
        return Imported(relation, (*child.output, *columns))

    def _expand(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        scope = child.scope
        projections = tuple(self._all(each, scope) for each in items(plan.projections()))
        columns: list[tuple[int, Attribute]] = []
        for position, source in enumerate(items(plan.output())):
            values = {projection[position] for projection in projections}
            only = values.pop() if len(values) == 1 else None
            taken = {attribute for _, attribute in columns}
            if isinstance(only, Column) and only.attribute not in taken:
                columns.append((source.exprId().id(), only.attribute))
            else:
                columns.extend(self._new_columns([source]))
        relation = scope.over(child.relation)
        expanded = Expand(relation, projections, tuple(attribute for _, attribute in columns))
        return Imported(expanded, tuple(columns))

    def _generate(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        scope = child.scope
        generator = plan.generator()
        dropped = set(items(plan.unrequiredChildIndex()))
        kept = tuple(c for position, c in enumerate(child.output) if position not in dropped)
        expression = self._expressions.expression(generator, scope)
        made = self._new_columns(items(plan.generatorOutput()))
        generated = tuple(attribute for _, attribute in made)
        relation = Generate(scope.over(child.relation), expression, plan.outer(), generated)
        return Imported(relation, (*kept, *made))

    def _sort(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        if not getattr(plan, "global")():
            return child
        scope = child.scope
        order = orderings(self._expressions, plan.order(), scope)
        return Imported(Sort(scope.over(child.relation), order), child.output)

    def _limit(self, plan: JavaObject) -> Imported:
        count = plan.limitExpr().eval(None)
        below = plan.child()
        child = self.node(below.child() if below.nodeName() == "LocalLimit" else below)
        return self._limited(child, count, 0)

    def _offset(self, plan: JavaObject) -> Imported:
        child = self.node(plan.child())
        return self._limited(child, None, plan.offsetExpr().eval(None))

    def _limited(self, child: Imported, count: int | None, offset: int) -> Imported:
        columns = tuple(dict.fromkeys(attribute for _, attribute in child.output))
        return Imported(limited(child.relation, columns, count, offset), child.output)

    def _one_row(self, _: JavaObject) -> Imported:
        return Imported(Values((), ((),)), ())

    def _range(self, plan: JavaObject) -> Imported:
        output = self._new_columns(items(plan.output()))
        rows = range_rows(plan)
        return Imported(Values(tuple(attribute for _, attribute in output), rows), output)

    def _local_relation(self, plan: JavaObject) -> Imported:
        output = self._new_columns(items(plan.output()))
        rows = local_rows(self._scala, plan)
        return Imported(Values(tuple(attribute for _, attribute in output), rows), output)

    def _inline_table(self, plan: JavaObject) -> Imported:
        output = self._new_columns(items(plan.output()))
        rows = tuple(self._all(row, Scope({})) for row in items(plan.rows()))
        return Imported(Values(tuple(attribute for _, attribute in output), rows), output)

    def _all(self, sources: JavaObject, scope: Scope) -> tuple[Expression, ...]:
        return tuple(self._expressions.expression(source, scope) for source in items(sources))


_COMMON = re.compile(r"^(_common_expr)_\d+$")
"""Spark numbers the shared parts of expressions through the whole session."""


def _name(source: JavaObject, expression: Expression) -> str:
    """An alias names its column; a column passed through keeps the name that it has."""
    if isinstance(expression, Column) and source.nodeName() != "Alias":
        return expression.attribute.name
    return _COMMON.sub(r"\1", str(source.name()))


def selected(relation: Relation, predicate: Expression) -> Relation:
    """σ over a relation; a mark that is a conjunct of its own is a semijoin or an antijoin."""
    marks: dict[Attribute, MarkJoin] = {}
    while isinstance(relation, MarkJoin):
        marks[relation.mark] = relation
        relation = relation.left
    rest: list[Expression] = []
    for part in conjuncts(predicate):
        match part:
            case Column(mark) if mark in marks:
                join = marks.pop(mark)
                relation = Semijoin(relation, join.right, join.on)
            case Call("not", (Column(mark),)) if mark in marks:
                join = marks.pop(mark)
                relation = Semijoin(relation, join.right, join.on, anti=True)
            case _:
                rest.append(part)
    for join in marks.values():
        relation = MarkJoin(relation, join.right, join.on, join.mark)
    condition = conjunction(tuple(rest))
    return relation if condition is None else Select(relation, condition)


def yields_one_row(relation: Relation) -> bool:
    """Whether a relation has exactly one row, whatever the tables hold."""
    match relation:
        case Project() | Window() | Sort():
            return yields_one_row(relation.child)
        case Aggregate():
            return not relation.group
        case Values():
            return len(relation.rows) == 1
        case Join(on=None):
            return yields_one_row(relation.left) and yields_one_row(relation.right)
        case _:
            return False


PASSED_THROUGH = frozenset(
    {"SubqueryAlias", "View", "ResolvedHint", "Repartition", "RepartitionByExpression"}
    | {"RebalancePartitions", "Subquery"}
)
"""Nodes that yield the bag of rows of their child."""
