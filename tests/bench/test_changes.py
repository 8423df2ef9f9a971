"""The change generator: seeded, of real rows, and no two changes of the same row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freshview.demo.batches import demo_batches
from freshview.demo.changes import LineChanges, OrderChanges, Pool, moved_customers
from freshview.demo.kept_tables import copy_table
from freshview.demo.tpch import KEYS, cached_tables, generate, parquet_file

TABLES = ("lineitem", "orders", "customer")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tpch")
    generate(made, 0.002, TABLES)
    return made


def keys(rows: pa.Table) -> set[tuple[int, int]]:
    return set(zip(rows["l_orderkey"].to_pylist(), rows["l_linenumber"].to_pylist(), strict=True))


@pytest.fixture(scope="module")
def generated_keys(folder):
    return keys(pq.read_table(parquet_file(folder, "lineitem"), columns=list(KEYS["lineitem"])))


def test_the_seed_decides_everything(folder):
    first, again, other = (LineChanges(folder, 100, seed) for seed in (1, 1, 2))
    a, b, c = (changes.mixed(100) for changes in (first, again, other))
    assert a.insert.equals(b.insert)
    assert a.update.equals(b.update)
    assert a.delete.equals(b.delete)
    assert not a.insert.equals(c.insert)


def test_whole_demos_repeat(folder):
    def rows(seed):
        return [
            (batch.title, table, kind, getattr(change, kind).to_pylist())
            for batch in demo_batches(folder, seed)
            for table, change in batch.changes.items()
            for kind in ("insert", "update", "delete")
            if getattr(change, kind) is not None
        ]

    assert rows(3) == rows(3)
    assert rows(3) != rows(4)


def test_changes_are_of_real_rows_and_never_meet(folder, generated_keys):
    changes = LineChanges(folder, 300, 1)
    seen: set[tuple[int, int]] = set()
    for _ in range(3):
        batch = changes.mixed(100)
        counts = (batch.insert.num_rows, batch.update.num_rows, batch.delete.num_rows)
        assert counts == (40, 30, 30)
        assert not keys(batch.insert) & generated_keys
        for touched in (keys(batch.insert), keys(batch.update), keys(batch.delete)):
            assert not touched & seen
            seen |= touched
        assert keys(batch.update) | keys(batch.delete) <= generated_keys
    assert len(seen) == 300


def test_an_update_changes_the_price_and_keeps_the_key(folder):
    updated = LineChanges(folder, 50, 1).updated(50)
    generated = pq.read_table(parquet_file(folder, "lineitem")).cast(updated.schema)
    joined = updated.join(
        generated.select(["l_orderkey", "l_linenumber", "l_extendedprice"]),
        ["l_orderkey", "l_linenumber"],
        right_suffix="_before",
    )
    pairs = zip(joined["l_extendedprice"], joined["l_extendedprice_before"], strict=True)
    assert joined.num_rows == 50
    assert all(now != before for now, before in pairs)


def test_new_orders_have_free_keys_and_cancelled_ones_all_their_lines(folder, generated_keys):
    orders = OrderChanges(folder, 30, 1)
    used = {order for order, _ in generated_keys}
    assert not set(orders.inserted(10)["o_orderkey"].to_pylist()) & used
    cancelled, lines = orders.cancelled(20)
    gone = set(cancelled["o_orderkey"].to_pylist())
    assert keys(lines) == {key for key in generated_keys if key[0] in gone}


def test_customers_move_to_another_nation(folder):
    moved = moved_customers(folder, 10, 1)
    customers = pq.read_table(parquet_file(folder, "customer")).to_pylist()
    before = {row["c_custkey"]: row["c_nationkey"] for row in customers}
    assert all(before[r["c_custkey"]] != r["c_nationkey"] for r in moved.to_pylist())


def test_a_pool_gives_each_row_once(folder):
    pool = Pool(parquet_file(folder, "lineitem"), 10, 1)
    pool.take(8)
    with pytest.raises(ValueError, match="2 are left"):
        pool.take(3)
    with pytest.raises(ValueError, match="were to be drawn"):
        Pool(parquet_file(folder, "customer"), 10**6, 1)


def test_a_copy_of_a_table_goes_its_own_way(folder, tmp_path):
    from deltalake import DeltaTable, write_deltalake

    kept = cached_tables(tmp_path, 0.002, ["customer"])
    copy_table(kept / "customer", tmp_path / "copy")
    write_deltalake(tmp_path / "copy", moved_customers(folder, 5, 1), mode="append")
    versions = [DeltaTable(p).version() for p in (kept / "customer", tmp_path / "copy")]
    assert versions == [0, 1]
