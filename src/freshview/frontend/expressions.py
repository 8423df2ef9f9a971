"""Catalyst expressions to ours: what we understand becomes a Call, anything else stays Spark's.

The arguments of an imported expression are exactly the children of its Catalyst expression, in
order, so that the lowering can put new ones in with ``template.withNewChildren``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from freshview.algebra.clock import DAY, LOCAL, NOW, clock_table, clock_type
from freshview.algebra.expressions import Call, Column, Expression, Literal, Opaque
from freshview.algebra.relations import Relation
from freshview.algebra.schema import INTEGRAL_TYPES, Attribute, decimal_type
from freshview.errors import UnsupportedExpression
from freshview.frontend.scala import CATALYST, JavaObject, Scala, items

PREDICATES = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "And": "and",
    "Or": "or",
    "Not": "not",
    "IsNull": "is null",
    "IsNotNull": "is not null",
    "In": "in",
}
VALUES = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Coalesce": "coalesce",
    "If": "if",
    "Cast": "cast",
    "CreateArray": "array",
    "Explode": "explode",
}
NUMERIC_ONLY = frozenset({"+", "-", "*"})
WITHOUT_VALUE = frozenset({"WindowSpecDefinition", "SpecifiedWindowFrame"})
ORDERED_BY_WINDOW = frozenset({"First", "Last", "NthValue", "CollectList", "CollectSet"})
"""Catalyst calls these non-deterministic because they depend on the order of rows."""
TYPED_CHILDREN: dict[str, Callable[[JavaObject], str]] = {
    "WindowExpression": lambda _: "over ",
    "WindowSpecDefinition": lambda source: f"{source.partitionSpec().size()} by ",
    "AggregateExpression": lambda source: "distinct " if source.isDistinct() else "",
}
"""Expressions that take no placeholders for their children, and what else identifies them."""
EPOCH = dt.date(1970, 1, 1)
CLOCK_WORDS = frozenset({"now", "today", "tomorrow", "yesterday"})
"""Texts that Spark reads as the current moment or day; a time zone may follow."""
SPECIAL_WORDS = CLOCK_WORDS | {"epoch"}
"""Texts that Spark reads as a moment or day."""
_LETTERS = re.compile("[a-z]+")
_TIME_ALONE = re.compile(r"T\d|\d+:")
TRIMMED = "".join(map(chr, range(0x21))) + "\x7f"
"""What Spark cuts off such a text at both ends."""
CLOCK_CAST = "ClockCast"
CLOCK_FUNCTIONS = frozenset({"CurrentDate", "CurrentTimestamp", "Now", "LocalTimestamp"})
"""The functions of the clock that a filter may ask."""

Rewrite = Callable[[Relation], Relation]


@dataclass(slots=True)
class Scope:
    """What an expression may read, and what reading it needs to be joined below it.

    ``attributes`` maps Catalyst's expression ids. ``attached`` collects the joins that subqueries
    in the expression turned into. In the result list of an aggregation ``aggregate`` turns an
    aggregate function into the column that holds its value.
    """

    attributes: dict[int, Attribute]
    attached: list[Rewrite] = field(default_factory=list)
    aggregate: Callable[[JavaObject], Expression] | None = None

    def over(self, relation: Relation) -> Relation:
        """The relation with everything joined that the expressions of this scope read."""
        for attach in self.attached:
            relation = attach(relation)
        return relation


SubqueryImport = Callable[[JavaObject, Scope], Expression]
"""Turns a subquery, or a plan that is tested for rows, into a column joined below."""


class ExpressionImport:
    """Imports the expressions of one definition."""

    def __init__(self, scala: Scala, subquery: SubqueryImport, exists: SubqueryImport) -> None:
        self._scala = scala
        self._subquery = subquery
        self._exists = exists
        self._placeholders: list[JavaObject] = []
        self._variables: dict[str, int] = {}

    def expression(self, source: JavaObject, scope: Scope) -> Expression:
        """One Catalyst expression with everything below it."""
        kind = source.nodeName()
        match kind:
            case "AttributeReference":
                return self._column(source, scope)
            case "Literal":
                return literal(source)
            case "Alias":
                return self.expression(source.child(), scope)
            case "TypeOf":  # a constant, though Spark leaves a column in it where it groups by one
                create = self._scala.singleton(CATALYST + "expressions.Literal").create
                return literal(create(source.child().dataType().catalogString(), source.dataType()))
            case "ScalarSubquery":
                return self._subquery(source, scope)
            case "IsNotNull" if (tested := _tested_for_rows(source)) is not None:
                return self._exists(tested, scope)
            case "IsNull" if (tested := _tested_for_rows(source)) is not None:
                return Call("not", (self._exists(tested, scope),), "boolean")
            case "AggregateExpression" if scope.aggregate is not None:
                return scope.aggregate(source)
            case "OuterReference" | "InSubquery" | "ListQuery" | "LateralSubquery":
                raise UnsupportedExpression(
                    expression=source.sql(),
                    reason="Spark's rules could not turn this correlated subquery into a join",
                )
        if kind in CLOCK_FUNCTIONS:
            return clock_function(source)
        children = items(source.children())
        arguments = tuple(self.expression(child, scope) for child in children)
        if kind in PREDICATES:
            return Call(PREDICATES[kind], arguments, "boolean", source)
        returned = "void" if kind in WITHOUT_VALUE else type_name(source.dataType())
        if kind == "Cast" and is_of_the_day(children[0], arguments[0], returned):
            return Opaque(f"{CLOCK_CAST}({source.sql()})", arguments, returned, True, source)
        if kind in VALUES and self._is_understood(VALUES[kind], returned, source):
            return Call(VALUES[kind], arguments, returned, source)
        text = self.text(kind, source, len(children))
        steady = is_steady(kind, source, children)
        return Opaque(text, arguments, returned, steady, source)

    def _column(self, source: JavaObject, scope: Scope) -> Column:
        attribute = scope.attributes.get(source.exprId().id())
        if attribute is None:
            raise UnsupportedExpression(
                expression=source.sql(),
                reason="it reads a column that the operator below it does not have",
            )
        return Column(attribute)

    @staticmethod
    def _is_understood(operation: str, returned: str, source: JavaObject) -> bool:
        """Arithmetic on intervals and the try_ variants have another meaning than ours."""
        if operation == "cast":
            return str(source.evalMode().toString()) != "TRY"
        if operation not in NUMERIC_ONLY:
            return True
        numeric = (
            returned in INTEGRAL_TYPES or returned in ("float", "double") or decimal_type(returned)
        )
        return bool(numeric) and source.evalMode().toString() != "TRY"

    def text(self, kind: str, source: JavaObject, arity: int) -> str:
        """What identifies an expression beside its arguments: its class and its other parts.

        ``sql()`` would not do, because it leaves out options, schemas and modes of evaluation.
        """
        if kind in ("PythonUDF", "PythonUDAF"):
            command = source.func().command().hashCode()
            return f"{source.name()}[{source.evalType()}:{command & 0xFFFFFFFF:08x}]"
        if kind == "NamedLambdaVariable":
            number = self._variables.setdefault(source.exprId().toString(), len(self._variables))
            return f"lambda #{number + 1}"  # PySpark counts on in the names of its variables
        if kind in TYPED_CHILDREN:
            places = ", ".join(f"${position}" for position in range(arity))
            return f"{kind}({TYPED_CHILDREN[kind](source)}{places})"
        marked = source
        if arity:
            marked = source.withNewChildren(self._scala.seq(self._placeholders_for(arity)))
        parts = re.sub(r"(\$\d+)#\d+", r"\1", marked.productIterator().mkString(", "))
        return f"{kind}({_without_ids(parts)})"

    def _placeholders_for(self, arity: int) -> list[JavaObject]:
        """Attributes named ``$0``, ``$1``, … that stand for the arguments of an expression."""
        new = self._scala.expression
        while len(self._placeholders) < arity:
            name = f"${len(self._placeholders)}"
            void = self._scala.singleton("org.apache.spark.sql.types.NullType")
            fresh = self._scala.singleton(CATALYST + "expressions.NamedExpression").newExprId()
            nothing = self._scala.singleton("org.apache.spark.sql.types.Metadata").empty()
            made = new("AttributeReference", name, void, True, nothing, fresh, self._scala.seq([]))
            self._placeholders.append(made)
        return self._placeholders[:arity]


def clock_function(source: JavaObject) -> Opaque:
    """A function of the clock under the name of the clock, with the zone that decides its value."""
    kind = source.nodeName()
    if kind in ("CurrentTimestamp", "Now"):
        table = clock_table(NOW)
    else:
        table = clock_table(DAY if kind == "CurrentDate" else LOCAL, str(source.timeZoneId().get()))
    return Opaque(table, (), clock_type(table), True, source)


def special_word(child: JavaObject, argument: Expression, target: str) -> str | None:
    """The word, such as 'today', that a cast reads as a day or a moment of its own.

    Spark does so for constants alone, and these may be the result of functions. A constant that
    comes from a query below is none: Spark reads such words before it puts constants in their places.
    """
    if not target.startswith(("date", "timestamp")) or not argument.type.startswith("string"):
        return None
    written = str(_constant(child)).strip(TRIMMED).lower()
    word = _LETTERS.match(written)
    return word.group() if word and word.group() in SPECIAL_WORDS else None


def is_of_the_day(child: JavaObject, argument: Expression, target: str) -> bool:
    """Whether a cast of a constant asks the clock: of 'today', or of '10:00:00', which has no date."""
    if special_word(child, argument, target) in CLOCK_WORDS:
        return True
    is_text = argument.type.startswith("string") and target == "timestamp"
    return is_text and bool(_TIME_ALONE.match(str(_constant(child)).strip(TRIMMED)))


def _constant(source: JavaObject) -> object:
    """The value of an expression without columns, None if it has columns or no value."""
    if not source.foldable():
        return None
    try:
        return source.eval(None)
    except (Py4JJavaError, PySparkException):  # as it will where the view is computed
        return None


def _draws_a_start(source: JavaObject, children: list[JavaObject]) -> bool:
    """Whether this is an encryption that begins with random bytes, which Catalyst does not tell."""
    if source.functionName() != "aesEncrypt":
        return False
    mode, start = _constant(children[2]), _constant(children[4])
    return str(mode).upper() != "ECB" and not start


def is_steady(kind: str, source: JavaObject, children: list[JavaObject]) -> bool:
    """Whether this expression itself is deterministic; its arguments answer for themselves."""
    if kind == "StaticInvoke" and _draws_a_start(source, children):
        return False
    if kind in ORDERED_BY_WINDOW or source.deterministic():
        return True
    return not all(child.deterministic() for child in children)


def type_name(data_type: JavaObject) -> str:
    """``bigint``, ``decimal(12,2)``, ``array<string>``: Spark's name of a type."""
    return str(data_type.catalogString())


def literal(source: JavaObject) -> Literal:
    """A constant, with its Python value where Python has one of the same meaning."""
    declared = type_name(source.dataType())
    value = source.value()
    text = str(source.sql())
    return Literal(_python_value(value, declared, text), declared, text, source)


def _python_value(value: object, declared: str, text: str) -> object:
    if value is None or declared == "boolean" or declared in INTEGRAL_TYPES or declared == "double":
        return value
    if declared == "string":
        return str(value)
    if decimal_type(declared):
        return Decimal(str(value))
    if declared == "date" and isinstance(value, int):
        try:
            return EPOCH + dt.timedelta(days=value)
        except OverflowError:
            return text
    return text


def _tested_for_rows(source: JavaObject) -> JavaObject | None:
    """The plan X of ``(SELECT 1 FROM X LIMIT 1) IS [NOT] NULL``, as Spark writes EXISTS."""
    subquery = source.child()
    if subquery.nodeName() != "ScalarSubquery":
        return None
    plan = subquery.plan()
    for expected in ("GlobalLimit", "LocalLimit"):
        if plan.nodeName() != expected or str(plan.limitExpr().sql()) != "1":
            return None
        plan = plan.child()
    if plan.nodeName() != "Project" or str(plan.projectList().head().sql()) != "1 AS col":
        return None
    return plan.child()


def _without_ids(text: str) -> str:
    """Catalyst's expression ids differ in each session: number them in order of appearance."""
    seen: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return seen.setdefault(match[1], f"#{len(seen) + 1}")

    return re.sub(r"(?:#|ExprId\()(\d+)(?:L|,[0-9a-f-]{36}\))?", number, text)
