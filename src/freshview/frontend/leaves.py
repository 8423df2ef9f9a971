"""The leaves of a plan: stand-ins of tables, constant rows, and what may not be read at all."""

from __future__ import annotations

import json
import re

from freshview.algebra.expressions import Expression, Literal
from freshview.algebra.relations import Scan
from freshview.algebra.schema import INTEGRAL_TYPES, Attribute, Numbering
from freshview.errors import (
    FreshviewError,
    TooManyConstants,
    UnregisteredSource,
    UnsupportedOperator,
)
from freshview.frontend.expressions import literal, type_name
from freshview.frontend.scala import JavaObject, Scala, items

TABLE_MARK = "freshview.table"
COLUMN_MARK = "freshview.column"
TYPE_MARK = "freshview.type"
"""Keys in the metadata of a stand-in's columns; the analyzer keeps them when it renumbers."""

CONSTANT_ROWS_MAX = 10_000
SEPARATOR = "\x01"

REASONS = {
    "Sample": "which rows a sample takes is decided anew at each evaluation",
    "Tail": "tail() is an action on the rows in their order, not a relation",
    **dict.fromkeys(
        (
            *("MapInPandas", "MapInArrow", "ScriptTransformation"),
            *("FlatMapGroupsInPandas", "FlatMapGroupsInArrow"),
            *("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"),
        ),
        "a program over whole partitions or groups may do anything with them; a UDF or a pandas aggregate"
        " does not",
    ),
    "EventTimeWatermark": "a watermark belongs to a stream, a view is over tables",
    "CollectMetrics": "observe() reports on each evaluation, and a refresh evaluates only changes",
    "Join LeftSingle": "the correlated subquery may give several rows; aggregate or limit it to one",
}


def stand_in_scan(
    plan: JavaObject, numbering: Numbering
) -> tuple[Scan, tuple[tuple[int, Attribute], ...]]:
    """The table that an RDD-backed leaf stands for, with Catalyst's id of each column."""
    fields = json.loads(plan.schema().json())["fields"]
    table = _table_of(fields, plan)
    columns: list[tuple[int, Attribute]] = []
    for field, text in zip(fields, plan.output().mkString(SEPARATOR).split(SEPARATOR), strict=True):
        marks = field["metadata"]
        identifier = re.search(r"#(\d+)L?$", text)
        assert identifier is not None, text
        attribute = numbering.attribute(marks[COLUMN_MARK], marks[TYPE_MARK])
        columns.append((int(identifier[1]), attribute))
    return Scan(table, tuple(attribute for _, attribute in columns)), tuple(columns)


def _table_of(fields: list[dict[str, dict[str, str]]], plan: JavaObject) -> str:
    tables = {field["metadata"].get(TABLE_MARK) for field in fields}
    table = tables.pop() if len(tables) == 1 else None
    if table is None:
        raise UnregisteredSource(source=_short(plan))
    return table


def local_rows(scala: Scala, plan: JavaObject) -> tuple[tuple[Expression, ...], ...]:
    """The rows of a LocalRelation as literals."""
    data = plan.data()
    count = data.size()
    if count > CONSTANT_ROWS_MAX:
        raise TooManyConstants(count=count, limit=CONSTANT_ROWS_MAX)
    types = [attribute.dataType() for attribute in items(plan.output())]
    names = [type_name(each) for each in types]
    return tuple(
        tuple(
            _constant(scala, row.get(position, each), each, names[position])
            for position, each in enumerate(types)
        )
        for row in items(data)
    )


def range_rows(plan: JavaObject) -> tuple[tuple[Expression, ...], ...]:
    """The rows of ``range(start, end, step)`` as literals."""
    numbers = range(plan.start(), plan.end(), plan.step())
    if len(numbers) > CONSTANT_ROWS_MAX:
        raise TooManyConstants(count=len(numbers), limit=CONSTANT_ROWS_MAX)
    return tuple((Literal(number, "bigint", str(number)),) for number in numbers)


def _constant(scala: Scala, value: object, data_type: JavaObject, name: str) -> Literal:
    """One value of a row. Spark's internal numbers arrive as Python's, its objects as they are."""
    if isinstance(value, bool):
        return Literal(value, name, str(value).lower())
    if isinstance(value, int) and name in INTEGRAL_TYPES:
        return Literal(value, name, str(value))
    if isinstance(value, float):
        return Literal(value, name, repr(value))
    if isinstance(value, int):
        return literal(internal_literal(scala, value, data_type, name))
    return literal(scala.expression("Literal", value, data_type))


def internal_literal(scala: Scala, value: int, data_type: JavaObject, name: str) -> JavaObject:
    """A literal of a type that Spark keeps as an integer: dates, times and intervals.

    py4j sends a small number as a 32-bit one, so what Spark keeps in 64 bits goes by Java's types.
    """
    if name == "date" or name.startswith(("interval year", "interval month")):
        return scala.expression("Literal", value, data_type)
    seconds, micros = divmod(value, 1_000_000)
    time = scala.jvm.java.time
    if name == "timestamp":
        moment = time.Instant.ofEpochSecond(seconds, micros * 1000)
    elif name == "timestamp_ntz":
        moment = time.LocalDateTime.ofEpochSecond(seconds, micros * 1000, time.ZoneOffset.UTC)
    elif name.startswith("time"):
        moment = time.LocalTime.ofNanoOfDay(value)
    else:
        moment = time.Duration.ofSeconds(seconds, micros * 1000)
    return scala.singleton("org.apache.spark.sql.catalyst.expressions.Literal").create(
        moment, data_type
    )


def refused(kind: str, plan: JavaObject) -> FreshviewError:
    """Why a node cannot be part of a view: an unknown source, or an operator without a rule."""
    if plan.children().isEmpty():
        return UnregisteredSource(source=_short(plan))
    reason = REASONS.get(kind, "freshview has no algebra for it")
    return UnsupportedOperator(operator=kind, reason=reason)


def _short(plan: JavaObject) -> str:
    """One line that lets people recognise a leaf."""
    text = str(plan.simpleString(8))
    return text if len(text) <= 120 else text[:117] + "..."
