"""Adding up a delta in Spark without changing its values."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from freshview.algebra.schema import quoted
from freshview.storage.interface import COUNT


def consolidated(delta: DataFrame) -> DataFrame:
    """The counts of identical rows added up, where Spark can group rows without changing them.

    Grouping writes -0.0 as 0.0 and sorts the entries of a map, and it calls collated texts equal
    that differ. Floats are therefore grouped by their text, which is exact; with the other types
    the delta stays as it is, which is correct, only longer.
    """
    keys, values = [], []
    for place, field in enumerate(delta.schema.fields):
        column = f.col(quoted(field.name))
        if field.name == COUNT:
            continue
        if isinstance(field.dataType, FloatType | DoubleType):
            keys.append(column.cast("string").alias(f"__key{place}"))
            values.append(f.first(column).alias(field.name))
        elif _groups_exactly(field.dataType):
            keys.append(column.alias(f"__key{place}"))
            values.append(f.first(column).alias(field.name))
        else:
            return delta
    total = f.sum(COUNT).alias(COUNT)
    added = delta.groupBy(*keys).agg(*values, total).where(f.col(COUNT) != 0)
    return added.select([quoted(name) for name in delta.columns])


def _groups_exactly(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_groups_exactly(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _groups_exactly(kind.elementType)
    if isinstance(kind, StringType):
        return kind.isUTF8BinaryCollation()
    return not isinstance(kind, FloatType | DoubleType | MapType | VariantType)
