"""The checker finds nothing in an honest history, and each planted fault by its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest

import freshview as fv
from freshview import faults
from freshview.runtime import commit as commits
from freshview.runtime.sources import Sources
from freshview.runtime.transactions import APPLICATION, Transactions
from freshview.storage.interface import Commit, Rows
from soak.findings import HALF, LOST, MIXED, STALE, TWICE, UNKNOWN, UNNAMED, WRONG
from tests.soak.planting import SCHEMA, checker, epochs, kinds, path, rewrite, some, verdict

pytestmark = pytest.mark.spark


def test_an_honest_history_has_no_findings(warehouse: fv.Warehouse) -> None:
    warehouse.spark.sql(f"OPTIMIZE delta.`{path(warehouse, 'rows')}`")
    warehouse.apply({"r": fv.TableChanges(delete=[{"id": 3}], key=["id"])})
    warehouse.refresh()
    warehouse.refresh(full=True)
    found = verdict(warehouse, settled=True)
    assert found.findings == []
    assert found.versions >= 3 * 4
    assert found.epochs == 6


@contextmanager
def changes_made(times: int) -> Iterator[None]:
    """An engine that loses what changed, or counts it more than once."""
    honest = Sources.changes

    def faulty(self: Sources, *arguments: object) -> Rows:
        rows = honest(self, *arguments)  # type: ignore[arg-type]
        assert isinstance(rows, pa.Table)
        return pa.concat_tables([rows.slice(0, 0), *[rows] * times])

    with patch.object(Sources, "changes", faulty):
        yield


@pytest.mark.parametrize(("times", "kind"), [(0, LOST), (2, TWICE)])
@pytest.mark.parametrize("view", ["rows", "totals"])
def test_a_delta_that_is_dropped_or_applied_twice_is_found(
    warehouse: fv.Warehouse, times: int, kind: str, view: str
) -> None:
    warehouse.apply({"r": some(5, 6)})
    if view == "totals":
        warehouse.refresh("rows")
    with changes_made(times):
        warehouse.refresh(view)
    found = [finding for finding in verdict(warehouse).findings if finding.kind == kind]
    assert any(finding.where.startswith(f"{view}@") for finding in found)


def test_a_view_committed_without_its_versions_is_found(warehouse: fv.Warehouse) -> None:
    honest = commits.commit_of

    def forgetful(*arguments: object) -> Commit:
        made = honest(*arguments)  # type: ignore[arg-type]
        kept = {name: value for name, value in made.metadata.items() if name != "sources"}
        return Commit(made.application, made.number, kept)

    warehouse.apply({"r": some(5)})
    with patch.object(commits, "commit_of", forgetful):
        warehouse.refresh("rows")
    assert UNNAMED in kinds(warehouse)


def test_rows_that_somebody_else_puts_into_a_view_are_found(warehouse: fv.Warehouse) -> None:
    storage, place = warehouse.parts.tables.native, path(warehouse, "totals")
    rows = storage.read(place, storage.latest(place))
    storage.append(place, rows, None)
    assert kinds(warehouse) == {UNNAMED}


def test_a_number_that_comes_again_or_is_left_out_is_found(warehouse: fv.Warehouse) -> None:
    log = Path(path(warehouse, "rows")) / "_delta_log"
    newest = max(log.glob("*.json"))
    honest = newest.read_text()
    for number, kind in ((1, TWICE), (7, LOST)):
        newest.write_text(honest.replace('\\"number\\": 2', f'\\"number\\": {number}'))
        assert newest.read_text() != honest
        # A commit that was written over is not the one that others name, either.
        assert kinds(warehouse) == {kind, UNNAMED, UNKNOWN}


def test_an_epoch_that_mixes_two_refreshes_is_found(warehouse: fv.Warehouse) -> None:
    assert kinds(warehouse) == set()
    before = json.loads(epochs(warehouse)[-2].read_text())["views"]["totals"]

    def plant(epoch: Any) -> None:
        epoch["views"]["totals"] = before

    rewrite(epochs(warehouse)[-1], plant)
    assert kinds(warehouse) == {MIXED}


def test_a_view_over_sources_that_do_not_agree_is_found(warehouse: fv.Warehouse) -> None:
    """The view is right for the versions it names, and these are of two different moments."""
    warehouse.apply({"r": some(5)})
    place, view = path(warehouse, "both"), warehouse.catalog.view("both")
    storage = warehouse.parts.tables
    before = warehouse.parts.sources.latest("totals")
    mixed = {name: warehouse.parts.sources.pinned(name) for name in ("r", "totals")}
    assert mixed["totals"].version == before
    spark = warehouse.spark
    found = spark.read.format("delta").load(path(warehouse, "r"))
    totals = spark.read.format("delta").load(path(warehouse, "totals"))
    rows = found.join(totals, "g").selectExpr("id", "t")
    assert "__count" in storage.state(place).arrow_schema.names
    counted = rows.groupBy("id", "t").count().withColumnRenamed("count", "__count")
    last = warehouse._refresher.consumed(view)
    with warehouse._held("both") as held:
        commit = last.next(view, mixed, "full", held.fence)
        storage.overwrite(place, counted, commit)
    assert kinds(warehouse) == {MIXED}
    assert WRONG not in kinds(warehouse)


def test_an_engine_that_sees_no_changes_is_found(warehouse: fv.Warehouse) -> None:
    warehouse.apply({"r": some(5)})
    assert verdict(warehouse).findings == []
    stale = verdict(warehouse, settled=True).findings
    assert {(finding.kind, finding.where) for finding in stale} == {
        (STALE, view) for view in ("rows", "totals", "both")
    }


def test_a_refresh_in_the_middle_of_a_transaction_is_found(warehouse: fv.Warehouse) -> None:
    warehouse.create_table("s", SCHEMA)
    warehouse.create_view("pairs", "SELECT r.id FROM r JOIN s ON r.g = s.g", policy="INCREMENTAL")

    def refresh_now(name: str) -> None:
        if name == "transaction.table_written":
            faults.install(None)
            with patch.object(Transactions, "whole", lambda *_: nullcontext(Mock(is_lost=bool))):
                fv.open(warehouse.root, warehouse.spark).refresh()

    faults.install(refresh_now)
    try:
        warehouse.apply({"r": some(5), "s": some(5)})
    finally:
        faults.install(None)
    found = verdict(warehouse).findings
    assert {finding.kind for finding in found} == {HALF}
    assert any(finding.where.startswith("pairs@") for finding in found)
    assert any(finding.where.startswith("epoch") for finding in found)


def test_parts_that_are_written_twice_or_never_are_found(warehouse: fv.Warehouse) -> None:
    warehouse.create_table("s", SCHEMA)
    warehouse.apply({"r": some(5), "s": some(5)})
    storage, place = warehouse.parts.tables.native, path(warehouse, "s")
    last = storage.last_commit(place, APPLICATION)
    assert last is not None
    mark = dict(last[1].metadata)
    assert list(checker(warehouse).transactions.parts(settled=True)) == []
    storage.append(place, None, Commit(APPLICATION, last[1].number + 1, mark))
    mark["transaction"] = "another one"
    storage.append(place, None, Commit(APPLICATION, last[1].number + 2, mark))
    found = list(checker(warehouse).transactions.parts(settled=True))
    assert [finding.kind for finding in found] == [TWICE, HALF]
    found = list(checker(warehouse).transactions.parts(settled=False))
    assert [finding.kind for finding in found] == [TWICE]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"\"table\": \"", r"\"table\": \"x"),
        (r"\"commit\": \"", r"\"commit\": \"x"),
        (r"\"rows\": {", r"\"r\": {"),
    ],
)
def test_versions_of_another_table_or_source_are_found(
    warehouse: fv.Warehouse, old: str, new: str
) -> None:
    newest = max((Path(path(warehouse, "totals")) / "_delta_log").glob("*.json"))
    honest = newest.read_text()
    newest.write_text(honest.replace(old, new))
    assert newest.read_text() != honest
    found = list(checker(warehouse).commits.commits("totals"))
    assert UNNAMED in {finding.kind for finding in found}


def test_refreshes_without_epochs_are_found(warehouse: fv.Warehouse) -> None:
    assert verdict(warehouse, settled=True).findings == []
    for file in epochs(warehouse)[1:]:
        file.unlink()
    found = list(checker(warehouse).epochs.unrecorded())
    assert {(f.kind, f.where) for f in found} == {(STALE, v) for v in ("rows", "totals", "both")}


def test_a_view_that_is_gone_or_another_one_is_no_finding(warehouse: fv.Warehouse) -> None:
    warehouse.create_view("made", "SELECT g FROM r")
    warehouse.drop_view("made")
    assert verdict(warehouse, settled=True).findings == []
    warehouse.create_view("made", "SELECT v FROM r")
    assert verdict(warehouse, settled=True).findings == []
