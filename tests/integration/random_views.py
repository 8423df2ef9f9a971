"""Seeded random views, data and batches for Spark: wide in types, operators and kinds of change."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import pyarrow as pa

SCHEMAS = {
    "r": pa.schema(
        [
            ("id", pa.int64()),
            ("k", pa.int64()),
            ("g", pa.string()),
            ("v", pa.decimal128(10, 2)),
            ("day", pa.date32()),
        ]
    ),
    "s": pa.schema([("k", pa.int64()), ("h", pa.int32()), ("w", pa.decimal128(30, 6))]),
    "t": pa.schema([("h", pa.int32()), ("name", pa.string()), ("big", pa.int64())]),
}
KEYS = {"r": ["id"], "s": ["k", "h"], "t": ["h"]}

Row = dict[str, object]


def random_row(table: str, dice: random.Random) -> Row:
    """A row with few distinct values, so that rows meet, repeat, and are null now and then."""

    def maybe(value: object) -> object:
        return None if dice.random() < 0.12 else value

    if table == "r":
        return {
            "id": maybe(dice.randrange(30)),
            "k": maybe(dice.randrange(8)),
            "g": maybe(dice.choice(["a", "b", "", "é'`"])),
            "v": maybe(Decimal(dice.randrange(-500, 500)) / 100),
            "day": maybe(datetime.date(2024, dice.randrange(1, 4), 1)),
        }
    if table == "s":
        return {
            "k": maybe(dice.randrange(8)),
            "h": maybe(dice.randrange(4)),
            "w": maybe(Decimal(dice.randrange(-(10**9), 10**9)) / 10**6),
        }
    return {
        "h": maybe(dice.randrange(4)),
        "name": maybe(dice.choice(["x", "y"])),
        "big": maybe(dice.choice([1, -1, 2**62, -(2**62)])),
    }


def random_rows(table: str, dice: random.Random, count: int) -> pa.Table:
    rows = [random_row(table, dice) for _ in range(count)]
    return pa.Table.from_pylist(rows, SCHEMAS[table])


FROM = (
    "r",
    "r JOIN s ON r.k = s.k",
    "r JOIN s ON r.k = s.k JOIN t ON s.h = t.h",
    "r JOIN s ON r.k <=> s.k",
    "r JOIN s ON r.k < s.k AND r.id > 3",
    "r CROSS JOIN t",
    "s JOIN t ON s.h = t.h AND s.w > 0",
)
WHERE = {
    "r": ("r.v > 0", "r.g IS NULL OR r.g <> 'b'", "r.day >= DATE'2024-02-01'", "length(r.g) < 2"),
    "s": ("s.w BETWEEN -500 AND 500", "s.h IN (1, 2)"),
    "t": ("t.name LIKE 'x%'",),
}
COLUMNS = {
    "r": ("r.id", "r.k", "r.g", "r.v", "r.day", "r.v * 2", "coalesce(r.g, 'none')", "month(r.day)"),
    "s": ("s.h", "s.w", "s.k + 1"),
    "t": ("t.name", "upper(t.name)"),
}
AGGREGATES = {
    "r": ("count(r.v)", "sum(r.v)", "avg(r.v)", "sum(r.id)", "avg(CAST(r.k AS INT))", "count(*)"),
    "s": ("sum(s.w)", "avg(s.w)", "count(s.h)", "sum(s.w) FILTER (WHERE s.h > 1)"),
    "t": ("count(t.name)", "sum(t.h)", "avg(t.h)", "count(*) FILTER (WHERE t.name = 'x')"),
}


def random_view(dice: random.Random) -> str:
    """SQL text of a view that freshview keeps incrementally."""
    kind = dice.random()
    if kind < 0.5:
        return _aggregate(dice)
    if kind < 0.8:
        return _join(dice)
    if kind < 0.9:
        left, right = _two_columns(dice), _two_columns(dice)
        union = f"{left} UNION ALL {right}"
        if dice.random() < 0.5:
            return union
        return f"SELECT x, count(*) AS n, sum(y) AS total FROM ({union}) GROUP BY x"
    if kind < 0.95:
        return "SELECT a.id AS i, b.id AS j, b.v AS v FROM r a JOIN r b ON a.k = b.id"
    return "SELECT DISTINCT g, month(day) AS m FROM r"


def _source(dice: random.Random) -> tuple[str, list[str]]:
    text = dice.choice(FROM)
    read = [name for name in SCHEMAS if f" {name} " in f" {text} "]
    conditions = [c for name in read for c in WHERE[name] if dice.random() < 0.25]
    return text + (f" WHERE {' AND '.join(conditions)}" if conditions else ""), read


def _picked(choices: dict[str, tuple[str, ...]], read: list[str], dice: random.Random) -> list[str]:
    every = [c for name in read for c in choices[name]]
    return dice.sample(every, min(len(every), dice.randrange(1, 4)))


def _join(dice: random.Random) -> str:
    source, read = _source(dice)
    columns = [f"{c} AS c{i}" for i, c in enumerate(_picked(COLUMNS, read, dice))]
    return f"SELECT {', '.join(columns)} FROM {source}"


def _aggregate(dice: random.Random) -> str:
    source, read = _source(dice)
    calls = [f"{c} AS f{i}" for i, c in enumerate(_picked(AGGREGATES, read, dice))]
    groups = _picked(COLUMNS, read, dice)[: dice.randrange(0, 3)]
    shown = [f"{c} AS g{i}" for i, c in enumerate(groups) if dice.random() < 0.8]
    tail = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join(shown + calls)} FROM {source}{tail}"


def _two_columns(dice: random.Random) -> str:
    table, x, y = dice.choice([("r", "g", "v"), ("t", "name", "big"), ("r", "g", "id")])
    return f"SELECT {x} AS x, CAST({y} AS DECIMAL(25,2)) AS y FROM {table}"


FALLBACKS = (
    "SELECT id, map(g, v) AS m FROM r WHERE g IS NOT NULL",
    "SELECT g, collect_list(map(k, v)) AS ms FROM r WHERE k IS NOT NULL GROUP BY g",
    "SELECT id, map('v', v) AS m FROM r ORDER BY id, k, g, v, day LIMIT 3",
    "SELECT id, NULL AS nothing FROM r",
)
"""Views that are recomputed."""

THROUGH_SPARK = (
    "SELECT r.id AS id, s.w AS w FROM r LEFT JOIN s ON r.k = s.k",
    "SELECT r.id, s.w, t.name FROM r FULL JOIN s ON r.k = s.k FULL JOIN t ON s.h <=> t.h",
    "SELECT k, sum(v) AS x FROM r GROUP BY k UNION ALL SELECT h, sum(w) FROM s GROUP BY h",
    (
        "SELECT t.name, sum(q.total) AS total FROM (SELECT h, sum(w) AS total FROM s GROUP BY h) q"
        " JOIN t ON q.h = t.h GROUP BY t.name"
    ),
    "SELECT k FROM r EXCEPT ALL SELECT k FROM s",
    "SELECT id, v FROM r WHERE v > (SELECT avg(v) FROM r)",
)
"""Views over operators beyond σ, Π, ⋈ and ⊎, of one kind each."""
