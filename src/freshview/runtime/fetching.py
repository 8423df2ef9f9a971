"""An evaluated view in the driver, if it is small: native writes few rows in a tenth of the time."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)
from pyspark.sql.types import BinaryType, StringType, StructType

from freshview.algebra.schema import quoted
from freshview.runtime.commit import SourceVersion
from freshview.runtime.parts import Parts
from freshview.storage.interface import Rows, TableState
from freshview.storage.native_rules import natively_writable

_WIDE = "__wide"
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
    """All rows, None if they are more than ``most`` or one has more than its share of the bytes.

    Spark says of each row whether its texts are too long, and then leaves them out, so that what
    comes is bounded whatever the rows are.
    """
    texts = {f.name for f in rows.schema if isinstance(f.dataType, StringType | BinaryType)}
    size = F.lit(0)
    for name in texts:
        size = size + F.coalesce(F.octet_length(quoted(name)), F.lit(0))
    wide = size > most_bytes // most
    guarded = [
        F.when(~wide, F.col(quoted(name))).alias(name) if name in texts else F.col(quoted(name))
        for name in rows.columns
    ]
    found = rows.limit(most + 1).select(*guarded, wide.alias(_WIDE)).toArrow()
    if found.num_rows > most or pc.any(found[_WIDE]).as_py():
        return None
    return found.drop_columns([_WIDE])


def fits(rows: DataFrame, stored: TableState) -> bool:
    """Whether a table has the columns and types of the rows."""
    return _types(StructType.fromJson(json.loads(stored.schema_json))) == _types(rows.schema)


def _types(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema}
