"""What comes to the driver is bounded in rows and bytes; what is larger stays in Spark, and is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from freshview.errors import OutOfMemory
from freshview.planner import small_plans
from freshview.planner.plan import Limits
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.choose import TOO_MANY_CHANGED_BYTES, TOO_MANY_CHANGED_ROWS, Tables
from freshview.storage.choose import Limits as StorageLimits
from freshview.storage.native import NativeStorage
from freshview.storage.spark import SparkStorage

pytestmark = pytest.mark.spark

MANY = 200
FEW = 20
NO_LOOKUPS = StorageLimits(lookup_keys=0)
EVERYTHING = (
    Limits(delta_rows=FEW, lookup_rows=FEW, whole_view_rows=FEW),
    StorageLimits(
        changes_rows=FEW, lookup_keys=FEW, lookup_rows=FEW, read_rows=FEW, write_rows=FEW
    ),
)
VIEWS = {
    "totals": "SELECT k, count(*) AS n, sum(id) AS total FROM r GROUP BY k",
    "joined": "SELECT r.id AS id, r.text AS text, s.w AS w FROM r JOIN s ON r.k = s.k",
    "inverse": "SELECT id, 100 DIV k AS q FROM r",
}


class Held:
    """The largest answers that this process has held: of queries and plans, and of files."""

    def __init__(self) -> None:
        self.evaluated_rows = self.evaluated_bytes = self.found_rows = 0

    def evaluated(self, answer: Any) -> None:
        if answer is not None:
            self.evaluated_rows = max(self.evaluated_rows, len(answer))
        if isinstance(answer, pa.Table):
            self.evaluated_bytes = max(self.evaluated_bytes, answer.nbytes)

    def found(self, answer: pa.Table) -> None:
        self.found_rows = max(self.found_rows, len(answer))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held()

    def watch(kind: type, name: str, note: Callable[[Any], None]) -> None:
        plain = getattr(kind, name)

        def noted(*given: Any) -> Any:
            answer = plain(*given)
            if "refresh_log" not in str(given[1:2]):
                note(answer)
            return answer

        monkeypatch.setattr(kind, name, noted)

    for name in ("toArrow", "collect"):
        watch(DataFrame, name, made.evaluated)
    watch(small_plans._Driver, "table", made.evaluated)
    for name in ("read", "changes", "lookup"):
        watch(NativeStorage, name, made.found)
    return made


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    made = open_warehouse(tmp_path_factory.mktemp("limits") / "warehouse", spark)
    made.create_table("r", rows(0, FEW))
    made.create_table("s", pa.table({"k": [1, 1, 1, 2], "w": [1, 2, 3, 4]}))
    for name, text in VIEWS.items():
        made.create_view(name, text, policy="STRICT")
    return made.root


@pytest.fixture(autouse=True)
def _refreshed_before(root: Path, spark: SparkSession) -> None:
    open_warehouse(root, spark).refresh()


def rows(first: int, count: int, text: str = "", k: int | None = None) -> pa.Table:
    ids = range(first, first + count)
    keys = [k if k is not None else number % 25 + 1 for number in ids]
    return pa.table({"id": ids, "k": keys, "text": [text] * count})


def refreshed(root: Path, spark: SparkSession, inserted: pa.Table, *limits: Any) -> dict[str, str]:
    """Insert, refresh under limits, and who wrote each view."""
    warehouse = Warehouse(root, spark, *limits)
    warehouse.apply({"r": TableChanges(insert=inserted)})
    report = warehouse.refresh("totals", "joined")
    assert {view.mode for view in report.views} == {"incremental"}
    return {view.view: view.served_by or "" for view in report.views}


def test_a_delta_above_the_limits_never_comes_to_the_driver(
    root: Path, spark: SparkSession, held: Held
) -> None:
    by = refreshed(root, spark, rows(1000, MANY), *EVERYTHING)
    assert by == {"totals": "spark", "joined": "spark"}
    assert 0 < held.evaluated_rows <= FEW + 1
    assert held.found_rows <= FEW


def test_few_rows_that_meet_many_stay_in_spark(root: Path, spark: SparkSession, held: Held) -> None:
    limits = Limits(delta_rows=FEW)
    by = refreshed(root, spark, rows(2000, FEW - 1, k=1), limits)
    assert by == {"totals": "native", "joined": "spark"}
    assert held.evaluated_rows == FEW + 1


@pytest.mark.parametrize("storage", [NO_LOOKUPS, StorageLimits()], ids=["tables", "local rows"])
def test_few_rows_with_huge_texts_stay_in_spark(
    storage: StorageLimits, root: Path, spark: SparkSession, held: Held
) -> None:
    limits = Limits(delta_bytes=100_000)
    wide = rows(3000 + storage.lookup_keys, 2, "é" * 30_000, k=1)
    by = refreshed(root, spark, wide, limits, storage)
    assert by["joined"] == "spark"
    assert 0 < held.evaluated_bytes < limits.delta_bytes < wide.nbytes


def test_few_rows_may_have_more_than_their_share(root: Path, spark: SparkSession) -> None:
    limits = Limits(delta_bytes=100_000)
    by = refreshed(root, spark, rows(4000, 2, "é" * 3_000, k=2), limits, NO_LOOKUPS)
    assert by["joined"] == "native"


def test_rows_found_by_key_are_bounded_in_bytes(
    root: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, plain = [], SparkStorage.lookup

    def lookup(storage: SparkStorage, path: str, *given: Any) -> DataFrame:
        asked.append(Path(path).name)
        return plain(storage, path, *given)

    monkeypatch.setattr(SparkStorage, "lookup", lookup)
    few = StorageLimits(lookup_bytes=30)
    assert refreshed(root, spark, rows(5000, 1, k=1), None, few)["joined"] == "native"
    assert asked == ["s"]


@pytest.mark.parametrize("feed", [False, True])
def test_changes_that_the_log_does_not_count_are_bounded(
    tmp_path: Path, spark: SparkSession, *, feed: bool
) -> None:
    """Spark writes no number of rows for files that it removes, and for those of a change feed."""
    path = str(tmp_path / "t")
    many = spark.range(MANY).selectExpr("id", "repeat('x', 100) AS text").coalesce(1)
    many.write.format("delta").option("delta.enableChangeDataFeed", str(feed)).save(path)
    if feed:
        spark.sql(f"UPDATE delta.`{path}` SET id = -id")
    else:
        many.limit(1).write.format("delta").mode("overwrite").save(path)
    storage = NativeStorage()
    assert storage.measure_changes(path, 0, 1).rows is None
    for limits, reason in (
        (StorageLimits(changes_rows=MANY // 2), TOO_MANY_CHANGED_ROWS),
        (StorageLimits(changes_bytes=MANY * 50), TOO_MANY_CHANGED_BYTES),
        (StorageLimits(), None),
    ):
        delta, served = Tables(storage, lambda: SparkStorage(spark), limits).changes(path, 0, 1)
        assert (served.by, served.reason) == ("spark" if reason else "native", reason)
        assert (delta.num_rows if isinstance(delta, pa.Table) else delta.count()) >= MANY - 1


def test_a_heap_that_is_too_small_is_a_clean_error(root: Path, spark: SparkSession) -> None:
    warehouse = open_warehouse(root, spark)
    warehouse.create_table("lengths", pa.schema([("n", pa.int32())]))
    warehouse.create_view("long", "SELECT n, length(repeat('x', n)) AS l FROM lengths")
    warehouse.apply({"lengths": TableChanges(insert=[{"n": 2**31 - 32}])})
    with pytest.raises(OutOfMemory) as failed:
        warehouse.refresh("long", policy="INCREMENTAL")
    assert failed.value.parameters["name"] == "long"
    assert warehouse.parts.sources.latest("long") == 0
    assert last_failure(warehouse) == ("long", "OUT_OF_MEMORY")
    warehouse.apply(
        {"lengths": TableChanges(update=[{"n": 3}], delete=[{"n": 2**31 - 32}], key=["n"])}
    )
    warehouse.refresh("long")
    assert warehouse.check("long").ok
    warehouse.drop_view("long")


@pytest.mark.parametrize("limits", [(), EVERYTHING], ids=["driver", "executors"])
def test_a_failing_expression_is_a_clean_error(
    limits: tuple[Any, ...], root: Path, spark: SparkSession
) -> None:
    warehouse = Warehouse(root, spark, *limits)
    before = warehouse.parts.sources.latest("inverse")
    warehouse.set_policy("inverse", "INCREMENTAL")
    key = {"delete": [{"id": -1}], "key": ["id"]}
    warehouse.apply({"r": TableChanges(insert=rows(-1, MANY, k=0).slice(0, 1))})
    try:
        with pytest.raises(ArithmeticException) as failed:
            warehouse.refresh()
    finally:
        warehouse.apply({"r": TableChanges(**key)})
        warehouse.set_policy("inverse", "STRICT")
    assert failed.value.getCondition() == "DIVIDE_BY_ZERO"
    assert "The view inverse was not refreshed." in failed.value.__notes__
    assert "\tat " not in str(failed.value)
    assert warehouse.parts.sources.latest("inverse") == before
    assert last_failure(warehouse) == ("inverse", "DIVIDE_BY_ZERO")


def test_every_view_is_right_in_the_end(root: Path, spark: SparkSession) -> None:
    """What one of the refreshes above got wrong would still be there."""
    for name in VIEWS:
        assert open_warehouse(root, spark).check(name).ok


def last_failure(warehouse: Warehouse) -> tuple[str, str]:
    log = warehouse.parts.log.read().sort_by("time").to_pylist()
    return next((row["view"], row["reason"]) for row in reversed(log) if row["mode"] == "failed")


def test_stored_rows_above_the_limits_are_found_by_spark(
    tmp_path: Path, spark: SparkSession, held: Held
) -> None:
    """A store of an outer join with many partners: its rows are looked up by Spark, and set there."""
    warehouse = Warehouse(open_warehouse(tmp_path / "warehouse", spark).root, spark, *EVERYTHING)
    warehouse.create_table("r", rows(0, MANY, k=1))
    warehouse.create_table("s", pa.table({"k": [1, 2], "w": [1, 2]}))
    warehouse.create_view(
        "outer_rows",
        "SELECT r.id AS id, s.k AS k, s.w AS w FROM r FULL JOIN s ON r.k = s.k",
        policy="STRICT",
    )
    held.found_rows = held.evaluated_rows = 0
    batches = [
        TableChanges(delete=pa.table({"id": [3, 4]}), key=["id"]),
        TableChanges(
            insert=rows(1000, 2, k=2), delete=pa.table({"id": range(5, MANY)}), key=["id"]
        ),
        TableChanges(delete=pa.table({"id": [0, 1, 2, 1000, 1001]}), key=["id"]),
    ]
    for changes in batches:
        warehouse.apply({"r": changes})
        assert warehouse.refresh()["outer_rows"].mode == "incremental"
        assert held.found_rows <= FEW
        assert warehouse.check("outer_rows").ok
