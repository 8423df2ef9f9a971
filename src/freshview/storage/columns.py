"""Columns of a Delta table as its data files hold them.

A data file may lack columns that were added later, may call them by physical names (column mapping),
may hold older spellings of the same type (INT96 or zone-less timestamps, views, other element names),
and never holds partition columns. `Column` knows how to turn what is in a file into what the table
shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from freshview.errors import ColumnMissing, HistoryLost
from freshview.storage.interface import TableState

_PHYSICAL = "delta.columnMapping.physicalName"
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_VARCHAR = re.compile(r"\bvarchar\(\d+\)")


@dataclass(frozen=True, slots=True)
class Column:
    """One visible column and where its values are."""

    name: str
    physical: str
    spark_type: Any
    """The type in Spark's JSON form, which also carries the physical names of nested fields."""
    arrow_type: pa.DataType
    partition: bool
    padded: str = ""
    """The declared type of a text that is padded when it is read: CHAR(n), also inside of others."""

    @property
    def definition(self) -> str:
        """Equal for two versions of a table exactly when old files still mean the same column."""
        parts = [self.physical, self.spark_type, self.padded, self.partition]
        return json.dumps(parts, sort_keys=True)

    def from_file(self, array: pa.Array) -> pa.Array:
        """The values of a file's array as the table shows them."""
        return _conformed(array, self.spark_type, self.arrow_type)

    def from_engine(self, array: pa.Array) -> pa.Array:
        """The values of the query engine's array, which already has the visible names."""
        return array if array.type == self.arrow_type else array.cast(self.arrow_type)

    def missing(self, length: int) -> pa.Array:
        """The column in a file that is older than it."""
        return pa.nulls(length, self.arrow_type)


def columns_of(state: TableState, names: Sequence[str] | None) -> list[Column]:
    """The named columns of a table (all when None). Raises ColumnMissing."""
    fields = {field["name"]: field for field in json.loads(state.schema_json)["fields"]}
    found = []
    for name in fields if names is None else names:
        if name not in fields:
            raise ColumnMissing(path=state.path, column=name, columns=", ".join(fields))
        field = fields[name]
        found.append(
            Column(
                name,
                field["metadata"].get(_PHYSICAL, name),
                _type_only(field["type"]),
                state.arrow_schema.field(name).type,
                name in state.partition_columns,
                _padded(field["metadata"].get(_DECLARED, "")),
            )
        )
    return found


def comparable_columns(
    old: TableState, new: TableState, names: Sequence[str] | None
) -> list[Column]:
    """The named columns, once it is sure that both versions mean the same by them.

    Raises HistoryLost when the table was replaced or one of the columns changed in between.
    """
    reason = None
    if old.table_id != new.table_id:
        reason = "the table was replaced by another one"
    wanted = columns_of(new, names)
    before = {column.name: column.definition for column in columns_of(old, None)}
    for column in wanted:
        if reason is None and before.get(column.name) != column.definition:
            reason = f"column {column.name} changed in between"
    if reason is not None:
        raise HistoryLost(path=new.path, after=old.version, upto=new.version, reason=reason)
    return wanted


def _padded(declared: str) -> str:
    """A declared type as far as it decides what is read: the limit of a VARCHAR does not."""
    shown = _VARCHAR.sub("string", declared)
    return shown if "char(" in shown else ""


def _type_only(kind: Any) -> Any:
    """A Spark type without comments and nullability: what decides how bytes are read."""
    if not isinstance(kind, dict):
        return kind
    if "fields" in kind:
        return {
            "fields": [
                {
                    "name": field["name"],
                    "physical": field["metadata"].get(_PHYSICAL, field["name"]),
                    "type": _type_only(field["type"]),
                }
                for field in kind["fields"]
            ]
        }
    parts = ("elementType", "keyType", "valueType")
    return {part: _type_only(kind[part]) for part in parts if part in kind}


def partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """A partition value from the text that the log keeps; the empty text is NULL as well."""
    if text is None or text == "":
        return pa.scalar(None, kind)
    if pa.types.is_floating(kind):
        # Java's spelling of the special values is also Python's, but not Arrow's.
        return pa.scalar(float(text), kind)
    return pa.scalar(text, pa.string()).cast(kind)


def _conformed(array: pa.Array, spark_type: Any, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if isinstance(spark_type, Mapping):
        if "fields" in spark_type:
            return _conformed_struct(array, spark_type["fields"], target)
        if "elementType" in spark_type:
            return _conformed_list(array, spark_type["elementType"], target)
        return _conformed_map(array, spark_type, target)
    return array.cast(target)


def _conformed_struct(array: pa.Array, fields: Any, target: pa.DataType) -> pa.Array:
    held = {array.type.field(i).name: i for i in range(array.type.num_fields)}
    parts = array.flatten()
    children, targets = [], []
    for index, field in enumerate(fields):
        wanted = target.field(index)
        targets.append(wanted)
        if field["physical"] in held:
            part = parts[held[field["physical"]]]
            children.append(_conformed(part, field["type"], wanted.type))
        else:
            children.append(pa.nulls(len(array), wanted.type))
    if not targets:
        return array.cast(target)
    return pa.StructArray.from_arrays(children, fields=targets, mask=array.is_null())


def _conformed_list(array: pa.Array, element: Any, target: pa.DataType) -> pa.Array:
    array = _unsliced(array)
    values = _conformed(array.values, element, target.value_type)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=mask)


def _conformed_map(array: pa.Array, spark_type: Any, target: pa.DataType) -> pa.Array:
    array = _unsliced(array)
    keys = _conformed(array.keys, spark_type["keyType"], target.key_type)
    items = _conformed(array.items, spark_type["valueType"], target.item_type)
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=mask)


def _unsliced(array: pa.Array) -> pa.Array:
    # from_arrays refuses a mask together with sliced offsets; taking all copies.
    return array.take(pa.array(range(len(array)), pa.int64())) if array.offset else array
