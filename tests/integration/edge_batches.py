"""One shop and six batches that hit the edges of ``sql_edges.py``."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from freshview.runtime.table_changes import TableChanges

Row = dict[str, Any]

SCHEMAS = {
    "sales": pa.schema(
        [
            ("id", pa.int64()),
            ("g", pa.string()),
            ("k", pa.int32()),
            ("v", pa.decimal128(10, 2)),
            ("b", pa.bool_()),
            ("d", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ("tags", pa.list_(pa.string())),
            ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ]
    ),
    "other": pa.schema([("o", pa.int64()), ("k", pa.int32()), ("w", pa.int32())]),
}
KEYS = {"sales": ["id"], "other": ["o"]}
_FIRST_DAY = dt.date(2024, 3, 30)
_START = dt.datetime(2024, 3, 30, 23, 30, tzinfo=dt.UTC)


def sale(id: int, g: str | None, k: int | None, v: str | None, **others: Any) -> Row:
    """A sale; what is not given follows from its number, and what is None is null."""
    return {
        "id": id,
        "g": g,
        "k": k,
        "v": None if v is None else Decimal(v),
        "b": id % 2 == 0,
        "d": _FIRST_DAY + dt.timedelta(days=id % 4),
        "ts": _START + dt.timedelta(minutes=20 * id),
        "tags": ["x", "y"],
        "s": {"a": id % 3, "b": g},
        **others,
    }


def other(o: int, k: int | None, w: int | None) -> Row:
    return {"o": o, "k": k, "w": w}


START = {
    "sales": [
        sale(1, "a", 1, "5.00"),
        sale(2, "a", 2, "5.00", tags=["y", "y", None]),
        sale(3, "a", 2, "7.50", b=None),
        sale(4, "b", 3, "1.00", tags=[]),
        sale(5, "b", 1, None, tags=None),
        sale(6, None, None, "9.00", s=None),
        sale(7, "A", 1, "2.00"),
    ],
    "other": [other(1, 1, 10), other(2, 2, 20), other(3, 2, None)],
}

BATCHES: tuple[dict[str, TableChanges], ...] = (
    {  # ties arrive, an array is emptied, a value becomes null, keys move
        "sales": TableChanges(
            insert=[sale(8, "a", 3, "7.50"), sale(9, "c", 9, "0.00", tags=["z"])],
            update=[sale(1, "b", 2, "5.00"), sale(2, "a", 2, "7.50", tags=[])],
            delete=[{"id": 7}],
            key=["id"],
        ),
        "other": TableChanges(insert=[other(4, 3, 30)]),
    },
    {  # the first rows of every order go, group b empties, a null comes to NOT IN
        "sales": TableChanges(delete=[{"id": n} for n in (1, 4, 5, 6)], key=["id"]),
        "other": TableChanges(insert=[other(5, None, 5)], delete=[{"o": 1}], key=["o"]),
    },
    {  # group b returns, the null leaves, an array comes back, a null group comes
        "sales": TableChanges(
            insert=[sale(4, "b", 1, "4.00"), sale(10, None, None, None, tags=["x", "x"])],
            update=[sale(2, "a", 1, "3.00", tags=["q"]), sale(3, "a", 9, None)],
            key=["id"],
        ),
        "other": TableChanges(update=[other(5, 9, 50)], insert=[other(6, 1, 7)], key=["o"]),
    },
    {  # the other table empties: every outer join is padded, every semijoin empty
        "sales": TableChanges(insert=[sale(11, "c", 1, "3.00"), sale(12, "c", 1, "3.00")]),
        "other": TableChanges(delete=[{"o": n} for n in range(2, 7)], key=["o"]),
    },
    {  # no sale is left: aggregates over nothing
        "sales": TableChanges(delete=[{"id": n} for n in (2, 3, 4, 8, 9, 10, 11, 12)], key=["id"]),
        "other": TableChanges(insert=[other(7, 1, 70)]),
    },
    {  # and some come back
        "sales": TableChanges(
            insert=[
                sale(20, "a", 1, "6.00"),
                sale(21, "a", None, "6.00"),
                sale(22, None, 1, "1.00"),
            ]
        ),
        "other": TableChanges(insert=[other(8, 2, None), other(9, None, None)]),
    },
)
