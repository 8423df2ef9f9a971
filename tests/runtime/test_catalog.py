"""The catalog and epochs: plain files that survive crashes and other processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from freshview.errors import (
    InvalidName,
    NameTaken,
    UnknownName,
    ViewCycle,
    ViewInUse,
    WarehouseMissing,
    WarehouseTooNew,
)
from freshview.runtime.catalog import Catalog, Policy, TableEntry, ViewEntry
from freshview.runtime.epochs import Epochs
from freshview.runtime.view_graph import base_tables, check_replaceable, refresh_order


def view(name: str, *sources: str) -> ViewEntry:
    return ViewEntry(
        name, f"id-{name}", f"views/{name}", sources, ("a",), True, "counting", sql="x"
    )


def catalog_with(root: Path, *entries: TableEntry | ViewEntry) -> Catalog:
    catalog = Catalog.create(root)
    for entry in entries:
        catalog.add(entry)
    return catalog


def test_entries_are_there_again_when_opened_again(tmp_path: Path) -> None:
    catalog_with(tmp_path, TableEntry("t", "tables/t"), view("v", "t"))
    again = Catalog.create(tmp_path)
    assert again.view("v") == view("v", "t")
    assert again.path(again.get("t")) == str(tmp_path / "tables" / "t")
    assert again.readers("t") == ("v",)


def test_another_process_sees_a_change_when_it_loads(tmp_path: Path) -> None:
    one = catalog_with(tmp_path)
    two = Catalog.create(tmp_path)
    one.add(TableEntry("t", "tables/t"))
    two.load()
    assert "t" in two


def test_names_are_checked(tmp_path: Path) -> None:
    catalog = catalog_with(tmp_path, TableEntry("t", "x"))
    for name in ("", "a b", "../a", "a`b", "ä", "1a", "a" * 64, "a;b", "a'b"):
        with pytest.raises(InvalidName):
            catalog.add(TableEntry(name, "x"))
    with pytest.raises(NameTaken):
        catalog.add(TableEntry("T", "y"))
    with pytest.raises(UnknownName) as unknown:
        catalog.get("nothing")
    assert unknown.value.parameters["name"] == "nothing"
    with pytest.raises(UnknownName):
        catalog.view("t")


def test_a_view_that_others_read_stays(tmp_path: Path) -> None:
    catalog = catalog_with(tmp_path, TableEntry("t", "x"), view("v", "t"), view("w", "v"))
    with pytest.raises(ViewInUse) as caught:
        catalog.remove("v")
    assert caught.value.parameters["readers"] == "w"
    catalog.remove("w")
    catalog.remove("v")
    assert catalog.views() == ()


def test_policy_is_stored(tmp_path: Path) -> None:
    catalog = catalog_with(tmp_path, TableEntry("t", "x"), view("v", "t"))
    catalog.set_policy("v", Policy.STRICT)
    assert Catalog.create(tmp_path).view("v").policy is Policy.STRICT


def test_a_folder_without_catalog_and_a_later_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WarehouseMissing):
        Catalog(tmp_path / "no").load()
    catalog = catalog_with(tmp_path)
    catalog.file.write_text(json.dumps({"format": 99, "entries": []}))
    with pytest.raises(WarehouseTooNew):
        Catalog(tmp_path).load()


def test_order_of_a_refresh(tmp_path: Path) -> None:
    catalog = catalog_with(
        tmp_path, TableEntry("t", "x"), TableEntry("u", "x"),
        view("c", "b", "u"), view("b", "a"), view("a", "t"), view("other", "u"),
    )  # fmt: skip
    names = [entry.name for entry in refresh_order(catalog)]
    assert names.index("a") < names.index("b") < names.index("c")
    assert [entry.name for entry in refresh_order(catalog, ["b"])] == ["a", "b"]
    assert set(base_tables(catalog, refresh_order(catalog, ["c"]))) == {"t", "u"}


def test_a_view_is_replaced_only_if_nobody_reads_it_and_it_reads_not_itself(tmp_path: Path) -> None:
    pairs = [
        (f"{side}{step}", f"l{step - 1}", f"r{step - 1}") for step in range(1, 40) for side in "lr"
    ]
    catalog = catalog_with(tmp_path, TableEntry("t", "x"), view("l0", "t"), view("r0", "t"))
    for name, *sources in pairs:
        catalog._entries[name] = view(name, *sources)
    check_replaceable(catalog, "l39", ("r38", "l38"))  # as many ways down as 2 ** 39
    with pytest.raises(ViewCycle) as cycle:
        check_replaceable(catalog, "r38", ("t", "l39"))
    assert cycle.value.parameters["cycle"] == "r38 → l39 → r38"
    with pytest.raises(ViewInUse) as used:
        check_replaceable(catalog, "r38", ("t",))
    assert used.value.parameters["readers"] == "l39, r39"


def test_epochs_are_numbered_and_read_back(tmp_path: Path) -> None:
    epochs = Epochs(tmp_path)
    assert epochs.latest() is None
    assert epochs.record({"v": 3}, {"t": 7}).number == 1
    assert epochs.record({"v": 4}, {"t": 8}).number == 2
    latest = epochs.latest()
    assert latest is not None
    assert (latest.views, latest.tables) == ({"v": 4}, {"t": 8})
    assert epochs.read(9) is None
