"""Adding up the counts of identical rows.

Rows that were copied from an old file into a new one cancel here. Two rows count as identical only
when they are so bit by bit (after one encoding per type). That may be finer than Spark's equality,
which calls 0.0 and -0.0 the same: rows kept apart cancel later, in Spark, but rows that were put
together wrongly could never be told apart again.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from freshview.storage.interface import COUNT
from freshview.storage.native_match import bit_patterns


def consolidated(delta: pa.Table) -> pa.Table:
    """The same delta with one row per distinct row and no zero counts.

    A delta with counts of one sign is returned as it is: nothing in it can cancel.
    """
    if delta.num_rows == 0:
        return delta
    bounds = pc.min_max(delta.column(COUNT)).as_py()
    if bounds["min"] > 0 or bounds["max"] < 0:
        return delta
    values = delta.drop_columns([COUNT]).combine_chunks()
    keys = [identity(column) for column in values.columns]
    names = [str(index) for index in range(len(keys))]
    rows = pa.array(range(delta.num_rows), pa.int64())
    table = pa.table([*keys, delta.column(COUNT), rows], [*names, "count", "row"])
    grouped = table.group_by(names).aggregate([("count", "sum"), ("row", "min")])
    grouped = grouped.filter(pc.not_equal(grouped.column("count_sum"), 0))
    kept = values.take(grouped.column("row_min"))
    return kept.append_column(pa.field(COUNT, pa.int64()), grouped.column("count_sum"))


def duplicate_count(rows: pa.Table, key: Sequence[str]) -> int:
    """How many more rows than distinct keys there are, by Spark's `<=>`."""
    if rows.num_rows < 2 or not key:
        # Without key columns (a global aggregate) all rows have the same, empty key.
        return max(int(rows.num_rows) - 1, 0)
    columns = [spark_identity(rows.column(name).combine_chunks()) for name in key]
    table = pa.table(columns, [str(index) for index in range(len(columns))])
    return int(rows.num_rows - table.group_by(table.column_names).aggregate([]).num_rows)


def spark_identity(column: pa.Array) -> pa.Array:
    """A column that groups as Spark's `<=>` does."""
    if pa.types.is_floating(column.type):
        # Here the coarser equality is the right one: NaN is one key, and -0.0 is 0.0.
        return pa.array(bit_patterns(column), mask=column.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_nested(column.type):
        return pa.array([repr(_unsigned(value)) for value in column.to_pylist()], pa.string())
    return column


def _unsigned(value: object) -> object:
    """A nested value with every -0.0 written as 0.0."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, dict):
        return {name: _unsigned(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_unsigned(part) for part in value]
    return value


def identity(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column that groups exactly as the values' bits do."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        # Arrow does not group nested values. repr tells apart everything that differs (-0.0, NaN,
        # NULL, the scale of a decimal) and is the same for the same value.
        return pa.array([repr(value) for value in column.to_pylist()], pa.string())
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        return pa.chunked_array([_bits(chunk) for chunk in column.chunks], _bits_type(kind))
    return column


def _bits_type(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_float64(kind) else pa.int32()


def _bits(chunk: pa.Array) -> pa.Array:
    return chunk.view(_bits_type(chunk.type))
