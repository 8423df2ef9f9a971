"""The warehouse of [GM06] Examples 1 and 2: stores, items, sales and infostates, in the paper's sizes.

stores 1,000 in 100 cities, items 10,000 in 1,000 categories (each item in two), infostates 100, and
10,000 sales inserted that touch 600 pairs of store and item, 10 cities and all categories. Of the
billion sales only those of the touched pairs matter to either method, ``per_pair`` for each; the paper
has 1,000.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.evaluate import Bag, Table
from freshview.algebra.expressions import Call, Column, equal, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    OuterJoin,
    Relation,
    Scan,
    Select,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.delta.transaction import Delta, Transaction

STORES, CITIES, STATES = 1_000, 100, 100
ITEMS, CATEGORIES = 10_000, 1_000
INSERTED, PAIRS, TOUCHED_CITIES = 10_000, 600, 10
WITHOUT_SALES = 10
SCHEMAS = {
    "stores": ("storeID", "city", "state"),
    "items": ("itemID", "category"),
    "sales": ("saleID", "storeID", "itemID", "date", "price"),
    "infostates": ("state", "area"),
}


def pair(number: int) -> tuple[int, int]:
    """The store and the item of one of the touched pairs.

    Stores of the first ten cities, and 500 items whose two categories cover all thousand.
    """
    store = number + number // (CATEGORIES // 2)
    return store % (STORES // CITIES * TOUCHED_CITIES), number % (CATEGORIES // 2)


def state(per_pair: int) -> dict[str, Table]:
    stores = Counter({(s, s // (STORES // CITIES), s % STATES): 1 for s in range(STORES)})
    half = CATEGORIES // 2
    items: Bag = Counter()
    for item in range(ITEMS // 2):
        items[item, item % half] += 1
        items[item, half + item % half] += 1
    sales = Counter(
        {
            (number * per_pair + copy, *pair(number), 96, 10 + copy): 1
            for number in range(PAIRS)
            for copy in range(per_pair)
        }
    )
    # All stores but ten have a sale, of an item that no inserted one is of.
    for store in range(STORES // CITIES * TOUCHED_CITIES, STORES - WITHOUT_SALES):
        sales[1_000_000 + store, store, CATEGORIES // 2, 96, 1] = 1
    infostates = Counter({(s, 100 + s): 1 for s in range(STATES)})
    rows = {"stores": stores, "items": items, "sales": sales, "infostates": infostates}
    return {name: Table(SCHEMAS[name], rows[name]) for name in SCHEMAS}


def insertions(count: int = INSERTED) -> Transaction:
    first = 10_000_000
    rows = Counter({(first + n, *pair(n % PAIRS), 97, 5 + n % 7): 1 for n in range(count)})
    return Transaction({"sales": Delta(rows, Counter())})


@dataclass(frozen=True)
class Views:
    """The views of both examples; each call makes new occurrences of the tables."""

    new: Numbering

    def scan(self, table: str) -> dict[str, Attribute]:
        return {name: self.new.attribute(name, "bigint") for name in SCHEMAS[table]}

    def sis_sales(self) -> tuple[Aggregate, dict[str, Attribute]]:
        """SISales = π_{storeID, itemID, sum(price), count(*)}(σ_{date > 95}(sales))."""
        a = self.scan("sales")
        recent = Select(
            Scan("sales", tuple(a.values())), Call("<", (integer(95), Column(a["date"])), "boolean")
        )
        total = self._output("SumSISales", AggregateCall("sum", (Column(a["price"]),), "bigint"))
        number = self._output("NumSISales", AggregateCall("count", (), "bigint"))
        return Aggregate(recent, (a["storeID"], a["itemID"]), (total, number)), a

    def city_sales(self) -> Relation:
        return self._by("stores", "storeID", "city")

    def category_sales(self) -> Relation:
        return self._by("items", "itemID", "category")

    def _by(self, table: str, key: str, group: str) -> Relation:
        inner, sales = self.sis_sales()
        other = self.scan(table)
        joined = Join(
            inner, Scan(table, tuple(other.values())), equal(Column(sales[key]), Column(other[key]))
        )
        sums = tuple(
            self._output(
                f"sum of {o.attribute.name}", AggregateCall("sum", (Column(o.attribute),), "bigint")
            )
            for o in inner.aggregates
        )
        return Aggregate(joined, (other[group],), sums)

    def ss_info(self) -> OuterJoin:
        """SSInfo = sales ⟗ stores."""
        sales, stores = (self.scan(t) for t in ("sales", "stores"))
        return OuterJoin(
            Scan("sales", tuple(sales.values())),
            Scan("stores", tuple(stores.values())),
            equal(Column(sales["storeID"]), Column(stores["storeID"])),
            True,
            True,
        )

    def ss_full_info(self) -> Relation:
        """SSFullInfo = SSInfo ⟗ infostates."""
        return self._with_info(self.ss_info())

    def ss_full_info_over_a_table(self) -> Relation:
        """SSInfo ⟗ infostates, where SSInfo is a table."""
        columns = self.ss_info().attributes
        return self._with_info(Scan("ssinfo", columns))

    def _with_info(self, inner: Relation) -> OuterJoin:
        info = self.scan("infostates")
        state = inner.attributes[-1]
        table = Scan("infostates", tuple(info.values()))
        return OuterJoin(inner, table, equal(Column(state), Column(info["state"])), True, True)

    def _output(self, name: str, call: AggregateCall) -> AggregateOutput:
        return AggregateOutput(self.new.attribute(name, "bigint"), call)
