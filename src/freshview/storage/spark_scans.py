"""Scans that do not trust what a file says about its floating point numbers."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DoubleType, FloatType

from freshview.algebra.schema import quoted


def unbounded(rows: DataFrame) -> DataFrame:
    """The same rows, read without asking the bounds of their floats.

    To Spark NaN is the greatest number, and Arrow's writers leave it out of the greatest value of
    a file: Spark then passes over a file whose NaN a filter such as `x > 5` looks for. A filter on
    `nanvl(x, NaN)`, which is x, is not compared with bounds; those on other columns still are.
    """
    fields = rows.schema.fields
    if not any(isinstance(field.dataType, FloatType | DoubleType) for field in fields):
        return rows
    return rows.select(
        [
            f.nanvl(column, f.lit(float("nan")).cast(field.dataType)).alias(field.name)
            if isinstance(field.dataType, FloatType | DoubleType)
            else column
            for field in fields
            for column in [rows[quoted(field.name)]]
        ]
    )
