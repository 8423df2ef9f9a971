"""A disk that is full, made by the kernel: files may not grow past a limit while something is written.

The limit is this process's for what is written natively, and the JVM's for what Spark writes. Each
case ends with an error that names the file and what the system said, with everything that was there
before still right, and the same command succeeds once there is room.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview import faults
from freshview.errors import FreshviewError
from freshview.runtime.report import INCREMENTAL
from freshview.runtime.warehouse import Warehouse
from tests.integration.test_random_views import NOTHING_LOCAL, NOTHING_NATIVE
from tests.unchanged import LOG, refused

pytestmark = pytest.mark.spark

SMALL_BYTES = 64 << 10
REASON = "File too large"


@contextmanager
def room(limit: int, pid: int = 0) -> Iterator[None]:
    """Files of a process (this one if 0) can grow to so many bytes and no further."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def room_after(point: str, limit: int = 0, pid: int = 0) -> Iterator[None]:
    """As `room`, from a fault point on until the block ends."""
    with ExitStack() as limited:

        def fill(reached: str) -> None:
            if reached == point:
                limited.enter_context(room(limit, pid))

        faults.install(fill)
        try:
            yield
        finally:
            faults.install(None)


def large() -> str:
    """A text that no compression makes smaller than the limit."""
    return os.urandom(2 * SMALL_BYTES).hex()


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> fv.Warehouse:
    warehouse = fv.open(tmp_path_factory.mktemp("full") / "shop", spark)
    warehouse.create_table("t", pa.table({"k": [1, 2], "text": ["a", "b"]}))
    warehouse.create_view("copies", "SELECT k, text FROM t", policy="STRICT")
    warehouse.create_view("counted", "SELECT k, count(*) AS n FROM t GROUP BY k", policy="STRICT")
    return warehouse


def version(shop: fv.Warehouse, name: str) -> int:
    return shop.parts.sources.latest(name)


def java(spark: SparkSession) -> int:
    """The process of Spark's JVM."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def test_a_view_that_cannot_be_written_natively(shop: fv.Warehouse) -> None:
    shop.apply({"t": fv.TableChanges(insert=[{"k": 3, "text": large()}])})
    before = version(shop, "copies")
    with (
        pytest.raises(FreshviewError) as caught,
        room_after("refresh.before_commit", SMALL_BYTES),
    ):
        shop.refresh("copies")
    assert caught.value.code == "WRITE_FAILED", caught.value
    path = shop.catalog.path(shop.catalog.view("copies"))
    assert caught.value.parameters == {"path": path, "reason": REASON}
    assert "copies was not refreshed" in caught.value.__notes__[0]
    assert version(shop, "copies") == before
    assert shop.check("copies").ok
    with pytest.raises(FreshviewError) as caught, room(SMALL_BYTES):
        shop.refresh("copies")
    assert caught.value.code == "WRITE_FAILED", caught.value
    assert caught.value.parameters == {"path": "a temporary file of Spark", "reason": REASON}
    assert version(shop, "copies") == before
    assert shop.refresh()["copies"].mode == INCREMENTAL
    assert shop.check("copies").ok


def test_a_view_that_spark_cannot_write(shop: fv.Warehouse, spark: SparkSession) -> None:
    by_spark = Warehouse(shop.root, spark, NOTHING_LOCAL, NOTHING_NATIVE)
    shop.apply({"t": fv.TableChanges(insert=[{"k": 4, "text": large()}])})
    before = version(shop, "copies")
    with (
        pytest.raises(FreshviewError) as caught,
        room_after("refresh.before_commit", SMALL_BYTES, java(spark)),
    ):
        by_spark.refresh("copies")
    assert caught.value.code == "WRITE_FAILED", caught.value
    path = shop.catalog.path(shop.catalog.view("copies"))
    assert caught.value.parameters == {"path": path, "reason": REASON}
    assert version(shop, "copies") == before
    assert shop.check("copies").ok
    report = by_spark.refresh("copies")["copies"]
    assert (report.mode, report.served_by) == (INCREMENTAL, "spark")
    assert shop.check("copies").ok


def test_changes_that_cannot_be_staged_or_written(shop: fv.Warehouse) -> None:
    changes = {"t": fv.TableChanges(insert=[{"k": 5, "text": large()}])}

    def apply_without_room() -> None:
        with room(SMALL_BYTES):
            shop.apply(changes)

    refused(shop.root, "WRITE_FAILED", apply_without_room, ".t.insert.parquet", REASON)

    def apply_once_staged() -> None:
        with room_after("transaction.staged"):
            shop.apply(changes)

    refused(shop.root, "WRITE_FAILED", apply_once_staged, str(shop.root / "tables/t"), REASON)
    before = version(shop, "t")
    assert shop.apply(changes) == {"t": before + 1}


def test_a_transaction_that_is_written_in_part_is_completed(shop: fv.Warehouse) -> None:
    """Its first commit is there, and there is no room for the second."""
    changes = {"t": fv.TableChanges(update=[{"k": 1, "text": "c"}], insert=[{"k": 6}], key=["k"])}
    before = version(shop, "t")
    with pytest.raises(FreshviewError) as caught, room_after("transaction.table_written"):
        shop.apply(changes)
    assert caught.value.code == "TRANSACTION_UNFINISHED", caught.value
    assert REASON in caught.value.parameters["reason"]
    assert version(shop, "t") == before + 1
    shop.refresh()
    assert version(shop, "t") == before + 2
    assert {(1, "c"), (6, None)} <= set(rows_of(shop))
    assert not list((shop.root / "_freshview" / "transactions").glob("*.*"))
    assert shop.check("counted").ok


def test_a_transaction_that_cannot_be_intended_does_not_happen(shop: fv.Warehouse) -> None:
    changes = {"t": fv.TableChanges(update=[{"k": 1, "text": "c"}], insert=[{"k": 6}], key=["k"])}

    def apply_once_staged() -> None:
        with room_after("transaction.staged"):
            shop.apply(changes)

    refused(shop.root, "WRITE_FAILED", apply_once_staged, ".intent.json", REASON)
    before = version(shop, "t")
    assert shop.apply(changes) == {"t": before + 2}


def test_a_warehouse_that_waits_for_room_can_be_read(shop: fv.Warehouse) -> None:
    changes = {"t": fv.TableChanges(update=[{"k": 1, "text": "c"}], insert=[{"k": 6}], key=["k"])}
    with pytest.raises(FreshviewError), room_after("transaction.table_written"):
        shop.apply(changes)
    with room(0):
        waiting = fv.open(shop.root, shop.spark)
        assert waiting.read("counted").count()
    waiting.refresh()
    assert shop.check("counted").ok


def rows_of(shop: fv.Warehouse) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in shop.table("t").select("k", "text").collect()), key=repr)


def test_a_catalog_that_cannot_be_written(shop: fv.Warehouse) -> None:
    catalog = str(shop.root / "_freshview" / "catalog")

    def drop() -> None:
        with room_after("catalog.before_write"):
            shop.drop_view("counted")

    refused(shop.root, "WRITE_FAILED", drop, catalog, REASON)

    def create() -> None:
        with room_after("catalog.before_write"):
            shop.create_view("new", "SELECT k FROM t")

    refused(shop.root, "WRITE_FAILED", create, catalog, REASON)

    def table() -> None:
        with room(16):
            shop.create_table("u", pa.table({"a": [1]}))

    refused(shop.root, "WRITE_FAILED", table, "tables/u", REASON)
    assert sorted(view.name for view in shop.catalog.views()) == ["copies", "counted"]
    shop.drop_view("counted")
    assert [view.name for view in fv.open(shop.root).catalog.views()] == ["copies"]


def test_no_lease_can_be_taken_on_a_disk_without_a_byte(shop: fv.Warehouse) -> None:
    changes = {"t": fv.TableChanges(insert=[{"k": 7}])}

    def apply() -> None:
        with room(0):
            shop.apply(changes)

    refused(shop.root, "WRITE_FAILED", apply, "lease", REASON)


def test_an_epoch_that_cannot_be_written(shop: fv.Warehouse) -> None:
    """The views are committed and right; only the record that they agree is missing."""
    shop.apply({"t": fv.TableChanges(insert=[{"k": 8, "text": "d"}])})
    epochs = shop.parts.epochs.numbers()
    with pytest.raises(FreshviewError) as caught, room_after("refresh.before_epoch"):
        shop.refresh()
    assert caught.value.code == "WRITE_FAILED"
    assert "_freshview/epochs" in str(caught.value.parameters["path"])
    assert caught.value.parameters["reason"] == REASON
    assert shop.parts.epochs.numbers() == epochs
    assert not list((Path(shop.root) / "_freshview" / "epochs").glob(".*"))
    again = shop.refresh()
    assert {view.mode for view in again.views} == {"unchanged"}
    assert again.epoch == shop.epoch("copies") == epochs[-1] + 1
    assert shop.refresh().epoch is None
    assert shop.check("copies").ok


def test_a_log_that_cannot_be_written(shop: fv.Warehouse) -> None:
    shop.apply({"t": fv.TableChanges(insert=[{"k": 10, "text": "f"}])})
    epochs = shop.parts.epochs.numbers()
    with pytest.raises(FreshviewError) as caught, room_after("refresh.before_log"):
        shop.refresh()
    assert caught.value.code == "WRITE_FAILED"
    assert str(caught.value.parameters["path"]).endswith(LOG)
    (epoch,) = set(shop.parts.epochs.numbers()) - set(epochs)
    assert shop.read("copies", epoch=epoch).where("k IN (8, 10)").count() == 2
