"""Rows of every Spark type with the values that storage layers get wrong, and bag comparison."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa

from freshview.storage.interface import COUNT
from freshview.storage.plain_arrow import plain_schema, to_arrow

NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
TEXTS = ["", " ", "a", "A", "it's", 'say "hi"', "back\\slash", "\x00", "é", "e\u0301", "名", "😀"]
LONGEST = Decimal("9" * 38)

ALL_TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("int", pa.int32()),
        ("flag", pa.bool_()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("dec", pa.decimal128(12, 2)),
        ("dec38", pa.decimal128(38, 0)),
        ("dec18", pa.decimal128(38, 18)),
        ("text", pa.string()),
        ("blob", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("pair", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("many", pa.list_(pa.field("element", pa.float64()))),
        ("named", pa.map_(pa.string(), pa.decimal128(38, 18))),
        (
            "deep",
            pa.list_(
                pa.field("element", pa.struct([("s", pa.list_(pa.field("element", pa.string())))]))
            ),
        ),
    ]
)

_ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "tiny": -128,
        "small": 32767,
        "int": -(2**31),
        "flag": True,
        "f32": 1.5,
        "f64": -0.0,
        "dec": Decimal("-1.10"),
        "dec38": LONGEST,
        "dec18": Decimal("0.000000000000000001"),
        "text": 'it\'s "q" \\ `b`',
        "blob": b"\x00\xff",
        "day": dt.date(1582, 10, 4),
        "at": dt.datetime(1, 1, 1, tzinfo=UTC),
        "local": dt.datetime.fromisoformat("2024-03-31T02:30"),
        "pair": {"x": 1, "y": None},
        "many": [NAN, -0.0, None, INF],
        "named": [("k", Decimal("1.5")), ("", None)],
        "deep": [{"s": ["a", None]}, None, {"s": None}],
    },
    {
        "id": 2,
        "tiny": 0,
        "small": 0,
        "int": 0,
        "flag": False,
        "f32": NAN,
        "f64": NAN,
        "dec": Decimal("0.00"),
        "dec38": Decimal("-" + "9" * 38),
        "dec18": Decimal(0),
        "text": "\x00名😀",
        "blob": b"",
        "day": dt.date(9999, 12, 31),
        "at": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "local": dt.datetime.fromisoformat("0001-01-01T00:00"),
        "pair": None,
        "many": [],
        "named": [],
        "deep": [],
    },
    {
        "id": 3,
        "tiny": 127,
        "small": -1,
        "int": 7,
        "flag": None,
        "f32": -INF,
        "f64": INF,
        "dec": None,
        "dec38": Decimal(0),
        "dec18": None,
        "text": "",
        "blob": None,
        "day": None,
        "at": dt.datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        "local": None,
        "pair": {"x": None, "y": ""},
        "many": None,
        "named": None,
        "deep": None,
    },
    dict.fromkeys(ALL_TYPES.names),
    {**dict.fromkeys(ALL_TYPES.names), "id": 4, "f32": -0.0, "f64": 0.0, "text": "a"},
]


def all_types() -> pa.Table:
    """Five rows over all types, one of them all NULL."""
    return pa.Table.from_pylist(_ROWS, schema=ALL_TYPES)


def arrow(rows: Any) -> pa.Table:
    """What a storage returned, in plain Arrow types."""
    table = to_arrow(rows)
    return table.cast(plain_schema(table.schema))


def bag(rows: Any) -> Counter[str]:
    """Rows with multiplicity; a delta's counts are added up per row and zeros dropped."""
    table = arrow(rows)
    names = sorted(name for name in table.column_names if name != COUNT)
    counts = table.column(COUNT).to_pylist() if COUNT in table.column_names else None
    total: Counter[str] = Counter()
    for index, row in enumerate(table.select(names).to_pylist()):
        total[repr(row)] += counts[index] if counts else 1
    return Counter({row: count for row, count in total.items() if count})


def difference(new: Any, old: Any) -> Counter[str]:
    """new minus old, as a bag with signs."""
    result = Counter(bag(new))
    result.subtract(bag(old))
    return Counter({row: count for row, count in result.items() if count})
