"""Row provenance on Spark and Delta: the base rows of a view's rows, at the versions it was computed from."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

import freshview as fv
from freshview.errors import (
    InvalidKeyValue,
    LineageLost,
    NoSuchRow,
    NotFresh,
    UnknownColumn,
    UnknownName,
)
from freshview.planner.plan import Limits
from freshview.runtime.clock import fixed_clock
from freshview.runtime.sources import Sources
from freshview.runtime.warehouse import Warehouse
from freshview.runtime.why import Provenance
from freshview.storage.choose import Limits as StorageLimits
from tests.cli.run import in_process
from tests.goldens import check_golden
from tests.integration.lineage_cases import MORE

pytestmark = pytest.mark.spark

CUSTOMERS = pa.table(
    {
        "cust": [1, 2, 3, 7, None],
        "region": ["EU", "EU", "US", None, "EU"],
        "since": [dt.date(2024, 1, day) for day in (1, 1, 2, 3, 4)],
    }
)
ORDERS = pa.table(
    {
        "id": [1, 2, 3, 4, 4, 5],
        "cust": [1, 1, 2, 3, 3, None],
        "amount": pa.array([Decimal(n) for n in (10, 20, 30, 40, 40, 50)], pa.decimal128(10, 2)),
    }
)
VIEWS = {
    "revenue": "SELECT c.region, count(*) AS n, sum(o.amount) AS total FROM customers c"
    " JOIN orders o ON c.cust = o.cust GROUP BY c.region",
    "bought": "SELECT c.cust, c.region, o.id FROM customers c LEFT JOIN orders o"
    " ON c.cust = o.cust AND o.amount > 15",
    "large": "SELECT region, total FROM (SELECT c.region, sum(o.amount) AS total FROM customers c"
    " JOIN orders o ON c.cust = o.cust GROUP BY c.region) WHERE total > 50",
    "active": "SELECT cust, region FROM customers c"
    " WHERE EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.cust)",
    "idle": "SELECT cust, region FROM customers c"
    " WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.cust)",
    "ids": "SELECT cust AS id FROM customers UNION ALL SELECT id FROM orders",
    "regions": "SELECT DISTINCT region FROM customers",
    "unsold": "SELECT cust FROM customers EXCEPT SELECT cust FROM orders",
    "top": "SELECT region, total * 2 AS twice FROM revenue WHERE n > 1",
    "all_in_all": "SELECT count(*) AS n, sum(amount) AS total FROM orders",
}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    warehouse = fv.open(tmp_path_factory.mktemp("why") / "shop", spark)
    warehouse.create_table("customers", CUSTOMERS)
    warehouse.create_table("orders", ORDERS)
    for name, query in VIEWS.items():
        warehouse.create_view(name, query)
    return warehouse


def base(found: Provenance) -> dict[str, list[tuple[Any, ...]]]:
    """The first two columns and the copies of the rows of each occurrence."""
    names: dict[str, list[tuple[Any, ...]]] = {}
    for one in found.tables:
        name = "/".join((*one.via, one.table))
        rows = [(row[0], row[1], row["__copies"]) for row in one.rows.collect()]
        assert sum(row[-1] for row in rows) == one.count
        names[name + "'" * (name in names)] = rows
    return names


def test_a_group_comes_from_the_rows_that_join(shop: Warehouse) -> None:
    found = shop.why("revenue", {"region": "EU"})
    assert [tuple(row) for row in found.view.rows.collect()] == [("EU", 3, Decimal(60), 1)]
    assert base(found) == {
        "customers": [(1, "EU", 1), (2, "EU", 1)],
        "orders": [(1, 1, 1), (2, 1, 1), (3, 2, 1)],
    }
    assert (found.absent, found.absent_count) == ((), 0)
    assert base(shop.why("revenue", {"region": "US"}))["orders"] == [(4, 3, 2)]


def test_any_columns_can_be_the_key(shop: Warehouse) -> None:
    assert base(shop.why("revenue", {"TOTAL": "60.00"})) == base(shop.why("revenue", {"n": 3}))
    assert base(shop.why("revenue", {"n": 3, "total": Decimal(60)}))["orders"][0] == (1, 1, 1)
    both = shop.why("revenue")
    assert both.view.count == 2
    assert base(both)["customers"] == [(1, "EU", 1), (2, "EU", 1), (3, "US", 1)]


def test_a_padded_row_says_what_is_missing(shop: Warehouse) -> None:
    found = shop.why("bought", {"cust": 7})
    assert base(found) == {"customers": [(7, None, 1)], "orders": []}
    assert found.absent == ("padded: no row of orders with amount > 15 has cust = 7",)
    matched = shop.why("bought", {"id": 4})
    assert base(matched) == {"customers": [(3, "US", 1)], "orders": [(4, 3, 2)]}
    assert matched.absent == ()


def test_a_null_key_finds_nulls(shop: Warehouse) -> None:
    found = shop.why("bought", {"cust": None})
    assert base(found) == {"customers": [(None, "EU", 1)], "orders": []}
    assert found.absent == ("padded: no row of orders with amount > 15 has cust = NULL",)
    assert base(shop.why("regions", {"region": None})) == {"customers": [(7, None, 1)]}


def test_having(shop: Warehouse) -> None:
    assert base(shop.why("large", {"region": "US"})) == {
        "customers": [(3, "US", 1)],
        "orders": [(4, 3, 2)],
    }


def test_exists_has_its_witnesses_and_not_exists_says_that_there_is_none(shop: Warehouse) -> None:
    assert base(shop.why("active", {"cust": 1})) == {
        "customers": [(1, "EU", 1)],
        "orders": [(1, 1, 1), (2, 1, 1)],
    }
    found = shop.why("idle", {"cust": 7})
    assert base(found) == {"customers": [(7, None, 1)]}
    assert found.absent == ("no row of orders has cust = 7",)
    assert shop.why("unsold").absent == ("no row of orders has cust = 7",)


def test_many_sentences_are_counted_and_the_first_are_told(shop: Warehouse) -> None:
    found = shop.why("idle", limit=1)
    assert (len(found.absent), found.absent_count) == (1, 2)


def test_a_union_leads_into_each_branch_and_distinct_to_all_copies(shop: Warehouse) -> None:
    assert base(shop.why("ids", {"id": 3})) == {
        "customers": [(3, "US", 1)],
        "orders": [(3, 2, 1)],
    }
    found = shop.why("ids", {"id": 4})
    assert base(found) == {"customers": [], "orders": [(4, 3, 2)]}
    assert found.view.count == 2
    assert base(shop.why("regions", {"region": "EU"})) == {
        "customers": [(None, "EU", 1), (1, "EU", 1), (2, "EU", 1)]
    }


def test_a_view_on_a_view_leads_to_base_tables(shop: Warehouse) -> None:
    assert base(shop.why("top", {"region": "US"})) == {
        "revenue/customers": [(3, "US", 1)],
        "revenue/orders": [(4, 3, 2)],
    }


def test_a_global_aggregate_comes_from_all(shop: Warehouse) -> None:
    assert [n for *_, n in base(shop.why("all_in_all"))["orders"]] == [1, 1, 1, 2, 1]


@pytest.mark.parametrize("case", MORE)
def test_other_operators(case: str, shop: Warehouse) -> None:
    query, key, expected = MORE[case]
    shop.create_view("one", query, replace_existing=True)
    assert base(shop.why("one", key)) == expected


def test_columns_that_cannot_be_compared(shop: Warehouse) -> None:
    shop.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW one AS"
        " SELECT cust, map('r', region) AS m FROM customers WHERE cust < 3"
    )
    assert base(shop.why("one", {"cust": 1})) == {"customers": [(1, "EU", 1)]}
    with pytest.raises(InvalidKeyValue) as refused:
        shop.why("one", {"m": "x"})
    assert refused.value.parameters["column"] == "m"
    shop.sql(
        "CREATE MATERIALIZED VIEW maybe AS"
        " SELECT cust, if(cust = 2, null, map('r', region)) AS m FROM customers"
    )
    assert base(shop.why("maybe", {"m": None})) == {"customers": [(2, "EU", 1)]}


def test_rows_are_told_apart_by_doubles_alone(spark: SparkSession, tmp_path: Path) -> None:
    """The groups are not shown; sums and averages of doubles come out the same each time."""
    warehouse = fv.open(tmp_path, spark)
    rows = [("a", 0.1, 1), ("a", 0.2, 2), ("b", 2.0, 3), ("b", 3.5, 4), (None, 9.0, 5)]
    names, values, numbers = zip(*rows, strict=True)
    warehouse.create_table("t", pa.table({"i": numbers, "k": names, "x": values}))
    views = {
        "largest": ("SELECT max(x) AS m FROM t GROUP BY k", 0.2),
        "mean": ("SELECT avg(i) AS m FROM t GROUP BY k", 1.5),
        "total": ("SELECT sum(x) AS m FROM t GROUP BY k", 0.1 + 0.2),
        "spread": ("SELECT stddev(i) + max(x) AS m FROM t GROUP BY k HAVING max(x) < 1", None),
        "beside": ("SELECT sum(x) OVER (PARTITION BY k) AS m FROM t", 0.1 + 0.2),
    }
    for name, (query, value) in views.items():
        warehouse.create_view(name, query)
        found = base(warehouse.why(name, {} if value is None else {"m": value}))
        assert found == {"t": [(1, "a", 1), (2, "a", 1)]}, name


def test_the_lineage_is_that_of_the_last_refresh(spark: SparkSession, tmp_path: Path) -> None:
    """Tables and the view between have moved on since; each view is traced at what it had consumed."""
    warehouse = fv.open(tmp_path, spark)
    warehouse.create_table("customers", CUSTOMERS)
    warehouse.create_table("orders", ORDERS)
    for name in ("revenue", "top"):
        warehouse.create_view(name, VIEWS[name])
    new = pa.table({"id": [9], "cust": [3], "amount": pa.array([Decimal(1)], pa.decimal128(10, 2))})
    warehouse.apply({"orders": fv.TableChanges(insert=new)})
    assert base(warehouse.why("revenue", {"region": "US"}))["orders"] == [(4, 3, 2)]
    with pytest.raises(NoSuchRow):
        warehouse.why("revenue", {"n": 3, "region": "US"})
    warehouse.refresh("revenue")
    assert base(warehouse.why("revenue", {"region": "US"}))["orders"] == [(4, 3, 2), (9, 3, 1)]
    assert base(warehouse.why("top", {"region": "US"}))["revenue/orders"] == [(4, 3, 2)]
    warehouse.refresh()
    found = warehouse.why("top", {"region": "US"})
    assert base(found)["revenue/orders"] == [(4, 3, 2), (9, 3, 1)]
    assert [one.version for one in found.tables] == [0, 1]


def test_a_moving_window_names_the_day_that_it_was_refreshed_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    clock = fixed_clock("2024-01-05T12:00:00+00:00")
    warehouse = fv.open(tmp_path, spark, clock=clock)
    warehouse.create_table("customers", CUSTOMERS)
    warehouse.create_view(
        "recent", "SELECT cust, since FROM customers WHERE since >= current_date() - 3"
    )
    later = fv.open(tmp_path, spark, clock=fixed_clock("2024-01-09T12:00:00+00:00"))
    found = later.why("recent", {"cust": 3})
    rows = {one.table.split(" in ")[0]: one.rows.collect() for one in found.tables}
    assert [row[0] for row in rows["customers"]] == [3]
    assert [row[0] for row in rows["current_date()"]] == [dt.date(2024, 1, 5)]


def test_a_version_that_is_gone_is_named(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fv.open(tmp_path, spark)
    warehouse.create_table("orders", ORDERS)
    warehouse.create_view("all_in_all", VIEWS["all_in_all"])
    path = tmp_path / "tables" / "orders"
    table = DeltaTable(path)
    table.delete("id < 5")
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(LineageLost) as lost:
        warehouse.why("all_in_all")
    assert lost.value.parameters["table"] == "orders"
    assert str(lost.value.parameters["version"]) == "0"
    warehouse.refresh()
    assert base(warehouse.why("all_in_all")) == {"orders": [(5, None, 1)]}


def test_rows_that_stay_in_spark_are_traced_the_same_way(
    spark: SparkSession, shop: Warehouse
) -> None:
    """Nothing comes to the driver: lookups, steps and results are Spark's."""
    none = Limits(delta_rows=0, delta_bytes=0, lookup_rows=0, whole_view_rows=0)
    large = Warehouse(shop.root, spark, none, StorageLimits(lookup_rows=0))
    shop.create_view("chain", MORE["a recursion"][0])
    for view, key in (("top", {"region": "US"}), ("idle", {}), ("chain", {"cust": 4})):
        assert base(large.why(view, key)) == base(shop.why(view, key))
        assert large.why(view, key).absent == shop.why(view, key).absent


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Each lookup that found its rows, by table and key, and each scan of a whole table."""
    found: list[tuple[str, str, int]] = []
    lookup, scan = Sources.lookup, Sources.scan

    def counted(self: Any, name: str, version: int, columns: Any, key: str, *more: Any) -> Any:
        rows = lookup(self, name, version, columns, key, *more)
        found.append((name, key, rows.num_rows))
        return rows

    def scanned(self: Any, name: str, *more: Any) -> Any:
        found.append((name, "all rows", -1))
        return scan(self, name, *more)

    monkeypatch.setattr(Sources, "lookup", counted)
    monkeypatch.setattr(Sources, "scan", scanned)
    return found


def test_only_rows_that_can_matter_are_read(
    shop: Warehouse, read: list[tuple[str, str, int]]
) -> None:
    """The key leads to the customers of the region, and they to their orders."""
    shop.why("revenue", {"region": "US"})
    assert read[:3] == [("revenue", "region", 1), ("customers", "region", 1), ("orders", "cust", 2)]
    assert all(number <= 2 for *_, number in read)
    assert -1 not in [number for *_, number in read]


def test_a_key_that_finds_too_much_is_given_up(
    shop: Warehouse, read: list[tuple[str, str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the two rows at hand the flag tells more apart than the number, but it finds ten rows."""
    rows = [(1, 1), (1, 2), *((number, number % 2 + 1) for number in range(3, 11))]
    numbers, flags = zip(*rows, strict=True)
    shop.create_table("flagged", pa.table({"number": numbers, "flag": flags}))
    shop.create_view("both", "SELECT number, flag FROM flagged")
    monkeypatch.setattr("freshview.runtime.why.FEW", 5)
    read.clear()
    assert base(shop.why("both", {"number": 1})) == {"flagged": [(1, 1, 1), (1, 2, 1)]}
    assert read[1:] == [("flagged", "number", 2)] * 2


def test_names_that_are_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    """A table may have a column named as the copies are, and names that have to be quoted."""
    write_deltalake(tmp_path / "odd", pa.table({"__copies": [5, 5], "a.b`c": [1, 1], "K": [1, 2]}))
    warehouse = fv.open(tmp_path / "shop", spark)
    warehouse.register("odd", tmp_path / "odd")
    warehouse.create_view("one", "SELECT `a.b``c`, count(*) AS n FROM odd GROUP BY 1")
    found = warehouse.why("one", {"a.b`c": 1})
    rows = found.tables[0].rows
    assert rows.columns == ["__copies", "a.b`c", "K", "__copies_"]
    assert [tuple(row) for row in rows.collect()] == [(5, 1, 1, 1), (5, 1, 2, 1)]


def test_a_view_by_a_function(shop: Warehouse) -> None:
    @shop.view
    def dear() -> DataFrame:
        return shop.table("orders").where("amount > 35").groupBy("cust").count()

    assert base(shop.why("dear", {"cust": 3})) == {"orders": [(4, 3, 2)]}


def test_values_are_of_the_columns_type(shop: Warehouse) -> None:
    shop.create_view(
        "one",
        "SELECT since, CAST(amount AS DOUBLE) AS x, id = 1 AS first, unhex('ff0a') AS bytes, amount,"
        " CAST(CONCAT(since, ' 10:0', id, ':00') AS TIMESTAMP) AS at FROM customers c JOIN orders o ON c.cust = o.cust",
        replace_existing=True,
    )
    for key in (
        {"since": "2024-01-01", "first": "true"},
        {"since": dt.date(2024, 1, 1), "first": True, "x": 10},
        {"x": "1e1", "bytes": "FF0A"},
        {"amount": "10"},
        {"at": "2024-01-01 10:01:00"},
        {"amount": 10.0, "bytes": b"\xff\x0a"},
    ):
        assert base(shop.why("one", key))["orders"] == [(1, 1, 1)]
    for column, value in (
        ("since", "soon"), ("since", "2024-02-30"), ("x", "many"), ("first", "perhaps"),
        ("amount", "10.001"), ("amount", "1e40"), ("bytes", "xyz"), ("amount", object()),
            ("at", "10 o'clock"), ("x", "1e999"), ("since", "2024-01-01 23:59:59"),
            ("since", dt.datetime(2024, 1, 1, 15, tzinfo=dt.UTC)), ("since", "2024-01-01 junk"),
            ("since", "2024-01-01T"), ("at", "12:00"), ("at", "2024-01-01 00:00:00.0000011"),
    ):  # fmt: skip
        with pytest.raises(InvalidKeyValue) as refused:
            shop.why("one", {column: value})
        assert refused.value.parameters["column"] == column
    with pytest.raises(InvalidKeyValue):
        shop.why("one", {"x": 10, "X": 10})


def test_wrong_questions(shop: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        shop.why("nothing")
    with pytest.raises(UnknownName):
        shop.why("orders")
    with pytest.raises(UnknownColumn) as unknown:
        shop.why("revenue", {"city": "Oslo"})
    assert unknown.value.parameters == {
        "name": "revenue",
        "column": "city",
        "known": "region, n, total",
    }
    with pytest.raises(NoSuchRow) as missing:
        shop.why("revenue", {"region": "AF", "n": None})
    assert missing.value.parameters["key"] == "region = AF, n = NULL"


def test_a_view_that_was_never_computed(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fv.open(tmp_path, spark)
    warehouse.create_table("orders", ORDERS)
    warehouse.create_view("all_in_all", VIEWS["all_in_all"])
    place = warehouse.catalog.path(warehouse.catalog.view("all_in_all"))
    shutil.rmtree(place)
    write_deltalake(place, pa.table({"n": [1], "total": [Decimal(1)]}))
    with pytest.raises(NotFresh):
        warehouse.why("all_in_all")


def test_the_command_prints_rows_and_reasons(shop: Warehouse) -> None:
    shown = []
    for arguments in (
        ("revenue", "--key", "region=US"),
        ("bought", "--key", "cust=7"),
        ("top", "--limit", "1"),
        ("idle", "--limit", "1"),
        ("regions", "--key", "region=null"),
    ):
        found = in_process("why", *arguments, "-w", shop.root)
        assert (found.status, found.err) == (0, "")
        shown.append(f"$ freshview why {' '.join(arguments)}\n{found.out}")
    lines = [line.rstrip() for line in "\n".join(shown).splitlines()]
    check_golden("why/shop", "\n".join(lines))


def test_the_page_shows_what_the_command_prints(repository: Path) -> None:
    page = (repository / "docs" / "provenance.md").read_text(encoding="utf-8")
    printed = (repository / "tests" / "golden" / "why" / "shop.txt").read_text(encoding="utf-8")
    first, second, *_ = printed.split("$ freshview")[1:]
    assert f"$ freshview{first}$ freshview{second}".rstrip() in page


def test_the_command_answers_in_json(shop: Warehouse) -> None:
    found = in_process("why", "bought", "--key", "cust=7", "-w", shop.root, "--json").answer
    row = {"cust": 7, "region": None, "since": "2024-01-03"}
    assert found["ok"] is True
    assert found["view"]["rows"] == [{"row": {"cust": 7, "region": None, "id": None}, "copies": 1}]
    assert found["tables"][0] == {
        "table": "customers",
        "version": 0,
        "via": [],
        "count": 1,
        "rows": [{"row": row, "copies": 1}],
        "truncated": False,
    }
    assert found["absent_count"] == len(found["absent"]) == 1
    for key, named in (("region='NULL'", "NULL"), ("region='E''U'", "E'U"), ("region=a=b", "a=b")):
        missing = in_process("why", "regions", "--key", key, "-w", shop.root, "--json")
        assert (missing.status, missing.answer["code"]) == (1, "NO_SUCH_ROW")
        assert missing.answer["parameters"]["key"] == f"region = {named}"
