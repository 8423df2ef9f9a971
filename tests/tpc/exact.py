"""Exact functions for the queries whose doubles Spark adds up in the order of the rows.

``exactly`` puts them in the place of SUM, AVG and STDDEV_SAMP over doubles and integers in a query's
text: the values of a group are collected and computed with Python's whole numbers and fractions.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from pyspark.sql import SparkSession

INEXACT = {
    "tpcds": re.compile(
        r"\b(avg|stddev_samp)\((?=(?:ss_quantity|cs_quantity|ws_quantity|sr_return_quantity"
        r"|inv_quantity_on_hand|cd_dep_count|cd_dep_employed_count|cd_dep_college_count|agg1)\))",
        re.IGNORECASE,
    ),
    "tpch_doubles": re.compile(r"\b(sum|avg)\(", re.IGNORECASE),
}
"""The calls of each database whose values are doubles, or averages of integers."""


def exactly(kind: str, text: str) -> str | None:
    """The query with exact functions; None if it has no call that needs one."""
    calls = INEXACT.get(kind)
    found = None if calls is None else calls.search(text)
    if calls is None or found is None:
        return None
    begin = found.end()
    end = _closing(text, begin)
    inside = text[begin:end]
    before = text[: found.start()]
    rest = exactly(kind, text[end + 1 :]) or text[end + 1 :]
    return f"{before}exact_{found[1].lower()}(collect_list(CAST({inside} AS DOUBLE))){rest}"


def _closing(text: str, begin: int) -> int:
    """Where the bracket closes that was opened before ``begin``."""
    depth = 1
    for place in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(f"no closing bracket: {text[begin:]}")


def register_exact(session: SparkSession) -> None:
    """The functions under the names that ``exactly`` uses."""
    for function in (exact_sum, exact_avg, exact_stddev_samp):
        session.udf.register(function.__name__, function, "double")


def exact_sum(values: list[float]) -> float | None:
    """The sum, rounded once."""
    return math.fsum(values) if values else None


def exact_avg(values: list[float]) -> float | None:
    """The sum, rounded once, over the count."""
    return math.fsum(values) / len(values) if values else None


def exact_stddev_samp(values: list[float]) -> float | None:
    """√(Σ(x − x̄)² / (n − 1)), as a fraction until the root is taken."""
    if len(values) < 2:
        return None
    whole = [Fraction(value) for value in values]
    mean = sum(whole) / len(whole)
    variance = sum((value - mean) ** 2 for value in whole) / (len(whole) - 1)
    scale = 10**40
    return float(Fraction(math.isqrt(math.floor(variance * scale**2)), scale))
