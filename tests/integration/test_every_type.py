"""Every type through both ways of storage: base table, changes, lookup, view, view on a view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import InvalidColumnType, StrictImpossible
from freshview.runtime.report import FULL, INCREMENTAL
from freshview.runtime.warehouse import Warehouse
from freshview.storage.choose import Limits
from freshview.storage.spark import SparkStorage
from tests.storage.samples import ALL_TYPES, all_types

pytestmark = pytest.mark.spark

BY_SPARK = Limits(
    changes_rows=0, changes_bytes=0, lookup_keys=0, lookup_rows=0, read_rows=0, write_rows=0
)
ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def berlin(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose clock has no 02:30 on 31 March 2024, a time that the rows hold."""
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Europe/Berlin")
    yield spark
    spark.conf.set(ZONE, str(before))


@pytest.mark.parametrize("limits", [Limits(), BY_SPARK], ids=["native", "spark"])
def test_a_view_holds_every_value(limits: Limits, berlin: SparkSession, tmp_path: Path) -> None:
    fv.open(tmp_path, berlin)
    warehouse = Warehouse(tmp_path, berlin, storage_limits=limits)
    table = all_types()
    warehouse.create_table("t", table)
    warehouse.create_table("keys", table.select(["local"]).slice(0, 1))
    flat = ", ".join(name for name in ALL_TYPES.names if name != "named")
    # The rows are their own key here, so NULLs and awkward values are matched in many columns.
    warehouse.create_view("rows", f"SELECT {flat} FROM t", policy="STRICT")
    warehouse.create_view("maps", "SELECT id, named, struct(named) AS deeper FROM t")
    joined = "SELECT t.id, t.local, t.at FROM t JOIN keys ON t.local <=> keys.local"
    warehouse.create_view("met", joined, policy="STRICT")
    modes = {"rows": INCREMENTAL, "maps": FULL, "met": INCREMENTAL}

    changed = table.slice(0, 2).set_column(0, "id", pa.array([11, 12]))
    warehouse.apply(
        {
            "t": fv.TableChanges(insert=changed, delete=[{"id": None}, {"id": 2}], key=["id"]),
            "keys": fv.TableChanges(insert=[{"local": None}]),
        }
    )
    with patch.object(SparkStorage, "apply", autospec=True, side_effect=SparkStorage.apply) as spy:
        report = warehouse.refresh()
    assert {view.view: view.mode for view in report.views} == modes
    assert spy.called == (limits is BY_SPARK)
    for view in modes:
        found = warehouse.check(view)
        assert found.ok, found.examples
    assert [row.id for row in warehouse.read("met").select("id").orderBy("id").collect()] == [
        1,
        3,
        4,
        11,
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT m, count(*) AS n FROM t GROUP BY m",
        "SELECT count(*) AS n FROM (SELECT m FROM t GROUP BY m)",
        "SELECT max(n) AS n FROM (SELECT struct(m) AS s, count(*) AS n FROM t GROUP BY s)",
    ],
)
def test_groups_of_maps_are_recomputed(query: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark groups maps, and does not join by them."""
    warehouse = fv.open(tmp_path, spark)
    maps = pa.array([[("a", 1)], [("a", 1)], None], pa.map_(pa.string(), pa.int64()))
    warehouse.create_table("t", pa.table({"k": [1, 2, 3], "m": maps}))
    with pytest.raises(StrictImpossible) as refused:
        warehouse.create_view("v", query, policy="STRICT")
    assert refused.value.parameters["reason"] == "UNGROUPABLE_COLUMN"
    warehouse.create_view("v", query)
    warehouse.apply({"t": fv.TableChanges(delete=[{"k": 1}], key=["k"])})
    assert warehouse.refresh()["v"].reason == "UNGROUPABLE_COLUMN"
    assert warehouse.check("v").ok


def test_types_without_order_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    """A variant, also inside other types; and a check that finds a wrong one."""
    warehouse = fv.open(tmp_path, spark)
    warehouse.create_table("t", pa.table({"k": [1, 2], "text": ['{"a": [1, 2]}', None]}))
    query = (
        "SELECT k, parse_json(text) AS v, array(parse_json(text)) AS many, NULL AS nothing,"
        " named_struct('m', map(k, parse_json(text))) AS deep, cast(text AS char(20)) AS c FROM t"
    )
    warehouse.create_view("v", query)
    warehouse.apply({"t": fv.TableChanges(insert=[{"k": 3, "text": "1.5"}])})
    assert warehouse.refresh()["v"].reason == "UNGROUPABLE_COLUMN"
    assert warehouse.check("v").ok
    assert warehouse.check("v", sample=0.9).ok
    path = warehouse.catalog.path(warehouse.catalog.view("v"))
    spark.sql(f"UPDATE delta.`{path}` SET many = array(parse_json('[2, 1]')) WHERE k = 1")
    found = fv.open(tmp_path, spark).check("v")
    assert (found.missing, found.extra) == (1, 1)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("make_dt_interval(1)", "interval day to second"),
        ("make_ym_interval(1)", "interval year to month"),
        ("array(make_interval(1))", "array<interval>"),
        ("TIME'10:00:00'", "time(6)"),
        ("text COLLATE UTF8_LCASE", "string collate UTF8_LCASE"),
        ("NULL", "void"),
        ("named_struct('interval', array(NULL))", "struct<interval:array<void>>"),
    ],
)
def test_what_delta_cannot_store_is_refused(column: str, kind: str, texts: fv.Warehouse) -> None:
    with pytest.raises(InvalidColumnType) as refused:
        texts.create_view("v", f"SELECT {column} AS x FROM t")
    assert refused.value.parameters == {"name": "v", "column": "x", "type": kind}
    assert not list(texts.catalog.views())
    assert not list(texts.root.glob("views/*"))


def test_columns_that_cannot_find_rows_again(spark: SparkSession, tmp_path: Path) -> None:
    """NULL without a type, which joins do not match. Groups that Delta cannot store need not be stored."""
    table = f"delta.`{tmp_path / 'outside'}`"
    spark.sql(f"CREATE TABLE {table} (k int, n void, s string, at timestamp) USING delta")
    at = "TIMESTAMP'2024-01-01'"
    spark.sql(f"INSERT INTO {table} VALUES (1, NULL, 'a', {at}), (2, NULL, 'A', {at})")
    warehouse = fv.open(tmp_path / "w", spark)
    warehouse.register("t", tmp_path / "outside")
    definitions = {
        "rows": ("SELECT * FROM t", "COLUMN_WITHOUT_TYPE"),
        "groups": ("SELECT n, sum(k) AS x FROM t GROUP BY n", "COLUMN_WITHOUT_TYPE"),
        "above": ("SELECT k, n FROM rows", "COLUMN_WITHOUT_TYPE"),
        "beside": ("SELECT s, NULL AS z, sum(k) AS x FROM t GROUP BY s", None),
        "texts": ("SELECT count(*) AS x FROM t GROUP BY s COLLATE UTF8_LCASE", None),
        "spans": (f"SELECT count(*) AS x FROM t GROUP BY at - {at}", None),
    }
    for name, (query, _) in definitions.items():
        warehouse.create_view(name, query)
    spark.sql(f"INSERT INTO {table} VALUES (2, NULL, 'a', {at}), (3, NULL, 'b', {at})")
    report = warehouse.refresh(policy="INCREMENTAL")
    assert {view.view: view.reason for view in report.views} == {
        name: reason for name, (_, reason) in definitions.items()
    }
    for name in definitions:
        assert warehouse.check(name).ok, name


@pytest.fixture(scope="module")
def texts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> fv.Warehouse:
    warehouse = fv.open(tmp_path_factory.mktemp("texts"), spark)
    warehouse.create_table("t", pa.table({"text": ["a"]}))
    return warehouse
