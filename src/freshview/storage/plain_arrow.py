"""Plain Arrow types: what both libraries, PySpark's import and the tests agree on.

The native reader answers with `string_view` and `binary_view`, which PySpark's Arrow import refuses;
pyarrow's own files may come as dictionaries or large types. Inside freshview a table's Arrow schema
has one form: string, binary, timestamp[us, tz=UTC] for TIMESTAMP, timestamp[us] for TIMESTAMP_NTZ,
and lists whose element is called `element`, as Delta calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

if TYPE_CHECKING:
    from freshview.storage.interface import Rows


def to_arrow(rows: Rows) -> pa.Table:
    """Rows in Arrow form. A DataFrame comes whole to the driver: only for what is small."""
    if isinstance(rows, pa.Table):
        return rows
    return cast("pa.Table", cast("Any", rows).toArrow())


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The plain form of a type, nested types included."""
    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_binary(kind):
        return pa.binary()
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(i)) for i in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), _plain_field(kind.item_field))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind):
        return pa.list_(_plain_field(kind.value_field).with_name("element"))
    return kind


def has_views(kind: pa.DataType) -> bool:
    """Whether a type is, or holds, a view type."""
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return True
    return any(has_views(kind.field(i).type) for i in range(kind.num_fields))


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, plain_type(field.type), field.nullable)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The plain form of a schema, without metadata."""
    return pa.schema([_plain_field(field) for field in schema])


def nullable_schema(schema: pa.Schema) -> pa.Schema:
    """The plain form of a schema with every field nullable, as Spark creates tables from rows."""
    return pa.schema([pa.field(field.name, _nullable(plain_type(field.type))) for field in schema])


def _nullable(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in fields])
    if types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    if types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _nullable(kind.value_type)))
    return kind


def unsliced(table: pa.Table) -> pa.Table:
    """The same rows without slices of nested arrays, which PySpark's Arrow import cannot take."""
    nested = [column for column in table.columns if pa.types.is_nested(column.type)]
    if not any(chunk.offset for column in nested for chunk in column.chunks):
        return table
    return table.take(pa.array(range(table.num_rows), pa.int64()))


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table's columns in the order and types of `schema`; raises ValueError with the reason.

    Only changes of representation are made: the same values in a wider integer, float, or decimal,
    another unit or zone notation of the same instant. Anything else is refused, because storage
    does not compute values.
    """
    given, wanted = set(table.column_names), set(schema.names)
    if len(table.column_names) != len(given):
        raise ValueError(f"a column name occurs twice in {table.column_names}")
    if given != wanted:
        missing, extra = sorted(wanted - given), sorted(given - wanted)
        raise ValueError(f"columns missing: {missing}; columns too many: {extra}")
    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.num_chunks == 0:  # which Arrow cannot cast for every type
            column = pa.chunked_array([pa.nulls(0, column.type)])
        if column.type != field.type:
            if not _same_kind(column.type, field.type):
                raise ValueError(f"column {field.name} is {column.type}, the table's {field.type}")
            try:
                column = column.cast(field.type)
            except pa.ArrowInvalid as problem:
                raise ValueError(f"column {field.name}: {problem}") from problem
        if not field.nullable and column.null_count:
            raise ValueError(f"column {field.name} has NULLs and the table allows none")
        columns.append(column)
    return pa.table(columns, schema=schema)


def _same_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(given):
        return True
    if types.is_dictionary(given):
        return _same_kind(given.value_type, wanted)
    given, wanted = plain_type(given), plain_type(wanted)
    if types.is_timestamp(given) and types.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    if types.is_struct(given) and types.is_struct(wanted):
        names = [[kind.field(i).name for i in range(kind.num_fields)] for kind in (given, wanted)]
        return names[0] == names[1] and all(
            _same_kind(given.field(i).type, wanted.field(i).type) for i in range(given.num_fields)
        )
    if types.is_map(given) and types.is_map(wanted):
        return _same_kind(given.key_type, wanted.key_type) and _same_kind(
            given.item_type, wanted.item_type
        )
    if types.is_list(given) and types.is_list(wanted):
        return _same_kind(given.value_type, wanted.value_type)
    if types.is_floating(given) and types.is_floating(wanted):
        return bool(given.bit_width <= wanted.bit_width)  # a narrower one would round
    families = (types.is_integer, types.is_decimal)
    return given == wanted or any(belongs(given) and belongs(wanted) for belongs in families)
