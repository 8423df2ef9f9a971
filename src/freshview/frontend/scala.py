"""The driver's JVM as the front end and the lowering need it: few calls, because each is a round trip.

Catalyst is reached through py4j, where a call takes 0.1 to 0.3 ms and looking up a class by its
dotted name takes one call per part. Classes, singletons and empty collections are therefore found
once per JVM and kept here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JavaObject = Any
"""An object in the JVM; py4j knows its methods at run time only."""

CATALYST = "org.apache.spark.sql.catalyst."
EXPRESSIONS = CATALYST + "expressions."
LOGICAL = CATALYST + "plans.logical."


class Scala:
    """Scala's collections and Spark's classes in one JVM."""

    def __init__(self, jvm: JavaObject) -> None:
        self.jvm = jvm
        self._loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._classes: dict[str, JavaObject] = {}
        self._objects: dict[str, JavaObject] = {}
        self._nil = self.singleton("scala.collection.immutable.Nil")
        self.none = self.singleton("scala.None")

    def type(self, name: str) -> JavaObject:
        """A class by its full name, to call its constructor or its static methods."""
        found = self._classes.get(name)
        if found is None:
            found = self.jvm
            for part in name.split("."):
                found = getattr(found, part)
            self._classes[name] = found
        return found

    def singleton(self, name: str) -> JavaObject:
        """A Scala ``object`` by its full name without the final ``$``."""
        found = self._objects.get(name)
        if found is None:
            kind = self.jvm.java.lang.Class.forName(name + "$", True, self._loader)
            found = self._objects[name] = kind.getField("MODULE$").get(None)
        return found

    def new(self, name: str, *arguments: object) -> JavaObject:
        """A new instance of a class."""
        return self.type(name)(*arguments)

    def expression(self, name: str, *arguments: object) -> JavaObject:
        """A Catalyst expression by the simple name of its class."""
        return self.type(EXPRESSIONS + name)(*arguments)

    def node(self, name: str, *arguments: object) -> JavaObject:
        """A Catalyst logical plan node by the simple name of its class."""
        return self.type(LOGICAL + name)(*arguments)

    def seq(self, values: Sequence[object]) -> JavaObject:
        """An immutable Scala list: one call per element."""
        found = self._nil
        for value in reversed(values):
            found = getattr(found, "$colon$colon")(value)
        return found

    def some(self, value: JavaObject | None) -> JavaObject:
        """``Some(value)``, or ``None`` for None."""
        return self.none if value is None else self.type("scala.Some")(value)

    def map(self, pairs: Iterable[tuple[object, object]]) -> JavaObject:
        """An immutable Scala map. It is also a PartialFunction, which ``transform`` accepts."""
        collected = self.type("java.util.HashMap")()
        for key, value in pairs:
            collected.put(key, value)
        return self.type("org.apache.spark.api.python.PythonUtils").toScalaMap(collected)


def alias(
    scala: Scala, value: JavaObject, name: str, identity: JavaObject | None = None
) -> JavaObject:
    """A Catalyst expression under a name, with an id of its own or a given one, and no metadata."""
    fresh = scala.singleton(EXPRESSIONS + "NamedExpression")
    return scala.expression(
        "Alias",
        value,
        name,
        fresh.newExprId() if identity is None else identity,
        scala.seq([]),
        scala.some(scala.singleton("org.apache.spark.sql.types.Metadata").empty()),
        scala.seq([]),
    )


def items(seq: JavaObject) -> list[JavaObject]:
    """The elements of a Scala sequence."""
    return [seq.apply(position) for position in range(seq.size())]


def found_in(expression: JavaObject, pattern: JavaObject, kinds: Set[str]) -> Iterator[JavaObject]:
    """The expressions of some kinds in an expression; parts without their pattern are not entered."""
    if not expression.containsPattern(pattern):
        return
    if expression.nodeName() in kinds:
        yield expression
    for child in items(expression.children()):
        yield from found_in(child, pattern, kinds)


_known: WeakKeyDictionary[Any, Scala] = WeakKeyDictionary()


def scala_of(spark: SparkSession) -> Scala:
    """The JVM behind a session, with what was already looked up in it."""
    jvm = spark._jvm  # noqa: SLF001 - PySpark has no public way to its JVM
    found = _known.get(jvm)
    if found is None:
        found = _known[jvm] = Scala(jvm)
    return found


def java_session(spark: SparkSession) -> JavaObject:
    """The session's own object in the JVM."""
    return spark._jsparkSession  # noqa: SLF001 - see scala_of


def java_context(spark: SparkSession) -> JavaObject:
    """The JavaSparkContext of a session."""
    return spark._jsc  # noqa: SLF001 - see scala_of


def analyzed_plan(df: DataFrame) -> JavaObject:
    """Catalyst's analyzed logical plan of a DataFrame."""
    return df._jdf.queryExecution().analyzed()  # noqa: SLF001 - see scala_of
