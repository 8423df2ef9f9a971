"""Bags of rows compared by Spark, many pairs of them in one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)

from soak.findings import LOST, TWICE, WRONG

SignedBag = dict[tuple[object, ...], int]

_SIGN = "__sign"
_CASE = "__case"


def differing(cases: Sequence[tuple[DataFrame, DataFrame]]) -> dict[int, SignedBag]:
    """For each case that differs: the copies that the first has more than the second, by row."""
    if not cases:
        return {}
    sides = [
        side.select("*", F.lit(sign).alias(_SIGN), F.lit(number).alias(_CASE))
        for number, (expected, actual) in enumerate(cases)
        for side, sign in ((expected, 1), (actual, -1))
    ]
    rows = reduce(DataFrame.unionAll, sides)
    columns = [F.col(f"`{name}`") for name in rows.columns if name != _SIGN]
    found = rows.groupBy(*columns).agg(F.sum(_SIGN).alias(_SIGN)).where(f"{_SIGN} <> 0")
    bags: dict[int, SignedBag] = {}
    for row in found.collect():
        *values, number, copies = tuple(row)
        bags.setdefault(number, {})[tuple(values)] = copies
    return bags


def likely(wanted: SignedBag, made: SignedBag) -> str:
    """Whether a wrong delta looks as if it were dropped or applied twice."""
    twice = {name: 2 * value for name, value in _weight(wanted).items()}
    if not any(_weight(made).values()):
        return LOST
    return TWICE if _weight(made) == twice else WRONG


def shown(bag: SignedBag) -> str:
    return "; ".join(f"{copies:+d} × {row}" for row, copies in list(bag.items())[:3])


def _weight(delta: SignedBag) -> dict[object, float]:
    """The rows and the sum of each numeric column that a signed bag adds."""
    total: defaultdict[object, float] = defaultdict(float)
    for row, copies in delta.items():
        total["rows"] += copies
        for place, value in enumerate(row):
            if isinstance(value, int | float | Decimal):
                total[place] += float(value) * copies
    return {name: round(value, 6) for name, value in total.items()}
