"""An evaluated view in the driver, if it is small: native writes few rows in a tenth of the time."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from freshview.algebra.schema import quoted
from freshview.runtime.commit import SourceVersion
from freshview.runtime.parts import Parts
from freshview.storage.interface import Rows, TableState
from freshview.storage.native_rules import natively_writable

_BYTES = "__bytes"
_LONG = (StringType, BinaryType, ArrayType, MapType, StructType, VariantType)
_DEFAULTS = "spark.databricks.delta.properties.defaults."


def fetched(
    parts: Parts,
    rows: DataFrame,
    vector: Mapping[str, SourceVersion],
    stored: TableState | None = None,
) -> Rows:
    """The rows in the driver if they are few and native writes them as Spark would, else as given.

    Only evaluating them tells, so they are fetched where this is unlikely to be in vain: the view
    (``stored``) had few rows so far, or its sources are small.
    """
    limits = parts.tables.limits
    if not limits.write_rows or not natively_writable(rows.schema.json()):
        return rows
    if stored is None:
        if any(name.startswith(_DEFAULTS) for name in parts.spark().conf.getAll):
            return rows  # what the session wants of a new table, Spark gives it
    elif not fits(rows, stored):
        return rows
    if stored is None or stored.rows is None or stored.rows > limits.write_rows // 2:
        size = sum(parts.sources.state(n, s.version).bytes for n, s in vector.items())
        if size > limits.fetch_source_bytes:
            return rows
    few = few_rows(rows, limits.write_rows, limits.write_bytes)
    return rows if few is None else few


def few_rows(rows: DataFrame, most: int, most_bytes: int) -> pa.Table | None:
    """All rows, None if they are more than ``most`` or one has more than its share of the bytes."""
    share = most_bytes // max(most, 1)
    found, sizes = _guarded(rows.limit(most + 1), share)
    return found if found.num_rows <= most and _largest(sizes) <= share else None


def rows_that_fit(kept: DataFrame, most: int, most_bytes: int) -> pa.Table | None:
    """All rows, None if they are more than ``most`` or larger than ``most_bytes`` together.

    Few rows may have more than their share each: they are fetched once their sizes are known to
    fit, which is cheap only where Spark keeps the rows.
    """
    share, few = most_bytes // max(most, 1), kept.limit(most + 1)
    found, sizes = _guarded(few, share)
    if found.num_rows > most or (pc.sum(sizes).as_py() or 0) > most_bytes:
        return None
    return found if _largest(sizes) <= share else few.toArrow()


def _guarded(rows: DataFrame, share: int) -> tuple[pa.Table, pa.ChunkedArray]:
    """The rows and how long the texts of each are; longer ones than its share are left out.

    So what comes is bounded, whatever the rows are.
    """
    long = {field.name: _bytes(field) for field in rows.schema if isinstance(field.dataType, _LONG)}
    size = sum(long.values(), F.lit(0).cast("bigint"))
    guarded = [
        F.when(size <= share, F.col(quoted(name))).alias(name)
        if name in long
        else F.col(quoted(name))
        for name in rows.columns
    ]
    found = rows.select(*guarded, size.alias(_BYTES)).toArrow()
    return found.drop_columns([_BYTES]), found[_BYTES]


def _largest(sizes: pa.ChunkedArray) -> int:
    return int(pc.max(sizes).as_py() or 0)


def _bytes(field: StructField) -> Column:
    """How many bytes a value has; of a nested one, its text has about as many."""
    value = F.col(quoted(field.name))
    if not isinstance(field.dataType, StringType | BinaryType):
        value = value.cast("string")
    return F.coalesce(F.octet_length(value), F.lit(0)).cast("bigint")


def fits(rows: DataFrame, stored: TableState) -> bool:
    """Whether a table has the columns and types of the rows."""
    return _types(StructType.fromJson(json.loads(stored.schema_json))) == _types(rows.schema)


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema}
