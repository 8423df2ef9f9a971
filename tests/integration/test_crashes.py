"""A process that dies at any boundary: the next one finds everything whole and goes on from there.

Each case kills a child (SIGKILL) at one fault point, then opens the warehouse anew: every view is
right for the versions it names, the interrupted work is completed by the next refresh, and nothing
is there twice. What is right is computed here in plain Python from the rows of the tables.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from freshview.errors import TableExists
from freshview.faults import POINTS
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from soak.attached import environment
from tests.integration.attached_child import MARKED, ROWS, forked
from tests.integration.random_views import SCHEMAS, random_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHILD = "tests.integration.attached_child"
CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload([CHILD])  # what a child loads takes longer than what it does
VIEWS = {
    "totals": "SELECT g, count(*) AS n, sum(v) AS total FROM r GROUP BY g",
    "joined": "SELECT r.id AS id, s.w AS w FROM r JOIN s ON r.k = s.k",
    "above": "SELECT count(*) AS groups, sum(n) AS rows FROM totals",
}
KILLS = [
    *[("refresh", "refresh.stage", place) for place in ["1", "2", "3", "4", "5", "6", "8", "10"]],
    *[("refresh", "refresh.before_commit", place) for place in ["1", "2", "3"]],
    *[("refresh", "refresh.before_commit", f"1+{ms}") for ms in (1, 5, 15)],
    *[("refresh", "refresh.after_commit", place) for place in ["1", "2", "3"]],
    *[("refresh", "refresh.between_views", place) for place in ["1", "2", "3"]],
    ("refresh", "refresh.pinning", "1"),
    ("refresh", "refresh.pinned", "1"),
    ("refresh", "refresh.before_epoch", "1"),
    ("refresh", "refresh.before_log", "1"),
    ("recompute", "refresh.before_commit", "2"),
    ("recompute", "refresh.before_commit", "1+5"),
    ("recompute", "refresh.after_commit", "2"),
    ("apply", "transaction.staged", "1"),
    ("apply", "transaction.checked", "1"),
    ("apply", "transaction.intended", "1"),
    ("apply", "transaction.before_write", "2"),
    *[("apply", "transaction.before_write", f"{number}+{ms}") for number, ms in ((1, 4), (2, 8))],
    *[("apply", "transaction.table_written", place) for place in ["1", "2"]],
    ("apply", "transaction.complete", "1"),
    ("create", "create.evaluated", "1"),
    ("create", "create.evaluated", "1+5"),
    ("create", "create.written", "1"),
    ("create", "catalog.before_write", "1"),
    ("create", "create.catalogued", "1"),
    ("drop", "catalog.before_write", "1"),
    ("drop", "drop.catalogued", "1"),
]
"""What a child does, the fault point at which it dies, and the how manieth time; `1+5` is five
milliseconds after the first time, in the middle of the write that follows."""


ELSEWHERE = {"catalog.before_upgrade", "catalog.upgrading", "create_table.written"}
"""Points that tests/runtime/test_catalog.py and the end of this file drive."""


def test_every_point_is_driven() -> None:
    assert {point for _, point, _ in KILLS} == set(POINTS) - ELSEWHERE
    assert len(set(KILLS)) == len(KILLS) >= 35


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("crashes") / "warehouse"


def with_views(folder: Path, spark: SparkSession, dice: random.Random) -> Warehouse:
    """A new warehouse with random rows and the views."""
    warehouse = open_warehouse(folder, spark)
    for name in SCHEMAS:
        warehouse.create_table(name, random_rows(name, dice, 30))
    for name, text in VIEWS.items():
        warehouse.create_view(name, text, policy="INCREMENTAL")
    return warehouse


@pytest.fixture(scope="module")
def prepared(folder: Path, spark: SparkSession) -> random.Random:
    dice = random.Random(4)
    with_views(folder, spark, dice)
    return dice


def killed(spark: SparkSession, folder: Path, action: str, point: str, place: str) -> None:
    log = folder.with_suffix(".log")
    arguments = (str(log), environment(spark), str(folder), action, point, place, "SIGKILL")
    child = CHILDREN.Process(target=forked, args=arguments)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, log.read_text()


@pytest.mark.parametrize(("action", "point", "place"), KILLS)
def test_a_kill_leaves_nothing_wrong(
    action: str,
    point: str,
    place: str,
    folder: Path,
    prepared: random.Random,
    spark: SparkSession,
) -> None:
    before = open_warehouse(folder, spark)
    if action == "drop" and "made" not in before.catalog:
        before.create_view("made", "SELECT g, count(*) AS n FROM r GROUP BY g")
    if action == "create" and "made" in before.catalog:
        before.drop_view("made")
    before.apply({n: TableChanges(insert=random_rows(n, prepared, 6)) for n in ("r", "s")})
    if action == "apply":
        before.apply({"s": TableChanges(update=[MARKED], key=["k", "h"])})
    inserted = count_of(before)
    killed(spark, folder, action, point, place)
    after = open_warehouse(folder, spark)
    assert_right(after)
    after.refresh()
    whole = action == "apply" and point not in {"transaction.staged", "transaction.checked"}
    assert count_of(after) == inserted + whole
    if action == "apply":
        marked = [row for row in rows_of(after, "s", latest(after, "s")) if row["w"] == MARKED["w"]]
        assert len(marked) == (not whole)
    assert_right(after)
    assert {report.mode for report in after.refresh().views} == {"unchanged"}


def test_a_table_whose_creation_was_killed_can_be_registered(
    folder: Path, prepared: random.Random, spark: SparkSession
) -> None:
    killed(spark, folder, "create table", "create_table.written", "1")
    warehouse = open_warehouse(folder, spark)
    assert "begun" not in warehouse.catalog
    with pytest.raises(TableExists) as caught:
        warehouse.create_table("begun", ROWS)
    assert caught.value.do.startswith("register it")
    warehouse.register("begun", folder / "tables" / "begun")
    assert warehouse.table("begun").count() == 1


def test_the_views_are_right_in_the_end(
    folder: Path, prepared: random.Random, spark: SparkSession
) -> None:
    warehouse = open_warehouse(folder, spark)
    warehouse.refresh()
    for name in VIEWS:
        assert warehouse.check(name).ok, name


def latest(warehouse: Warehouse, name: str) -> int:
    return warehouse.parts.sources.latest(name)


def count_of(warehouse: Warehouse) -> int:
    return len(rows_of(warehouse, "r", latest(warehouse, "r")))


def rows_of(warehouse: Warehouse, name: str, version: int) -> list[dict[str, Any]]:
    """The rows of a table or view at a version, each as often as it is there."""
    path = warehouse.parts.sources.path(name)
    rows = warehouse.parts.tables.native.read(path, version).to_pylist()
    copies = [row.pop("__count", 1) for row in rows]
    shown = [{c: v for c, v in row.items() if not c.startswith("__")} for row in rows]
    return [row for row, count in zip(shown, copies, strict=True) for _ in range(count)]


def assert_right(warehouse: Warehouse) -> None:
    """Each view has the rows that its definition has over the versions that its commit names."""
    for entry in warehouse.catalog.views():
        path = warehouse.catalog.path(entry)
        last = warehouse.parts.tables.last_commit(path, entry.application)
        assert last is not None
        sources = {
            name: rows_of(warehouse, name, source["version"])
            for name, source in last[1].metadata["sources"].items()
        }
        version = warehouse.parts.tables.latest(path)
        actual = rows_of(warehouse, entry.name, version)
        assert bag(actual) == bag(EXPECTED[entry.name](**sources)), entry.name


def bag(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


def totals(r: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[str | None, list[Decimal | None]] = defaultdict(list)
    for row in r:
        groups[row["g"]].append(row["v"])
    return [{"g": g, "n": len(vs), "total": added(vs)} for g, vs in groups.items()]


def joined(r: list[dict[str, Any]], s: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"id": one["id"], "w": two["w"]}
        for one in r
        for two in s
        if one["k"] is not None and one["k"] == two["k"]
    ]


def above(totals: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"groups": len(totals), "rows": added([row["n"] for row in totals])}]


def made(r: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"g": g, "n": n} for g, n in Counter(row["g"] for row in r).items()]


def highest(r: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[str | None, list[Decimal]] = defaultdict(list)
    for row in r:
        groups[row["g"]] += [] if row["v"] is None else [row["v"]]
    return [{"g": g, "v": max(vs, default=None)} for g, vs in groups.items()]


def added(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


EXPECTED = {
    "totals": totals,
    "joined": joined,
    "above": above,
    "made": made,
    "highest": highest,
}
