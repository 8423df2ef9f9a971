"""Views that Python functions define, and functions that change under their views."""

from __future__ import annotations

import importlib
import shutil
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession, functions

import freshview as fv
from freshview.errors import DefinitionChanged, ViewInUse
from freshview.runtime.report import FULL, INCREMENTAL, UNCHANGED

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> fv.Warehouse:
    warehouse = fv.open(tmp_path / "shop", spark)
    prices = pa.array([Decimal("1.50"), Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2))
    warehouse.create_table("lines", pa.table({"id": [1, 1, 2], "price": prices}))
    warehouse.create_table("orders", pa.table({"id": [1, 2, 3]}))
    return warehouse


def test_a_function_defines_the_same_view_as_sql(shop: fv.Warehouse) -> None:
    @shop.view
    def cheap() -> DataFrame:
        return shop.table("lines").where("price < 2").select("id", "price")

    shop.create_view("cheap_sql", "SELECT id, price FROM lines WHERE price < 2")
    relations = [shop.parts.strategy(shop.catalog.view(n)).relation for n in ("cheap", "cheap_sql")]
    assert relations[0] == relations[1]
    shop.apply({"lines": fv.TableChanges(insert=[{"id": 5, "price": Decimal("1.00")}])})
    assert shop.refresh(policy="STRICT")["cheap"].mode == INCREMENTAL
    assert shop.check("cheap").ok
    shop.view(cheap)

    def other() -> DataFrame:
        return shop.table("orders").select("id")

    def dearer() -> DataFrame:
        return shop.table("lines").where("price < 3").select("id", "price")

    for changed in (other, dearer):
        with pytest.raises(DefinitionChanged):
            shop.view(changed, name="cheap")
        assert shop.refresh()["cheap"].mode == UNCHANGED
    shop.create_view("above", "SELECT count(*) AS n FROM cheap")
    with pytest.raises(ViewInUse):
        shop.view(other, name="cheap", replace=True)
    shop.apply({"lines": fv.TableChanges(insert=[{"id": 6, "price": Decimal("2.50")}])})
    assert shop.refresh(policy="STRICT")["cheap"].mode == INCREMENTAL
    assert shop.check("cheap").ok


def test_a_function_that_has_changed_meanwhile_defines_the_view_anew(
    shop: fv.Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another deployment of the module: the next process finds another function by the name."""
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "deployed_views.py"

    def deploy(query: str) -> fv.Warehouse:
        module.write_text(f"def few(warehouse):\n    return {query}\n")
        sys.modules.pop("deployed_views", None)
        importlib.invalidate_caches()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        return fv.open(shop.root, shop.spark)

    query = "warehouse.table('lines').where('price < {}').select('id', 'price')"
    first = deploy(query.format(2))
    first.view(importlib.import_module("deployed_views").few)
    assert deploy(query.format(2)).refresh()["few"].mode == UNCHANGED
    second = deploy(query.format(3))
    assert "DEFINITION_CHANGED" in str(second.explain("few"))
    report = second.refresh()["few"]
    assert (report.mode, report.reason) == (FULL, "DEFINITION_CHANGED")
    assert second.check("few").ok
    assert second.refresh()["few"].mode == UNCHANGED
    first = deploy(query.format(2))
    checked = first.check("few", repair_groups=True)  # with the function of another deployment
    assert (checked.missing, checked.extra, checked.repaired) == (0, 1, 1)
    assert deploy(query.format(2)).refresh()["few"].mode == UNCHANGED
    report = deploy(query.format(3)).refresh()["few"]
    assert (report.mode, report.reason) == (FULL, "DEFINITION_CHANGED")
    third = deploy("warehouse.table('orders').selectExpr('id', 'id AS price')")
    with pytest.raises(DefinitionChanged):
        third.refresh()
    assert {row.price for row in third.read("few").collect()} == {Decimal("1.50"), Decimal("2.00")}


def test_a_function_given_while_a_recompute_is_due_is_the_one_that_computes(
    shop: fv.Warehouse,
) -> None:
    def first() -> DataFrame:
        return shop.table("orders").where("id < 2")

    def second() -> DataFrame:
        return shop.table("orders").where("id < 3")

    shop.view(first, name="few")
    shop.apply({"orders": fv.TableChanges(insert=[{"id": 0}])})
    shop.refresh()
    place = shop.parts.sources.path("orders")
    shutil.rmtree(place)
    write_deltalake(place, pa.table({"id": [1, 2, 3]}))
    shop.view(second, name="few")
    assert shop.refresh()["few"].reason == "SOURCE_REPLACED"
    assert sorted(row.id for row in shop.read("few").collect()) == [1, 2]
    assert shop.check("few").ok


def test_a_function_with_a_lambda_is_the_same_again(shop: fv.Warehouse) -> None:
    def stretched() -> DataFrame:
        ids = functions.array("id", functions.col("id") + 1)
        more = functions.transform(ids, lambda x: x + 1)
        total = functions.aggregate(more, functions.lit(0).cast("long"), lambda a, x: a + x)
        return shop.table("orders").select("id", total.alias("total"))

    shop.view(stretched, policy="STRICT")
    assert shop.refresh()["stretched"].mode == UNCHANGED
    shop.view(stretched)
    other = fv.open(shop.root, shop.spark)
    other.view(stretched)
    shop.apply({"orders": fv.TableChanges(insert=[{"id": 9}])})
    assert other.refresh()["stretched"].mode == INCREMENTAL
    assert shop.check("stretched").ok


def test_a_function_is_the_same_after_its_table_got_a_column(shop: fv.Warehouse) -> None:
    def everything(warehouse: fv.Warehouse) -> DataFrame:
        return warehouse.table("orders")

    shop.view(everything, policy="INCREMENTAL")
    shop.spark.sql(f"ALTER TABLE delta.`{shop.root}/tables/orders` ADD COLUMNS (z INT)")
    other = fv.open(shop.root, shop.spark)
    other.view(everything)
    other.apply({"orders": fv.TableChanges(insert=[{"id": 9, "z": 1}])})
    assert other.refresh()["everything"].mode == INCREMENTAL
    assert other.read("everything").columns == ["id"]
    assert other.check("everything").ok
