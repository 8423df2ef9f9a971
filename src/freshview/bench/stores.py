"""The warehouse of [GM06] Examples 1 and 2: sales, stores, items and infostates, and sales to insert.

The sizes are the paper's but for sales: stores 1,000 in 100 cities, each in a state of its own, items
10,000 rows (5,000 items, each in two of 1,000 categories), infostates 100. A store sells a thousand of
the items, so that SISales has about a million pairs as in the paper. Every kind of padded row is there:
stores without sales, sales of unknown stores, states without information, and information on states
without stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import write_deltalake

from freshview.demo.kept_tables import PROPERTIES, keep_table

TABLES = ("sales", "stores", "items", "infostates")
STORES, CITIES, STATES = 1_000, 100, 100
ITEMS, CATEGORIES, SOLD_PER_STORE = 5_000, 1_000, 1_000
UNKNOWN_STORES = 10
STATES_WITHOUT_INFO = 2
PAIRS, TOUCHED_CITIES, OPENED_PER_BATCH = 600, 10, 2
"""What a batch of insertions touches: pairs of store and item, cities, and stores without sales."""

_FILES = 10
_UNKNOWN_SHARE = 0.001
_FIRST_DAY = np.datetime64("1994-01-01")
_DAYS = 3 * 365
_PER_CITY = STORES // CITIES
Numbers = npt.NDArray[np.int64]

_SALES = pa.schema(
    [
        ("saleID", pa.int64()),
        ("storeID", pa.int32()),
        ("itemID", pa.int32()),
        ("date", pa.date32()),
        ("price", pa.decimal128(10, 2)),
    ]
)


def kept_stores(folder: Path, sales: int, seed: int) -> Path:
    """The folder that holds the generated tables, with so many sales, as Delta tables."""
    kept = folder / f"stores-{sales}-{seed}"
    kept.mkdir(parents=True, exist_ok=True)
    small = {"stores": _stores(), "items": _items(), "infostates": _infostates()}
    for name, rows in small.items():
        keep_table(kept / name, partial(_write, iter([rows])))
    keep_table(kept / "sales", partial(_write, _sales(sales, seed)))
    return kept


def _write(files: Iterator[pa.Table], table: Path) -> None:
    """One commit and one file for each piece."""
    for number, rows in enumerate(files):
        if number == 0:
            write_deltalake(str(table), rows, configuration=PROPERTIES)
        else:
            write_deltalake(str(table), rows, mode="append")


def _stores() -> pa.Table:
    numbers = range(STORES)
    return pa.table(
        {
            "storeID": pa.array(numbers, pa.int32()),
            "city": [f"city {number // _PER_CITY:02}" for number in numbers],
            "state": [_state(number // _PER_CITY % STATES) for number in numbers],
        }
    )


def _items() -> pa.Table:
    half = CATEGORIES // 2
    rows = [(item, part * half + item % half) for item in range(ITEMS) for part in (0, 1)]
    return pa.table(
        {
            "itemID": pa.array([item for item, _ in rows], pa.int32()),
            "category": [f"category {category:03}" for _, category in rows],
        }
    )


def _infostates() -> pa.Table:
    numbers = range(STATES_WITHOUT_INFO, STATES_WITHOUT_INFO + STATES)
    return pa.table(
        {
            "state": [_state(number) for number in numbers],
            "area": pa.array([1_000 + 7 * number for number in numbers], pa.int64()),
            "population": pa.array([90_000 + 311 * number for number in numbers], pa.int64()),
        }
    )


def _state(number: int) -> str:
    return f"state {number:03}"


def _sales(count: int, seed: int) -> Iterator[pa.Table]:
    """The sales in the order in which they were made, of three years, in several pieces.

    The last store of each city has none yet.
    """
    rng = np.random.default_rng(seed)
    selling = np.array([store for store in range(STORES) if not _is_new(store)])
    for ids in np.array_split(np.arange(count, dtype=np.int64), min(_FILES, count)):
        stores = rng.choice(selling, len(ids))
        unknown = rng.random(len(ids)) < _UNKNOWN_SHARE
        stores[unknown] = STORES + rng.integers(0, UNKNOWN_STORES, int(unknown.sum()))
        items = _sold(stores, rng.integers(0, SOLD_PER_STORE, len(ids)))
        days = _FIRST_DAY + ids * _DAYS // count
        yield _sold_rows(ids, stores, items, days, rng)


def _is_new(store: int) -> bool:
    return store % _PER_CITY == _PER_CITY - 1


def _sold(stores: Numbers, places: Numbers) -> Numbers:
    """The items at these places of what each store sells: a thousand in a row, its own ones."""
    return (7 * stores + places) % ITEMS


def _sold_rows(
    ids: Numbers,
    stores: Numbers,
    items: Numbers,
    days: npt.NDArray[np.datetime64],
    rng: np.random.Generator,
) -> pa.Table:
    prices = rng.integers(100, 100_000, len(ids)) / 100
    columns = (ids, stores, items, days, prices)
    cast = [pa.array(c).cast(field.type) for c, field in zip(columns, _SALES, strict=True)]
    return pa.Table.from_arrays(cast, schema=_SALES)


class SalesChanges:
    """Batches of sales to insert, each of ten cities, all categories and some newly opened stores."""

    def __init__(self, first_id: int, seed: int) -> None:
        self._next_id = first_id
        self._rng = np.random.default_rng([seed, 1])
        self._closed = list(self._rng.permutation(CITIES))
        """The cities whose last store has had no sale yet."""

    def inserted(self, count: int) -> pa.Table:
        """The next batch. Raises ValueError when every store has sales."""
        if len(self._closed) < OPENED_PER_BATCH:
            raise ValueError(f"there are no stores without sales left for another {count} rows")
        opening, self._closed = self._closed[:OPENED_PER_BATCH], self._closed[OPENED_PER_BATCH:]
        others = [city for city in self._rng.permutation(CITIES) if city not in opening]
        cities = [*opening, *others[: TOUCHED_CITIES - OPENED_PER_BATCH]]
        opened = [_PER_CITY * city + _PER_CITY - 1 for city in opening]
        unknown = STORES + int(self._rng.integers(UNKNOWN_STORES))
        old = [_PER_CITY * city + place for place in range(_PER_CITY - 1) for city in cities]
        touched = np.array([*opened, unknown, *old])
        pairs = np.arange(count) % PAIRS
        stores = touched[pairs % len(touched)]
        items = _sold(stores, _places(stores, pairs))
        ids = np.arange(self._next_id, self._next_id + count, dtype=np.int64)
        self._next_id += count
        days = np.full(count, _FIRST_DAY + _DAYS)
        return _sold_rows(ids, stores, items, days, self._rng)


def _places(stores: Numbers, pairs: Numbers) -> Numbers:
    """Which of a store's items are sold so that consecutive pairs go through all categories."""
    half = CATEGORIES // 2
    return (pairs - 7 * stores) % half + half * (pairs // half)
