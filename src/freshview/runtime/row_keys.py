"""The key by which a user names rows of a view: values of some of its columns, in their types."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal, InvalidOperation

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)

from freshview.algebra.schema import INTEGRAL_TYPES, Attribute, decimal_type
from freshview.errors import InvalidKeyValue, UnknownColumn, first_line

_ZONE = re.compile(r":\d\d(\.\d*)?\s*([zZ]|[-+]\d|[A-Za-z]{2})")
"""A time zone behind a time."""
_DAY = re.compile(r"[+-]?\d{4,7}(-\d{1,2}(-\d{1,2})?)?")
_FINER = re.compile(r"\.\d{6}0*[1-9]")
"""Digits behind those of a microsecond."""


def key_columns(
    view: str, visible: Sequence[Attribute], key: Mapping[str, object]
) -> tuple[Attribute, ...]:
    """The columns that a key names, in any case, as SQL does. Raises UnknownColumn."""
    named = {attribute.name.lower(): attribute for attribute in visible}
    for column in key:
        if column.lower() not in named:
            known = ", ".join(attribute.name for attribute in visible)
            raise UnknownColumn(name=view, column=column, known=known)
    columns = tuple(named[column.lower()] for column in key)
    for attribute, value in zip(columns, key.values(), strict=True):
        if columns.count(attribute) > 1:
            raise _invalid(view, attribute, value, "the column is named twice, in different case")
    return columns


def key_rows(
    spark: SparkSession, view: str, columns: Sequence[Attribute], values: Sequence[object]
) -> pa.Table:
    """The one row of a key, made by Spark: texts are cast to the types of their columns.

    Raises InvalidKeyValue where that gives nothing, or another value than was written.
    """
    pairs = list(zip(columns, values, strict=True))
    made: list[Column] = []
    one = spark.range(1)
    for column, value in pairs:
        try:
            made.append(_cast(column, value).alias(column.name))
            one.select(*made)
        except (PySparkException, Py4JError, AttributeError, TypeError) as error:
            raise _invalid(view, column, value, first_line(error)) from error
    row = one.select(*made).toArrow()
    for (column, value), found in zip(pairs, row.columns, strict=True):
        if value is not None and not _is_same(column, value, found[0].as_py()):
            raise _invalid(view, column, value, "Spark casts it to no or to another value")
    return row


def _cast(column: Attribute, value: object) -> Column:
    """Bytes are written in hexadecimal digits, as they are shown."""
    if column.type == "binary" and isinstance(value, str):
        return F.try_to_binary(F.lit(value), F.lit("hex"))
    return F.lit(value).try_cast(column.type)


def _is_same(column: Attribute, value: object, found: object) -> bool:
    """Whether a value is still the one that was written, as far as that can be told.

    Of FLOAT and DOUBLE the nearest value is meant, if there is one; a day has no time, and a moment
    without a time zone has none.
    """
    written = str(value).strip()
    if found is not None and column.type in ("float", "double") and "inf" not in written.lower():
        return not math.isinf(float(str(found)))
    if column.type == "date" and isinstance(value, datetime):
        return value.time() == time()
    if isinstance(value, str) and not _is_read_whole(column.type, written):
        return False
    is_exact = column.type in INTEGRAL_TYPES or decimal_type(column.type) is not None
    if found is None or not is_exact:
        return found is not None
    try:
        return Decimal(written) == Decimal(str(found))
    except InvalidOperation:
        return False


def _is_read_whole(type: str, written: str) -> bool:
    """Whether a text says no more than Spark reads of it: it leaves out what it does not need.

    A time alone is one of today for Spark.
    """
    if type == "date":
        return _DAY.fullmatch(written) is not None
    if type not in ("timestamp", "timestamp_ntz"):
        return True
    day = _DAY.match(written)
    if day is None or written[day.end() :][:1] not in ("", " ", "T") or _FINER.search(written):
        return False
    return type == "timestamp" or _ZONE.search(written) is None


def _invalid(view: str, column: Attribute, value: object, reason: str) -> InvalidKeyValue:
    return InvalidKeyValue(
        name=view, column=column.name, value=value, type=column.type, reason=reason
    )
