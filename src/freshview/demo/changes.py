"""Seeded changes to TPC-H tables: real rows, each drawn once, so that no two changes meet.

The same seed gives the same changes. Inserted lines continue the numbers of their order, inserted
orders take keys that TPC-H leaves free, and updates and deletions are of rows that were generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshview.demo.tpch import KEYS, batches, parquet_file
from freshview.runtime.table_changes import TableChanges

LINES_PER_ORDER = 7
FREE_KEY = 8
"""TPC-H uses 8 of every 32 order keys, so a used key plus 8 is free."""

_CENT = Decimal("0.01")


class Pool:
    """Rows of a generated table, drawn without replacement in an order that the seed decides."""

    def __init__(self, file: Path, size: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        total = pq.read_metadata(file).num_rows
        if size > total:
            raise ValueError(f"{file.name} has {total} rows, {size} were to be drawn")
        drawn = self.rng.choice(total, size, replace=False)
        self._rows = _rows_at(file, drawn)
        self._taken = 0

    @property
    def left(self) -> int:
        """How many rows have not been taken yet."""
        return int(self._rows.num_rows) - self._taken

    def take(self, count: int) -> pa.Table:
        """The next rows; a row is never given twice."""
        if count > self.left:
            raise ValueError(f"{count} rows were asked for, {self.left} are left")
        rows = self._rows.slice(self._taken, count)
        self._taken += count
        return rows


def _rows_at(file: Path, positions: np.ndarray) -> pa.Table:
    """The rows at these positions, in their order, by one pass that keeps nothing else."""
    ordered = np.sort(positions)
    reader = batches(file)
    found, first = [], 0
    for batch in reader:
        low, high = np.searchsorted(ordered, [first, first + batch.num_rows])
        found.append(batch.take(pa.array(ordered[low:high] - first)))
        first += batch.num_rows
    rows = pa.Table.from_batches(found, reader.schema)
    return rows.take(pa.array(np.searchsorted(ordered, positions)))


class LineChanges:
    """Insertions, updates and deletions of lineitem."""

    def __init__(self, folder: Path, size: int, seed: int) -> None:
        self._pool = Pool(parquet_file(folder, "lineitem"), size, seed)

    def inserted(self, count: int) -> pa.Table:
        """New lines of existing orders."""
        rows = self._pool.take(count)
        numbers = pc.add(rows["l_linenumber"], pa.scalar(LINES_PER_ORDER, pa.int32()))
        return self._priced(_set(rows, "l_linenumber", numbers))

    def updated(self, count: int) -> pa.Table:
        """Existing lines with another quantity and price."""
        return self._priced(self._pool.take(count))

    def reshipped(self, count: int) -> pa.Table:
        """Existing lines with another way of shipping, and nothing else changed."""
        rows = self._pool.take(count)
        other = pc.if_else(pc.equal(rows["l_shipmode"], "AIR"), "RAIL", "AIR")
        return _set(rows, "l_shipmode", other)

    def deleted(self, count: int) -> pa.Table:
        """The keys of existing lines."""
        return self._pool.take(count).select(list(KEYS["lineitem"]))

    def of_orders(self, orders: pa.Table) -> pa.Table:
        """New lines for new orders, four for each."""
        rows = self._pool.take(4 * orders.num_rows)
        keys = np.repeat(orders["o_orderkey"].to_numpy(), 4)
        numbers = np.tile(np.arange(1, 5, dtype=np.int32), orders.num_rows)
        rows = _set(rows, "l_orderkey", pa.array(keys))
        return self._priced(_set(rows, "l_linenumber", pa.array(numbers)))

    def insert_only(self, count: int) -> TableChanges:
        """A batch that only inserts."""
        return TableChanges(insert=self.inserted(count))

    def mixed(self, count: int) -> TableChanges:
        """A batch of insertions (40 %), updates (30 %) and deletions (30 %)."""
        updates = deletes = round(count * 0.3)
        return TableChanges(
            insert=self.inserted(count - updates - deletes),
            update=self.updated(updates),
            delete=self.deleted(deletes),
            key=KEYS["lineitem"],
        )

    def _priced(self, rows: pa.Table) -> pa.Table:
        """The rows with a quantity and a price drawn anew."""
        quantities = self._pool.rng.integers(1, 51, rows.num_rows)
        cents = quantities * self._pool.rng.integers(90_000, 200_000, rows.num_rows)
        rows = _set(rows, "l_quantity", [Decimal(int(q)) for q in quantities])
        return _set(rows, "l_extendedprice", [int(c) * _CENT for c in cents])


class OrderChanges:
    """Insertions, updates and deletions of orders."""

    def __init__(self, folder: Path, size: int, seed: int) -> None:
        self._lines = parquet_file(folder, "lineitem")
        self._pool = Pool(parquet_file(folder, "orders"), size, seed)

    def inserted(self, count: int) -> pa.Table:
        """New orders of existing customers."""
        rows = self._pool.take(count)
        keys = pc.add(rows["o_orderkey"], FREE_KEY)
        return self._priced(_set(rows, "o_orderkey", keys))

    def updated(self, count: int) -> pa.Table:
        """Existing orders with another total."""
        return self._priced(self._pool.take(count))

    def cancelled(self, count: int) -> tuple[pa.Table, pa.Table]:
        """The keys of existing orders, and the keys of their generated lines."""
        keys = self._pool.take(count).select(list(KEYS["orders"]))
        lines = pq.read_table(
            self._lines,
            columns=list(KEYS["lineitem"]),
            filters=[("l_orderkey", "in", keys["o_orderkey"].to_pylist())],
        )
        return keys, lines

    def _priced(self, rows: pa.Table) -> pa.Table:
        cents = self._pool.rng.integers(100_000, 60_000_000, rows.num_rows)
        return _set(rows, "o_totalprice", [int(c) * _CENT for c in cents])


def moved_customers(folder: Path, count: int, seed: int) -> pa.Table:
    """Existing customers, each in the nation after its own."""
    rows = Pool(parquet_file(folder, "customer"), count, seed).take(count)
    nations = (rows["c_nationkey"].to_numpy() + 1) % 25
    return _set(rows, "c_nationkey", pa.array(nations))


def _set(
    rows: pa.Table, name: str, values: pa.ChunkedArray | pa.Array | Sequence[object]
) -> pa.Table:
    """The rows with a column replaced, its type kept."""
    place = rows.schema.get_field_index(name)
    field = rows.schema.field(place)
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return rows.set_column(place, field, values.cast(field.type))
    return rows.set_column(place, field, pa.array(values, field.type))
