"""Seeded rows and batches for random queries: few distinct values, nulls and duplicates everywhere."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from freshview.runtime.table_changes import TableChanges
from tests.random_queries.expressions import Kind
from tests.random_queries.generator import TABLES

Row = dict[str, Any]

KEYS = {"r": ("id",), "s": ("k", "h"), "t": ("h",)}
"""By which rows are updated and deleted. No key is unique: a change by key meets several rows or none."""
ROWS = 9
_TYPES = {
    Kind.INT: pa.int64(),
    Kind.TEXT: pa.string(),
    Kind.MONEY: pa.decimal128(18, 2),
    Kind.DAY: pa.date32(),
    Kind.REAL: pa.float64(),
}
SCHEMAS = {
    table: pa.schema([(name, _TYPES[kind]) for name, kind in columns])
    for table, columns in TABLES.items()
}


def value(kind: Kind, dice: random.Random) -> Any:
    if dice.random() < 0.12:
        return None
    match kind:
        case Kind.INT:
            return dice.randrange(6)
        case Kind.TEXT:
            return dice.choice(["a", "b", "", "é", "B", "b "])
        case Kind.MONEY:
            return Decimal(dice.randrange(-6, 12)) / 2
        case Kind.DAY:
            return dt.date(2024, 2, 27) + dt.timedelta(days=dice.randrange(4))
        case Kind.REAL:
            return dice.choice([0.5, 1.0, -1.5, 2.0, 1024.0, float("nan"), float("inf")])
    raise AssertionError(f"no column of a table is a {kind}")


def row(table: str, dice: random.Random) -> Row:
    return {name: value(kind, dice) for name, kind in TABLES[table]}


def rows(table: str, dice: random.Random, count: int) -> pa.Table:
    made = [row(table, dice) for _ in range(count)]
    if made and dice.random() < 0.7:
        made.append(dict(dice.choice(made)))
    return pa.Table.from_pylist(made, SCHEMAS[table])


def batch(dice: random.Random) -> dict[str, TableChanges]:
    """Changes of some tables, each of one kind or several."""
    changed = dice.sample(sorted(TABLES), dice.randrange(1, len(TABLES) + 1))
    return {table: _changes(table, dice) for table in changed}


def _changes(table: str, dice: random.Random) -> TableChanges:
    key = KEYS[table]
    touched: dict[tuple[Any, ...], Row] = {}
    for _ in range(dice.randrange(1, 5)):
        made = row(table, dice)
        touched[tuple(made[column] for column in key)] = made
    updated = list(touched.values())
    deleted = [updated.pop() for _ in range(len(updated) // 2)]
    inserted = rows(table, dice, dice.randrange(0, 4))
    return TableChanges(
        insert=inserted if inserted.num_rows else None,
        update=updated or None,
        delete=[{column: gone[column] for column in key} for gone in deleted] or None,
        key=key,
    )
