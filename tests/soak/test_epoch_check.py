"""Epochs that name what never was, and those that name what is gone by now."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import Any

import pytest

import freshview as fv
from freshview import faults
from freshview.runtime.vacuum import OLD_EPOCH
from soak.findings import BACKWARDS, LOST, UNKNOWN
from tests.soak.planting import epochs, kinds, path, rewrite, some, verdict

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("of", "planted"),
    [
        ("views", {"table": "garbage", "version": 99}),
        ("views", {"table": "garbage"}),
        ("views", {"version": 99}),
        ("views", {"version": -1}),
        ("views", {"commit": "e" * 16}),
        ("views", {"commit": ""}),
        ("tables", {"commit": "e" * 16}),
        ("tables", {"table": "garbage"}),
        ("tables", {"version": 99}),
    ],
)
def test_an_epoch_that_names_what_never_was_is_found(
    warehouse: fv.Warehouse, of: str, planted: dict[str, Any]
) -> None:
    def plant(epoch: Any) -> None:
        for held in epoch[of].values():
            held.update(planted)

    rewrite(epochs(warehouse)[0], plant)
    assert kinds(warehouse) == {UNKNOWN}


def test_an_epoch_that_is_gone_is_found(warehouse: fv.Warehouse) -> None:
    epochs(warehouse)[1].unlink()
    assert kinds(warehouse) == {LOST}


def test_epochs_that_a_vacuum_removed_are_no_finding(warehouse: fv.Warehouse) -> None:
    warehouse.apply({"r": some(5)})
    warehouse.refresh()
    for file in epochs(warehouse):
        os.utime(file, (time.time() - 7200,) * 2)
    before = len(epochs(warehouse))
    removed = [leftover.kind for leftover in warehouse.vacuum(1.5, remove=True)]
    assert removed.count(OLD_EPOCH) == before - len(epochs(warehouse)) > 0
    warehouse.apply({"r": some(6)})
    warehouse.refresh()
    assert kinds(warehouse) == set()
    for file in epochs(warehouse):
        os.utime(file)
    assert kinds(warehouse) == {LOST}


def test_an_epoch_that_names_a_view_nobody_made_is_found(warehouse: fv.Warehouse) -> None:
    def plant(epoch: Any) -> None:
        epoch["views"]["phantom"] = epoch["views"]["rows"]

    rewrite(epochs(warehouse)[-1], plant)
    assert kinds(warehouse) == {UNKNOWN}


def test_a_dropped_view_accounts_for_one_table_only(warehouse: fv.Warehouse) -> None:
    warehouse.create_view("made", "SELECT g FROM r")
    warehouse.apply({"r": some(5)})
    warehouse.refresh()
    warehouse.drop_view("made")
    assert kinds(warehouse) == set()
    rewrite(epochs(warehouse)[-1], lambda epoch: epoch["views"]["made"].update(table="garbage"))
    assert kinds(warehouse) == {UNKNOWN}


def test_a_drop_that_was_killed_is_no_finding(warehouse: fv.Warehouse) -> None:
    warehouse.create_view("made", "SELECT g FROM r")
    place = path(warehouse, "made")

    def stop(name: str) -> None:
        if name == "drop.catalogued":
            raise KeyboardInterrupt

    faults.install(stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            warehouse.drop_view("made")
    finally:
        faults.install(None)
    assert kinds(warehouse) == set()
    honest = epochs(warehouse)[-1].read_text()
    rewrite(epochs(warehouse)[-1], lambda epoch: epoch["views"]["made"].update(version=99))
    assert kinds(warehouse) == {UNKNOWN}
    epochs(warehouse)[-1].write_text(honest)
    # What a vacuum or the drop itself leaves if it is killed in the middle.
    shutil.copy(f"{place}/_delta_log/{0:020d}.json", f"{place}/_delta_log/{1:020d}.json")
    (warehouse.root / place / "_delta_log" / f"{0:020d}.json").unlink()
    assert kinds(warehouse) == set()


def test_a_view_that_got_another_table_is_no_finding(warehouse: fv.Warehouse) -> None:
    shutil.rmtree(path(warehouse, "rows"))
    warehouse.refresh()
    warehouse.apply({"r": some(5)})
    warehouse.refresh()
    found = verdict(warehouse, settled=True)
    assert found.findings == []
    assert found.gone > 0


def test_a_table_that_comes_again_is_found(warehouse: fv.Warehouse) -> None:
    warehouse.create_view("made", "SELECT g FROM r")
    first = json.loads(epochs(warehouse)[-1].read_text())["views"]["made"]
    warehouse.create_view("made", "SELECT v FROM r", replace_existing=True)
    warehouse.apply({"r": some(5)})
    warehouse.refresh()
    assert kinds(warehouse) == set()
    rewrite(epochs(warehouse)[-1], lambda epoch: epoch["views"].update(made=first))
    assert kinds(warehouse) == {BACKWARDS}
