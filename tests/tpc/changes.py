"""Seeded batches of inserts, updates and deletes on every table of a TPC database.

New values come from other rows of the same column, so that changed rows still join and still meet the
predicates of the queries; new rows take a new number in the last column of their key, and later ones refer
to them. What was deleted
comes back later, half of it at a time, so that groups empty and return. A batch may be aimed at rows, which
are then among those that it deletes.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Collection, Mapping

import pyarrow as pa

from freshview.runtime.table_changes import TableChanges

KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "tpch": {
        "customer": ("c_custkey",),
        "lineitem": ("l_orderkey", "l_linenumber"),
        "nation": ("n_nationkey",),
        "orders": ("o_orderkey",),
        "part": ("p_partkey",),
        "partsupp": ("ps_partkey", "ps_suppkey"),
        "region": ("r_regionkey",),
        "supplier": ("s_suppkey",),
    },
    "tpcds": {
        "call_center": ("cc_call_center_sk",),
        "catalog_page": ("cp_catalog_page_sk",),
        "catalog_returns": ("cr_item_sk", "cr_order_number"),
        "catalog_sales": ("cs_item_sk", "cs_order_number"),
        "customer": ("c_customer_sk",),
        "customer_address": ("ca_address_sk",),
        "customer_demographics": ("cd_demo_sk",),
        "date_dim": ("d_date_sk",),
        "household_demographics": ("hd_demo_sk",),
        "income_band": ("ib_income_band_sk",),
        "inventory": ("inv_item_sk", "inv_warehouse_sk", "inv_date_sk"),
        "item": ("i_item_sk",),
        "promotion": ("p_promo_sk",),
        "reason": ("r_reason_sk",),
        "ship_mode": ("sm_ship_mode_sk",),
        "store": ("s_store_sk",),
        "store_returns": ("sr_item_sk", "sr_ticket_number"),
        "store_sales": ("ss_item_sk", "ss_ticket_number"),
        "time_dim": ("t_time_sk",),
        "warehouse": ("w_warehouse_sk",),
        "web_page": ("wp_web_page_sk",),
        "web_returns": ("wr_item_sk", "wr_order_number"),
        "web_sales": ("ws_item_sk", "ws_order_number"),
        "web_site": ("web_site_sk",),
    },
}
REFERENCES = {
    "tpch": {
        "custkey": "customer",
        "nationkey": "nation",
        "orderkey": "orders",
        "partkey": "part",
        "regionkey": "region",
        "suppkey": "supplier",
    },
    "tpcds": {
        "_addr_sk": "customer_address",
        "_call_center_sk": "call_center",
        "_catalog_page_sk": "catalog_page",
        "_cdemo_sk": "customer_demographics",
        "_customer_sk": "customer",
        "_date_sk": "date_dim",
        "_hdemo_sk": "household_demographics",
        "_income_band_sk": "income_band",
        "_item_sk": "item",
        "_promo_sk": "promotion",
        "_reason_sk": "reason",
        "_ship_mode_sk": "ship_mode",
        "_store_sk": "store",
        "_time_sk": "time_dim",
        "_warehouse_sk": "warehouse",
        "_web_page_sk": "web_page",
        "_web_site_sk": "web_site",
    },
}
"""How the name of a column ends that holds the key of a row of a table."""
REFERRED = 0.3
"""How often a changed row comes to refer to a row that was inserted before it."""
STEADY = {
    "date_dim": (
        *("d_date", "d_date_id", "d_day_name", "d_dow", "d_dom", "d_moy", "d_qoy", "d_year"),
        *("d_month_seq", "d_quarter_seq", "d_week_seq"),
    )
}
"""Columns that no update touches. Queries 6, 54 and 58 select the one month or week of a day: a day that
moves to another month gives them two, which is an error of theirs."""
AIMED_AT_ROWS_MIN = 20
"""Tables with fewer rows are not aimed at: with one of them goes every row of many views."""
SHARE = 0.01
"""Of a table's rows, how many each kind of change touches in a batch."""

_DAY_ZERO = 1_721_425
"""The key of a day is its Julian number."""

Row = dict[str, object]
Key = tuple[object, ...]


class Changing:
    """One table, as it is after the batches so far."""

    def __init__(self, rows: pa.Table, key: tuple[str, ...], steady: tuple[str, ...] = ()) -> None:
        self.schema = rows.schema
        self.key = key
        self.steady = steady
        self.rows: list[Row] = rows.to_pylist()
        self.gone: list[Row] = []
        self.inserted: list[object] = []
        """The last column of the key of each row that was new."""
        self.references: dict[str, Changing] = {}
        """The tables that its columns refer to."""
        self._last = max((_number(row[key[-1]]) for row in self.rows), default=0)

    def batch(self, dice: random.Random, aimed: Collection[Key] = ()) -> TableChanges:
        """Some rows deleted, some updated, some new and some of the deleted ones again."""
        few = max(1, round(SHARE * len(self.rows)))
        dice.shuffle(self.rows)
        if aimed and len(self.rows) >= AIMED_AT_ROWS_MIN:
            few = max(few, len(aimed))
            self.rows.sort(key=lambda row: tuple(row[c] for c in self.key) not in aimed)
        back = [self.gone.pop() for _ in range((len(self.gone) + 1) // 2)]
        # A table of one row loses it in one batch of three, and with it goes every row of its views.
        leaving = few if len(self.rows) > 2 or dice.random() < 0.3 else 0
        deleted, self.rows = self.rows[:leaving], self.rows[leaving:]
        updated = [self._updated(row, dice) for row in self.rows[:few]]
        self.rows[: len(updated)] = updated
        added = [self._new(row, dice) for row in dice.choices(self.rows or deleted, k=few)]
        self.inserted += [row[self.key[-1]] for row in added]
        self.gone += deleted
        self.rows += [*back, *added]
        return TableChanges(
            insert=pa.Table.from_pylist([*back, *added], self.schema),
            update=pa.Table.from_pylist(updated, self.schema),
            delete=[{column: row[column] for column in self.key} for row in deleted] or None,
            key=self.key,
        )

    def _updated(self, row: Row, dice: random.Random) -> Row:
        """One to three columns take the values of other rows, or now and then none."""
        kept = (*self.key, *self.steady)
        free = [name for name in self.schema.names if name not in kept]
        changed = dict(row)
        for name in dice.sample(free, min(len(free), dice.randint(1, 3))):
            changed[name] = None if dice.random() < 0.05 else dice.choice(self.rows or [row])[name]
        return self._referring(changed, set(free), dice)

    def _referring(self, row: Row, columns: Collection[str], dice: random.Random) -> Row:
        """The row, which may refer to a new row of another table by one of the columns."""
        ways = [n for n, other in self.references.items() if n in columns and other.inserted]
        if ways and dice.random() < REFERRED:
            name = dice.choice(ways)
            row[name] = dice.choice(self.references[name].inserted)
        return row

    def _new(self, like: Row, dice: random.Random) -> Row:
        self._last += 1
        new = {**self._updated(like, dice), self.key[-1]: self._last}
        new = self._referring(new, self.key[:-1], dice)
        if "d_date" in self.steady:
            new["d_date"] = dt.date.fromordinal(self._last - _DAY_ZERO)
        return new


class Batches:
    """Batches over all tables of a database."""

    def __init__(self, kind: str, tables: Mapping[str, pa.Table], seed: int) -> None:
        self._dice = random.Random(seed)
        self._tables = {
            name: Changing(rows, KEYS[kind][name], STEADY.get(name, ()))
            for name, rows in tables.items()
        }
        for name, table in self._tables.items():
            for column in table.schema.names:
                for ending, other in REFERENCES[kind].items():
                    if column.endswith(ending) and other != name:
                        table.references[column] = self._tables[other]

    def next(self, aimed: Mapping[str, Collection[Key]]) -> dict[str, TableChanges]:
        """The next batch, which deletes the rows of these keys, by table."""
        return {
            name: table.batch(self._dice, aimed.get(name, ()))
            for name, table in self._tables.items()
        }


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
