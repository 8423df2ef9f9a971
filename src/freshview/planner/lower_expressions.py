"""Our expressions to Catalyst's: imported ones are rebound, synthesised ones are constructed.

An imported expression keeps the Catalyst expression it came from as its template, and lowering puts
new children into it (``withNewChildren``): whatever modes, options and time zones it had stay. An
expression made by our own rules has no template and is built here under the session's settings.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.clock_time import microseconds
from freshview.algebra.exact_sums import WEIGHTS
from freshview.algebra.expressions import Call, Column, Expression, Literal, Opaque, walk
from freshview.algebra.schema import decimal_type
from freshview.algebra.windows import Frame, Ordering, WindowCall
from freshview.frontend.expressions import special_word
from freshview.frontend.leaves import internal_literal
from freshview.frontend.scala import CATALYST, JavaObject, scala_of
from freshview.planner.lower_exact_sums import ExactSums, SumParts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BINARY = {
    "=": "EqualTo",
    "<=>": "EqualNullSafe",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "and": "And",
    "or": "Or",
}
UNARY = {"not": "Not", "is null": "IsNull", "is not null": "IsNotNull"}
ARITHMETIC = {"+": "Add", "-": "Subtract", "*": "Multiply"}
AGGREGATES = {"sum": "Sum", "avg": "Average", "min": "Min", "max": "Max"}
SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}

NOT_SPECIAL = "string collate UTF8_LCASE"
"""A text of this type is never read as a special word, and is cast like any other."""

References = Mapping[int, JavaObject]
"""The Catalyst attribute that holds each of our attributes, by our id, in the child's output."""


class ExpressionLowering:
    """Lowers expressions for one session. What has no column in it is built only once."""

    def __init__(self, spark: SparkSession) -> None:
        self._scala = scala = scala_of(spark)
        self._ansi = ansi = _is_on(spark, "spark.sql.ansi.enabled")
        loses = _is_on(spark, "spark.sql.decimalOperations.allowPrecisionLoss")
        self._zone = scala.some(spark.conf.get("spark.sql.session.timeZone"))
        self._mode = scala.singleton(CATALYST + "expressions.EvalMode").fromBoolean(ansi)
        self._context = scala.expression("NumericEvalContext", self._mode, loses)
        self._parser = scala.singleton(CATALYST + "parser.CatalystSqlParser")
        self._types: dict[str, JavaObject] = {}
        self._constants: dict[tuple[object, str, str], JavaObject] = {}
        self._metadata = scala.singleton("org.apache.spark.sql.types.Metadata").empty()
        self._named = scala.singleton(CATALYST + "expressions.NamedExpression")
        self._exact = ExactSums(self, scala)

    def type(self, name: str) -> JavaObject:
        """Spark's type of that name."""
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = self._parser.parseDataType(name)
        return found

    def alias(self, value: JavaObject, name: str) -> JavaObject:
        """``value AS name`` with an expression id of its own."""
        scala = self._scala
        return self._scala.expression(
            "Alias", value, name, self.new_id(), scala.seq([]), scala.none, scala.seq([])
        )

    def new_id(self) -> JavaObject:
        """An expression id that nothing else has."""
        return self._named.newExprId()

    def attribute(self, name: str, kind: JavaObject, nullable: bool = True) -> JavaObject:
        """A new attribute, for nodes that say themselves what they yield."""
        scala, fresh = self._scala, self.new_id()
        return scala.expression(
            "AttributeReference", name, kind, nullable, self._metadata, fresh, scala.seq([])
        )

    def expression(self, expression: Expression, columns: References) -> JavaObject:
        """One expression over the columns of the node below."""
        match expression:
            case Column(attribute):
                return columns[attribute.id]
            case Literal():
                return self.literal(expression)
            case Call() | Opaque():
                arguments = [self.expression(a, columns) for a in expression.arguments]
                if len(arguments) == 1 and self._became_special(expression, arguments[0]):
                    arguments = [self._cast(arguments[0], NOT_SPECIAL)]
                if expression.template is not None:
                    return self._rebound(expression.template, arguments)
                assert isinstance(expression, Call), f"{expression} has no template"
                if expression.operation == "piece":
                    place = expression.arguments[1]
                    assert isinstance(place, Literal)
                    assert isinstance(place.value, int)
                    return self._exact.piece(arguments[0], place.value)
                return self._synthesised(expression, arguments)

    @staticmethod
    def _became_special(expression: Call | Opaque, argument: JavaObject) -> bool:
        """Whether a cast of a column is now one of the constant 'today' that the column holds.

        A cast that was written so has been refused, or is of 'epoch', which always is one moment.
        """
        (given,) = expression.arguments
        if any(isinstance(part, Column) for part in walk(given)):
            return False
        if special_word(argument, given, expression.type) is None:
            return False
        template: JavaObject = expression.template
        if template is None:
            return True
        return template.nodeName() == "Cast" and not template.child().foldable()

    def _rebound(self, template: JavaObject, arguments: list[JavaObject]) -> JavaObject:
        return template.withNewChildren(self._scala.seq(arguments)) if arguments else template

    def literal(self, literal: Literal) -> JavaObject:
        """A constant of exactly the declared type."""
        if literal.template is not None:
            return literal.template
        key = (literal.value, literal.type, literal.text)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._constant(literal)
        return found

    def _constant(self, literal: Literal) -> JavaObject:
        value, declared = literal.value, literal.type
        if value is None:
            return self._scala.expression("Literal", None, self.type(declared))
        if isinstance(value, bool):
            return self._parser.parseExpression(str(value).lower())
        if isinstance(value, int) and declared in SUFFIXES:
            return self._number(f"{value}{SUFFIXES[declared]}")
        if isinstance(value, str) and declared == "string":
            create = self._scala.singleton(CATALYST + "expressions.Literal").create
            return create(value, self.type(declared))
        if isinstance(value, dt.datetime):
            held = microseconds(value)
            return internal_literal(self._scala, held, self.type(declared), declared)
        if isinstance(value, dt.date) and declared == "date":
            return self._parser.parseExpression(f"DATE '{value.isoformat()}'")
        if isinstance(value, Decimal | int) and decimal_type(declared):
            return self._cast(self._number(f"{value:f}BD"), declared)
        if isinstance(value, float):
            return self._cast(self._double(value), declared)
        raise AssertionError(f"no Catalyst literal for {literal}")

    def _number(self, text: str) -> JavaObject:
        return self._parser.parseExpression(text)

    def _double(self, value: float) -> JavaObject:
        create = self._scala.singleton(CATALYST + "expressions.Literal").create
        return create(value, self.type("double"))

    def _cast(self, value: JavaObject, target: str) -> JavaObject:
        return self._scala.expression("Cast", value, self.type(target), self._zone, self._mode)

    def cast_to(self, value: JavaObject, target: str) -> JavaObject:
        """The value in a declared type: itself if it already has that type."""
        if value.resolved() and str(value.dataType().catalogString()) == target:
            return value
        return self._cast(value, target)

    def _synthesised(self, call: Call, arguments: list[JavaObject]) -> JavaObject:
        new = self._scala.expression
        operation = call.operation
        if operation in BINARY:
            return new(BINARY[operation], *arguments)
        if operation in UNARY:
            return new(UNARY[operation], *arguments)
        if operation in ARITHMETIC:
            return self.cast_to(self.arithmetic(ARITHMETIC[operation], *arguments), call.type)
        match operation:
            case "coalesce":
                return new("Coalesce", self._scala.seq(arguments))
            case "if":
                return new("If", *arguments)
            case "cast":
                return self._cast(arguments[0], call.type)
            case "array":
                return new("CreateArray", self._scala.seq(arguments), False)
            case "explode":
                return new("Explode", arguments[0])
            case "in":
                return new("In", arguments[0], self._scala.seq(arguments[1:]))
            case "abs":
                return new("Abs", arguments[0], self._ansi)
            case "average":
                return self._average(call.type, *arguments)
            case "nonnegative":
                return self._nonnegative(call, arguments[0])
            case "rest":
                return self._exact.rest(arguments[0])
            case "exact double":
                return self._exact.near(arguments[:-1], arguments[-1])
            case _:
                raise AssertionError(f"no Catalyst expression for {operation}")

    def arithmetic(self, operator: str, *operands: JavaObject) -> JavaObject:
        """Add, Subtract, Multiply or Divide under the session's mode."""
        return self._scala.expression(operator, *operands, self._context)

    def _average(self, returned: str, total: JavaObject, count: JavaObject) -> JavaObject:
        """Spark's ``avg`` from a sum and a count, as ``Average.evaluateExpression`` ends.

        Of a group that is not there both are null, and so is the average: Spark may compute it before it
        leaves such a group out, and its division calls a sum that is null an overflow.
        """
        new = self._scala.expression
        zero = self._number("0L")
        count = new("Coalesce", self._scala.seq([self.cast_to(count, "bigint"), zero]))
        if decimal_type(returned):
            divisor = self._cast(count, "decimal(20,0)")
            quotient = new(
                "DecimalDivideWithOverflowCheck",
                total,
                divisor,
                self.type(returned),
                None,
                not self._ansi,
            )
        else:
            parts = (self._cast(total, returned), self._cast(count, returned))
            quotient = self.arithmetic("Divide", *parts)
        empty = new("EqualTo", count, zero)
        return new("If", empty, new("Literal", None, self.type(returned)), quotient)

    def _nonnegative(self, call: Call, value: JavaObject) -> JavaObject:
        """The value, or an error: a count below zero means that a delta was not one."""
        zero = self.cast_to(self._number("0"), call.type)
        negative = self._scala.expression("LessThan", value, zero)
        message = "a count became negative: the changes do not fit the rows they were applied to"
        failure = self.failure("USER_RAISED_EXCEPTION", {"errorMessage": message}, call.type)
        return self._scala.expression("If", negative, failure, value)

    def failure(self, error: str, parameters: Mapping[str, str], returned: str) -> JavaObject:
        """An expression of a type that raises one of Spark's errors when it is evaluated."""
        texts = [Literal(t, "string", t) for pair in parameters.items() for t in pair]
        entries = self._scala.seq([self.literal(text) for text in texts])
        given = self._scala.expression("CreateMap", entries, True)
        if not parameters:
            given = self._cast(given, "map<string,string>")
        name = self.literal(Literal(error, "string", error))
        return self._scala.expression("RaiseError", name, given, self.type(returned))

    def aggregate(self, call: AggregateCall, columns: References) -> JavaObject:
        """An aggregate function with DISTINCT and FILTER, as an expression."""
        arguments = [self.expression(a, columns) for a in call.arguments]
        only = None if call.filter is None else self.expression(call.filter, columns)
        if call.function == "single_value":
            return self._single_value(call, arguments[0], only)
        if call.function == "wide_sum":
            return self._wide_sum(arguments[:-1], arguments[-1])
        if call.sums_doubles:
            return self._double_sum(call, self.cast_to(arguments[0], "double"), only)
        if call.averages_integers:
            return self._integer_average(call, arguments[0], only)
        if call.template is not None:
            function: JavaObject = self._rebound(call.template, arguments)
            return function.toAggregateExpression(call.distinct, self._scala.some(only))
        made = self._aggregate_function(call.function, arguments)
        whole = made.toAggregateExpression(call.distinct, self._scala.some(only))
        return self.cast_to(whole, call.type)

    def order(self, keys: Iterable[Ordering], columns: References) -> list[JavaObject]:
        """The keys of an ORDER BY."""
        kinds, nothing = CATALYST + "expressions.", self._scala.seq([])
        return [
            self._scala.expression(
                "SortOrder",
                self.expression(key.expression, columns),
                self._scala.singleton(kinds + ("Descending" if key.descending else "Ascending")),
                self._scala.singleton(kinds + ("NullsLast" if key.nulls_last else "NullsFirst")),
                nothing,
            )
            for key in keys
        ]

    def window(
        self,
        call: WindowCall,
        partition: list[JavaObject],
        order: list[JavaObject],
        columns: References,
    ) -> JavaObject:
        """A window function over its partition, order and frame."""
        arguments = [self.expression(a, columns) for a in call.arguments]
        function: JavaObject = call.template
        if function is None:
            made = self._aggregate_function(call.function, arguments)
            function = made.toAggregateExpression(False, self._scala.none)
        elif function.nodeName() == "AggregateExpression":
            called = self._rebound(function.aggregateFunction(), arguments)
            function = called.toAggregateExpression(False, self._scala.none)
        else:
            function = self._rebound(function, arguments)
        scala = self._scala
        over = scala.expression(
            "WindowSpecDefinition", scala.seq(partition), scala.seq(order), self._frame(call.frame)
        )
        return scala.expression("WindowExpression", function, over)

    def _frame(self, frame: Frame) -> JavaObject:
        """The frame as it was written, or ROWS from the first row to the current or the last one."""
        if frame.template is not None:
            return frame.template
        assert frame.by_rows
        assert frame.start is None
        ends = {0: "CurrentRow", None: "UnboundedFollowing"}
        kinds = [
            CATALYST + "expressions." + k
            for k in ("RowFrame", "UnboundedPreceding", ends[frame.end])
        ]
        return self._scala.expression("SpecifiedWindowFrame", *map(self._scala.singleton, kinds))

    def _aggregate_function(self, function: str, arguments: list[JavaObject]) -> JavaObject:
        package = "aggregate."
        if function == "count":
            counted = arguments or [self._number("1")]
            return self._scala.expression(package + "Count", self._scala.seq(counted))
        if function == "sum":
            return self._scala.expression(package + "Sum", arguments[0], self._context)
        if function == "avg":
            return self._scala.expression(package + "Average", arguments[0], self._mode)
        assert function in AGGREGATES, f"{function} has no template"
        return self._scala.expression(package + AGGREGATES[function], arguments[0])

    def _double_sum(
        self, call: AggregateCall, value: JavaObject, only: JavaObject | None
    ) -> JavaObject:
        """SUM or AVG of doubles from the rows: of all values, or of each value once.

        A value that is to count once is collected whole, as if it had no pieces.
        """
        exact, new = self._exact, self._scala.expression
        finite = new("If", exact.is_finite(value), value, self._null("double"))
        infinite = new("If", exact.is_finite(value), self._null("double"), value)
        beyond = self._made("sum", infinite, only)
        if call.distinct:
            rests = self._collected("CollectSet", finite, only)
            limbs = [self._number("0L")] * len(WEIGHTS)
        else:
            rests = self._collected("CollectList", self._nonzero(exact.rest(finite)), only)
            limbs = [
                self._made("sum", exact.piece(finite, place), only) for place in range(len(WEIGHTS))
            ]
        present = self._made("count", value, only, call.distinct)
        zero = self._number("0L")
        limbs = [new("Coalesce", self._scala.seq([limb, zero])) for limb in limbs]
        total = exact.value(SumParts(limbs, present, rests, beyond))
        return total if call.function == "sum" else self._average("double", total, present)

    def _wide_sum(self, pieces: list[JavaObject], rest: JavaObject) -> JavaObject:
        """The same from columns that hold the pieces and the rest; null if no rest is another than 0."""
        exact, new = self._exact, self._scala.expression
        finite = new("If", exact.is_finite(rest), rest, self._null("double"))
        infinite = new("If", exact.is_finite(rest), self._null("double"), rest)
        beyond = self._made("sum", infinite, None)
        rests = self._collected("CollectList", self._nonzero(finite), None)
        limbs = [self._made("sum", piece, None) for piece in pieces]
        none = new("EqualTo", new("Size", rests, False), self._number("0"))
        far = new("If", none, self._null("double"), exact.far(limbs, rests))
        return new("Coalesce", self._scala.seq([beyond, far]))

    def _integer_average(
        self, call: AggregateCall, value: JavaObject, only: JavaObject | None
    ) -> JavaObject:
        """AVG of integers by their exact sum; Spark adds them up as DOUBLE, in the order that they come."""
        wide = self._cast(value, "decimal(28,0)")
        total = self._made("sum", wide, only, call.distinct)
        count = self._made("count", value, only, call.distinct)
        return self._average(call.type, total, count)

    def _made(
        self, function: str, value: JavaObject, only: JavaObject | None, distinct: bool = False
    ) -> JavaObject:
        made = self._aggregate_function(function, [value])
        return made.toAggregateExpression(distinct, self._scala.some(only))

    def _collected(self, kind: str, value: JavaObject, only: JavaObject | None) -> JavaObject:
        """The values that are not null, as an array."""
        made = self._scala.expression(f"aggregate.{kind}", value)
        return made.toAggregateExpression(False, self._scala.some(only))

    def _nonzero(self, value: JavaObject) -> JavaObject:
        is_zero = self._scala.expression("EqualTo", value, self._exact.double(0.0))
        return self._scala.expression("If", is_zero, self._null("double"), value)

    def _null(self, kind: str) -> JavaObject:
        return self._scala.expression("Literal", None, self.type(kind))

    def _single_value(
        self, call: AggregateCall, argument: JavaObject, only: JavaObject | None
    ) -> JavaObject:
        """The value of a scalar subquery, with the error that Spark raises over several rows."""
        new, some = self._scala.expression, self._scala.some(only)
        rows = self._aggregate_function("count", []).toAggregateExpression(False, some)
        first = new("aggregate.First", argument, False).toAggregateExpression(False, some)
        several = new("GreaterThan", rows, self._number("1L"))
        failure = self.failure("SCALAR_SUBQUERY_TOO_MANY_ROWS", {}, call.type)
        return new("If", several, failure, first)


def _is_on(spark: SparkSession, setting: str) -> bool:
    return str(spark.conf.get(setting, "true")).lower() == "true"
