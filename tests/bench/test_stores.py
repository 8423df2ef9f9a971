"""The paper's warehouse: its sizes, its padded rows, and the sales that are inserted."""

from __future__ import annotations

from collections import Counter

import pytest
from deltalake import DeltaTable

from freshview.bench.stores import PAIRS, TABLES, TOUCHED_CITIES, SalesChanges, kept_stores

SALES = 20_000


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    kept = kept_stores(folder, SALES, 1)
    assert kept_stores(folder, SALES, 1) == kept
    return {name: DeltaTable(kept / name) for name in TABLES}


@pytest.fixture(scope="module")
def rows(tables):
    return {name: table.to_pyarrow_table().to_pylist() for name, table in tables.items()}


def column(rows, name):
    return [row[name] for row in rows]


def test_the_sizes_are_the_papers(rows):
    assert {name: len(rows[name]) for name in TABLES} == {
        "sales": SALES,
        "stores": 1_000,
        "items": 10_000,
        "infostates": 100,
    }
    assert len(set(column(rows["stores"], "city"))) == 100
    categories = Counter(column(rows["items"], "itemID"))
    assert set(categories.values()) == {2}
    assert len(set(column(rows["items"], "category"))) == 1_000


def test_every_kind_of_padded_row_is_there(rows):
    known, sold = set(column(rows["stores"], "storeID")), set(column(rows["sales"], "storeID"))
    states, described = (set(column(rows[t], "state")) for t in ("stores", "infostates"))
    assert len(known - sold) >= 100
    assert sold - known
    assert len(states - described) == 2
    assert len(described - states) == 2


def test_sales_are_in_several_files_in_the_order_in_which_they_were_made(tables, rows):
    assert len(tables["sales"].file_uris()) == 10
    made = sorted(rows["sales"], key=lambda sale: sale["saleID"])
    assert column(made, "saleID") == list(range(SALES))
    assert column(made, "date") == sorted(column(made, "date"))
    assert tables["sales"].metadata().configuration == {"delta.enableChangeDataFeed": "true"}


def test_a_batch_touches_what_the_papers_does(rows):
    city = {row["storeID"]: row["city"] for row in rows["stores"]}
    categories: dict[int, set[str]] = {}
    for row in rows["items"]:
        categories.setdefault(row["itemID"], set()).add(row["category"])
    changes = SalesChanges(SALES, 1)
    sold = set(column(rows["sales"], "storeID"))
    for number in range(3):
        batch = changes.inserted(10_000).to_pylist()
        stores, items = column(batch, "storeID"), column(batch, "itemID")
        assert len(set(zip(stores, items, strict=True))) == PAIRS
        assert len({city[store] for store in stores if store in city}) == TOUCHED_CITIES
        assert len(set().union(*(categories[item] for item in items))) == 1_000
        assert set(stores) - set(city), "one store is unknown"
        assert len((set(stores) - sold) & set(city)) == 2, "two stores had no sales so far"
        assert column(batch, "saleID")[0] == SALES + number * 10_000
        sold |= set(stores)


def test_even_a_small_batch_opens_stores(rows):
    sold = set(column(rows["sales"], "storeID"))
    stores = set(SalesChanges(SALES, 1).inserted(20)["storeID"].to_pylist())
    assert len([store for store in stores - sold if store < 1_000]) == 2
    assert any(store >= 1_000 for store in stores)


def test_the_seed_decides_everything():
    first, again, other = (SalesChanges(SALES, seed).inserted(50) for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_batches_end_when_every_store_has_sales():
    changes = SalesChanges(SALES, 1)
    for _ in range(50):
        changes.inserted(1)
    with pytest.raises(ValueError, match="no stores without sales"):
        changes.inserted(1)
