"""The rows of a query in values that Python, JSON and a table have, whatever their types in Spark.

Numbers, texts, booleans and bytes come to Python as they are. Of everything else Spark makes the
text: Python has no date before the year 1, no interval of months, and no list as a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from freshview.cli.answer import json_text, plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_AS_THEY_ARE = frozenset((*_NUMBERS, "boolean", "string", "char", "varchar", "binary", "void"))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows by position: two columns may have one name."""

    columns: tuple[str, ...]
    rows: list[list[Any]]
    truncated: bool

    def answer(self) -> dict[str, Any]:
        """The rows as objects, under the names that `distinct` gives."""
        names = distinct(self.columns)
        rows = [dict(zip(names, row, strict=True)) for row in self.rows]
        return {"columns": names, "rows": rows, "truncated": self.truncated}


def rows_of(frame: DataFrame, limit: int, *, times_with_t: bool) -> Rows:
    """The first rows of a query; `times_with_t` writes 2020-01-31T12:00:00, as JSON has it."""
    types = [field.dataType for field in frame.schema.fields]
    columns = [f"c{position}" for position in range(len(types))]
    wanted = [_sql(column, kind, times_with_t) for column, kind in zip(columns, types, strict=True)]
    known = frame if wanted == columns else frame.toDF(*columns).selectExpr(*wanted)
    taken = known.take(limit + 1)
    rows = [[_value(*each) for each in zip(row, types, strict=True)] for row in taken[:limit]]
    return Rows(tuple(frame.columns), rows, len(taken) > limit)


def distinct(names: Sequence[str]) -> list[str]:
    """The names, and behind one that occurred before the first free number: a, a_2, a_3."""
    given = frozenset(names)
    found: dict[str, None] = {}
    for name in names:
        number, free = 1, name
        while free in found or (number > 1 and free in given):
            number += 1
            free = f"{name}_{number}"
        found[free] = None
    return list(found)


def cell(value: object) -> str:
    """A value as it stands in a table."""
    if value is None:
        return "NULL"
    if isinstance(value, list | dict):
        return json_text(value, ascii_only=False)
    return str(plain(value) if isinstance(value, bytes | bytearray) else value)


def _sql(path: str, kind: DataType, times_with_t: bool, depth: int = 0) -> str:
    """The expression that gives Python the value at a path; the path itself if it can have it."""
    each: Any = kind
    name, item = kind.typeName(), f"x{depth}"

    def inner(path: str, kind: DataType) -> str:
        return _sql(path, kind, times_with_t, depth + 1)

    if name in _AS_THEY_ARE:
        return path
    if name == "array":
        element = inner(item, each.elementType)
        return path if element == item else f"transform({path}, {item} -> {element})"
    if name == "map":
        key, value = _text(f"{item}.key", each.keyType), inner(f"{item}.value", each.valueType)
        return f"transform(map_entries({path}), {item} -> struct({key}, {value}))"
    if name == "struct":
        paths = [f"{path}.`{field.name.replace('`', '``')}`" for field in each.fields]
        values = [inner(*one) for one in zip(paths, (f.dataType for f in each.fields), strict=True)]
        if values == paths:
            return path
        if _unambiguous(each.names):
            # The struct of the fields of NULL would be a struct, of nothing but NULL.
            return f"IF({path} IS NULL, NULL, struct({', '.join(values)}))"
    text = _text(path, kind)
    return f"replace({text}, ' ', 'T')" if times_with_t and name.startswith("timestamp") else text


def _text(path: str, kind: DataType) -> str:
    return f"lower(hex({path}))" if kind.typeName() == "binary" else f"CAST({path} AS STRING)"


def _unambiguous(names: Iterable[str]) -> bool:
    """Whether SQL can name each field of a struct; it knows no other way to one."""
    folded = [name.casefold() for name in names]
    return len(folded) == len(set(folded))


def _value(found: Any, kind: DataType) -> Any:
    """A value that came by `_sql`, with structs and maps as dictionaries of text keys."""
    each: Any = kind
    name = kind.typeName()
    if found is None or isinstance(found, str):
        return found
    if name == "array":
        return [_value(item, each.elementType) for item in found]
    if name == "map":
        values = [_value(value, each.valueType) for _, value in found]
        return dict(zip(distinct([key for key, _ in found]), values, strict=True))
    if name == "struct":
        fields = zip(found, (field.dataType for field in each.fields), strict=True)
        return dict(zip(distinct(each.names), [_value(*field) for field in fields], strict=True))
    return found
