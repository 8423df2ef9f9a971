"""Names in Spark's catalog: read as names only, and quoted part by part."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from tests.unchanged import refused

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> fv.Warehouse:
    """A warehouse beside tables of Spark's own catalog, one with a name that needs quotes."""
    folder = tmp_path_factory.mktemp("names")
    warehouse = fv.open(folder / "a `b` #c", spark)
    warehouse.create_table("t", pa.table({"a": [1, 2]}))
    spark.sql("CREATE DATABASE names")
    for name in ("kept", "`select`"):
        place = folder / f"by Spark, {name.strip('`')}"
        spark.sql(f"CREATE TABLE names.{name} (a INT) USING DELTA LOCATION '{place}'")
    spark.sql("CREATE TABLE names.plain (a INT) USING PARQUET")
    return warehouse


INJECTIONS = (
    "",
    " ",
    "names.kept; DROP TABLE names.kept",
    "names.kept -- x",
    "names.kept UNION SELECT 1",
    "names.kept VERSION AS OF 0",
    "names.kept\n",
    "a.b.c.d",
    "``",
    "`kept",
    "kept`",
    "names..kept",
    "../kept",
    "'kept'",
    "a\0b",
)


@pytest.mark.parametrize("table", INJECTIONS)
def test_a_catalog_name_is_a_name_only(shop: fv.Warehouse, table: str) -> None:
    error = refused(
        shop.root, "INVALID_CATALOG_NAME", lambda: shop.register("bad", table=table), repr(table)
    )
    assert "nothing was changed" in error.do
    assert shop.spark.catalog.tableExists("names.kept")


def test_names_that_are_no_delta_table(shop: fv.Warehouse) -> None:
    for table in ("nowhere", "names.nowhere", "no.such.thing", "names.plain", "`kept; x`"):
        refused(shop.root, "TABLE_MISSING", lambda t=table: shop.register("bad", table=t), table)


def test_names_are_quoted(shop: fv.Warehouse) -> None:
    shop.register("kept", table="names.kept")
    shop.register("chosen", table="names.`select`")
    path = str(shop.root / "tables" / "t")
    shop.register("again", table=f"delta.`{path.replace('`', '``')}`")
    places = {table.name: shop.catalog.path(table) for table in shop.catalog}
    beside = shop.root.parent
    assert places == {
        "t": path,
        "kept": str(beside / "by Spark, kept"),
        "chosen": str(beside / "by Spark, select"),
        "again": path,
    }


def test_a_table_in_a_folder_that_looks_like_a_version(shop: fv.Warehouse) -> None:
    """Delta can read `folder@v0` as version 0 of `folder`."""
    place = shop.root.parent / "x@v0"
    shop.parts.tables.native.create(str(place), pa.table({"a": [1]}))
    shop.register("versioned", place)
    shop.apply({"versioned": fv.TableChanges(insert=[{"a": 2}])})
    assert sorted(row.a for row in shop.table("versioned").collect()) == [1, 2]
