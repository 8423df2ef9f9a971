"""Exact sums of doubles as Catalyst expressions (``algebra/exact_sums.py`` says what they compute).

Pieces are cut off by operations on doubles that do not round: scaling by a power of two, truncation to
a whole number of 60 bits, subtraction of what was cut off. Sums of pieces become one number, and that a
double, by ``java.math.BigInteger``, whose ``doubleValue`` rounds half to even; with rests among them by
``BigDecimal``, which holds every double exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freshview.algebra.exact_sums import (
    ABOVE,
    PAIRS,
    PIECE_BITS,
    PIECE_MASK,
    VALUES_MAX,
    WEIGHTS,
)
from freshview.algebra.expressions import Literal
from freshview.frontend.scala import JavaObject, Scala

if TYPE_CHECKING:
    from freshview.planner.lower_expressions import ExpressionLowering

TOO_MANY = (
    f"a sum of doubles is exact for less than {VALUES_MAX} values in a group, and here are more"
)


@dataclass(frozen=True, slots=True)
class SumParts:
    """Aggregates that tell the exact sum of some doubles."""

    limbs: list[JavaObject]
    present: JavaObject
    rests: JavaObject
    """An array of all rests that are neither 0 nor infinite nor NaN."""
    beyond: JavaObject
    """The sum of what is infinite or NaN, which no order changes; null if there is none."""


class ExactSums:
    """Builds expressions for one session."""

    def __init__(self, expressions: ExpressionLowering, scala: Scala) -> None:
        self._expressions = expressions
        self._scala = scala
        self._new = scala.expression
        forname = scala.jvm.java.lang.Class.forName
        self._integers = forname("java.math.BigInteger")
        self._decimals = forname("java.math.BigDecimal")
        object_type = scala.type("org.apache.spark.sql.types.ObjectType")
        self._integer = object_type(self._integers)
        self._decimal = object_type(self._decimals)

    def piece(self, value: JavaObject, place: int) -> JavaObject:
        """The piece of a value that counts 2^w: half of a pair, whose upper half has the sign."""
        pair, _ = self._cut(value, place // 2)
        if place % 2 == 0:
            return self._new("ShiftRight", pair, self._int(PIECE_BITS))
        return self._new("BitwiseAnd", pair, self._bigint(PIECE_MASK))

    def rest(self, value: JavaObject) -> JavaObject:
        """What no piece holds: 0 for most values."""
        _, left = self._cut(value, len(PAIRS) - 1)
        return self._new("If", self._has_pieces(value), left, value)

    def _cut(self, value: JavaObject, last: int) -> tuple[JavaObject, JavaObject]:
        """The last of some pairs cut off a value, and what is left then."""
        left = self._new("If", self._has_pieces(value), value, self.double(0.0))
        for place, weight in enumerate(PAIRS):
            scaled = self._times(left, 2.0**-weight)
            pair = self._expressions.cast_to(scaled, "bigint")
            whole = self._times(self._expressions.cast_to(pair, "double"), 2.0**weight)
            left = self._expressions.arithmetic("Subtract", left, whole)
            if place == last:
                return pair, left
        raise AssertionError(last)

    def _has_pieces(self, value: JavaObject) -> JavaObject:
        """Spark compares NaN as greater than anything."""
        size = self._new("Abs", value, False)
        return self._new("LessThan", size, self.double(ABOVE))

    def near(self, limbs: list[JavaObject], present: JavaObject) -> JavaObject:
        """The sum of values without rests: Σ limbᵢ·2^wᵢ, rounded once. Raises where sums could wrap."""
        lowest = self.double(2.0 ** WEIGHTS[-1])
        whole = self._call(self._whole(limbs), "doubleValue", self._expressions.type("double"))
        value = self._expressions.arithmetic("Multiply", whole, lowest)
        many = self._new("GreaterThanOrEqual", present, self._bigint(VALUES_MAX))
        failure = self._expressions.failure(
            "USER_RAISED_EXCEPTION", {"errorMessage": TOO_MANY}, "double"
        )
        return self._new("If", many, failure, value)

    def _whole(self, limbs: list[JavaObject]) -> JavaObject:
        """All limbs as one whole number of the lowest weight."""
        parts = [
            self._new(
                "objects.StaticInvoke",
                self._integers,
                self._integer,
                "valueOf",
                self._scala.seq([limb]),
                self._scala.seq([]),
                True,
                True,
                True,
                self._scala.none,
            )
            for limb in limbs
        ]
        whole = parts[0]
        for part in parts[1:]:
            shifted = self._call(whole, "shiftLeft", self._integer, self._int(PIECE_BITS))
            whole = self._call(shifted, "add", self._integer, part)
        return whole

    def far(self, limbs: list[JavaObject], rests: JavaObject) -> JavaObject:
        """The sum of pieces and of rests, all finite, rounded once; an infinity if it is too large."""
        whole = self._made_decimal(self._whole(limbs))
        lowest = self._made_decimal(self.double(2.0 ** WEIGHTS[-1]))
        start = self._call(whole, "multiply", self._decimal, lowest)
        total = self._variable("total", self._decimal)
        one = self._variable("one", self._expressions.type("double"))
        merged = self._call(total, "add", self._decimal, self._made_decimal(one))
        result = self._variable("total", self._decimal)
        finished = self._call(result, "doubleValue", self._expressions.type("double"))
        return self._new(
            "ArrayAggregate",
            rests,
            start,
            self._lambda(merged, total, one),
            self._lambda(finished, result),
        )

    def value(self, parts: SumParts) -> JavaObject:
        """The exact sum from aggregates over the rows; null over no value."""
        new = self._new
        without = new("EqualTo", new("Size", parts.rests, False), self._int(0))
        near, far = self.near(parts.limbs, parts.present), self.far(parts.limbs, parts.rests)
        finite = new("If", without, near, far)
        known = new("Coalesce", self._scala.seq([parts.beyond, finite]))
        none = new("EqualTo", parts.present, self._bigint(0))
        return new("If", none, new("Literal", None, self._expressions.type("double")), known)

    def is_finite(self, value: JavaObject) -> JavaObject:
        size = self._new("Abs", value, False)
        return self._new("LessThan", size, self.double(float("inf")))

    def double(self, value: float) -> JavaObject:
        return self._expressions.literal(Literal(value, "double", repr(value)))

    def _int(self, value: int) -> JavaObject:
        return self._expressions.literal(Literal(value, "int", str(value)))

    def _bigint(self, value: int) -> JavaObject:
        return self._expressions.literal(Literal(value, "bigint", str(value)))

    def _times(self, value: JavaObject, factor: float) -> JavaObject:
        return self._expressions.arithmetic("Multiply", value, self.double(factor))

    def _call(
        self, target: JavaObject, method: str, returned: JavaObject, *arguments: JavaObject
    ) -> JavaObject:
        """A method of a Java object."""
        none = self._scala.seq([])
        given = self._scala.seq(arguments)
        return self._new("objects.Invoke", target, method, returned, given, none, True, True, True)

    def _made_decimal(self, value: JavaObject) -> JavaObject:
        """``new BigDecimal(value)``, which is exact."""
        return self._new(
            "objects.NewInstance",
            self._decimals,
            self._scala.seq([value]),
            self._scala.seq([]),
            True,
            self._decimal,
            self._scala.none,
        )

    def _variable(self, name: str, kind: JavaObject) -> JavaObject:
        """A variable of a lambda; each occurrence of a function has its own."""
        holder = self._scala.new("java.util.concurrent.atomic.AtomicReference")
        fresh = self._expressions.new_id()
        return self._new("NamedLambdaVariable", name, kind, True, fresh, holder)

    def _lambda(self, body: JavaObject, *variables: JavaObject) -> JavaObject:
        return self._new("LambdaFunction", body, self._scala.seq(variables), False)
