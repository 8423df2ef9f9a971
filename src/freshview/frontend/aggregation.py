"""Catalyst's Aggregate as three nodes: arguments computed below, groups and calls, results above."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace

from freshview.algebra.aggregates import OR_NULL, AggregateCall
from freshview.algebra.expressions import Call, Column, Expression, Literal, Opaque, references
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering, decimal_type
from freshview.frontend.expressions import ExpressionImport, Scope, type_name
from freshview.frontend.scala import JavaObject, items

UNDERSTOOD = {"Count": "count", "Sum": "sum", "Average": "avg", "Min": "min", "Max": "max"}


def _is_null_on_overflow(function: JavaObject, argument: Expression) -> bool:
    """Whether a sum can leave its type, which has ten digits more up to 38, and is NULL then."""
    held = decimal_type(argument.type)
    if held is None or held[0] <= 28:
        return False
    mode = (
        function.evalContext().evalMode() if function.nodeName() == "Sum" else function.evalMode()
    )
    return str(mode.toString()) == "LEGACY"


@dataclass(slots=True)
class Aggregation:
    """Collects what one Aggregate needs while its result expressions are imported."""

    expressions: ExpressionImport
    numbering: Numbering
    below: Scope
    computed: dict[Attribute, Expression] = field(default_factory=dict)
    calls: list[AggregateOutput] = field(default_factory=list)

    def attribute(self, expression: Expression, name: str) -> Attribute:
        """The attribute of the projection below that holds an expression."""
        if isinstance(expression, Column):
            self.computed.setdefault(expression.attribute, expression)
            return expression.attribute
        for known, other in self.computed.items():
            if other == expression:
                return known
        made = self.numbering.attribute(name, expression.type)
        self.computed[made] = expression
        return made

    def call(self, source: JavaObject, name: str | None = None) -> Column:
        """The column that holds the value of an aggregate function."""
        call = self._imported(source)
        for known in self.calls:
            if known.call == call and call.deterministic:
                return Column(known.attribute)
        made = self.numbering.attribute(name or call.function, call.type)
        self.calls.append(AggregateOutput(made, call))
        return Column(made)

    def _imported(self, source: JavaObject) -> AggregateCall:
        function = source.aggregateFunction()
        kind = function.nodeName()
        distinct = source.isDistinct()
        imported = [
            self.expressions.expression(child, self.below) for child in items(function.children())
        ]
        only: Column | None = None
        if source.filter().isDefined():
            condition = self.expressions.expression(source.filter().get(), self.below)
            only = Column(self.attribute(condition, "filter"))
        returned = type_name(function.dataType())
        if kind == "Count":
            return self._count(imported, returned, distinct, only, function)
        arguments = tuple(self._argument(argument) for argument in imported)
        name = str(function.prettyName())
        if name in UNDERSTOOD.values() and UNDERSTOOD.get(kind) != name:
            name = kind
        elif name in OR_NULL and _is_null_on_overflow(function, arguments[0]):
            name = OR_NULL[name]
        deterministic = function.deterministic()
        return AggregateCall(name, arguments, returned, distinct, only, deterministic, function)

    def _count(
        self,
        arguments: list[Expression],
        returned: str,
        distinct: bool,
        only: Column | None,
        function: JavaObject,
    ) -> AggregateCall:
        """``count(*)`` counts rows; ``count(a, b)`` counts rows in which neither is null."""
        if not distinct:
            arguments = [
                a for a in arguments if not (isinstance(a, Literal) and a.value is not None)
            ]
            if not arguments:
                return AggregateCall("count", (), returned, False, only)
            if len(arguments) > 1:
                return self._count_of_all(arguments, returned, only)
        columns = tuple(self._argument(argument) for argument in arguments)
        return AggregateCall("count", columns, returned, distinct, only, True, function)

    def _count_of_all(
        self, arguments: list[Expression], returned: str, only: Column | None
    ) -> AggregateCall:
        present: Expression = Call("is not null", (arguments[0],), "boolean")
        for argument in arguments[1:]:
            other = Call("is not null", (argument,), "boolean")
            present = Call("and", (present, other), "boolean")
        one, nothing = Literal(1, "int", "1"), Literal(None, "int", "null")
        counted = Call("if", (present, one, nothing), "int")
        return AggregateCall("count", (self._argument(counted),), returned, False, only)

    def _argument(self, expression: Expression) -> Expression:
        """An argument as a column; constants and sort orders stay, for Spark reads them itself."""
        if isinstance(expression, Opaque) and expression.text.startswith("SortOrder("):
            key, *same = expression.arguments
            return replace(expression, arguments=(self._argument(key), *same))
        if not references(expression) and not isinstance(expression, Column):
            return expression
        return Column(self.attribute(expression, "argument"))

    def relation(self, child: Relation, group: tuple[Attribute, ...]) -> Relation:
        """π_{group, calls} over the child, with a projection between them if one is needed."""
        source = self.below.over(child)
        if any(not isinstance(e, Column) for e in self.computed.values()):
            outputs = tuple(Output(a, e) for a, e in self.computed.items())
            source = Project(source, outputs)
        return Aggregate(source, group, tuple(self.calls))


@dataclass(frozen=True, slots=True)
class Results:
    """The result columns of an aggregation: Catalyst's id, our attribute and its expression."""

    outputs: tuple[tuple[int, Output], ...]
    above: Scope


def results(
    aggregation: Aggregation, group: dict[int, Attribute], sources: list[JavaObject]
) -> Results:
    """The result expressions over groups and calls, imported in their order."""
    above = Scope(group, aggregate=aggregation.call)
    outputs: list[tuple[int, Output]] = []
    taken: set[Attribute] = set()
    for source in sources:
        expression = _result(aggregation, above, source)
        name = str(source.name())
        output = named_output(expression, name, taken, aggregation.numbering)
        taken.add(output.attribute)
        outputs.append((source.exprId().id(), output))
    return Results(tuple(outputs), above)


def named_output(
    expression: Expression, name: str, taken: Set[Attribute], numbering: Numbering
) -> Output:
    """``expression AS name``; a column that already has the name stays the same attribute."""
    if isinstance(expression, Column):
        attribute = expression.attribute
        if attribute.name == name and attribute not in taken:
            return Output(attribute, expression)
    return Output(numbering.attribute(name, expression.type), expression)


def _result(aggregation: Aggregation, above: Scope, source: JavaObject) -> Expression:
    if source.nodeName() == "Alias" and source.child().nodeName() == "AggregateExpression":
        return aggregation.call(source.child(), str(source.name()))
    return aggregation.expressions.expression(source, above)


def projected(results: Results, aggregate: Relation) -> Relation:
    """The result columns as a projection, or the aggregate itself if it yields just these."""
    source = results.above.over(aggregate)
    outputs = tuple(output for _, output in results.outputs)
    if outputs == tuple(keep(attribute) for attribute in source.attributes):
        return source
    return Project(source, outputs)
