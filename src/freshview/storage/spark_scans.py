"""Scans that do not trust what a file says about its floating point numbers, and their constants."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
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


def constant(value: pa.Scalar, kind: str) -> Column:
    """A number, day or moment as Spark's constant of exactly this type.

    Made from the integer that it is stored as: Python's dates have fewer years than Spark's.
    """
    if kind == "date":
        return f.date_from_unix_date(f.lit(value.cast(pa.int32()).as_py()))
    if kind.startswith("timestamp"):
        moment = value.cast(pa.timestamp("us", tz=value.type.tz)).cast(pa.int64()).as_py()
        if kind == "timestamp":
            return f.timestamp_micros(f.lit(moment).cast("bigint"))
        days, rest = divmod(moment, 86_400_000_000)
        midnight = f.date_from_unix_date(f.lit(days)).cast("timestamp_ntz")
        seconds = (f.lit(rest).cast("decimal(20,0)") / 1_000_000).cast("decimal(18,6)")
        return midnight + f.make_dt_interval(secs=seconds)
    return f.lit(value.as_py()).cast(kind)
