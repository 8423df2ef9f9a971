"""The catalog and epochs: plain files that survive crashes and other processes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from freshview import faults
from freshview.errors import (
    InvalidName,
    NameTaken,
    UnknownName,
    ViewCycle,
    ViewInUse,
    WarehouseCorrupt,
    WarehouseMissing,
    WarehouseTooNew,
)
from freshview.runtime.catalog import FORMAT, Catalog, Policy, TableEntry, ViewEntry
from freshview.runtime.commit import SourceVersion
from freshview.runtime.epochs import Epochs, OldNews
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
    catalog.marker.write_text(json.dumps({"format": 99, "entries": []}))
    with pytest.raises(WarehouseTooNew):
        Catalog(tmp_path).load()


def test_order_of_a_refresh(tmp_path: Path) -> None:
    catalog = catalog_with(
        tmp_path, TableEntry("t", "x"), TableEntry("u", "x"),
        view("c", "u"), view("b", "t"), view("a", "t"), view("other", "u"),
    )  # fmt: skip
    catalog.replace(catalog.view("b"), view("b", "a"))
    catalog.replace(catalog.view("c"), view("c", "b", "u"))
    names = [entry.name for entry in refresh_order(catalog)]
    assert names.index("a") < names.index("b") < names.index("c")
    assert [entry.name for entry in refresh_order(catalog, ["b"])] == ["a", "b"]
    assert set(base_tables(catalog, refresh_order(catalog, ["c"]))) == {"t", "u"}


def version(number: int, table: str = "one") -> SourceVersion:
    return SourceVersion(number, table)


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
    assert epochs.newest() is None
    assert epochs.record({"v": version(3)}, {"t": version(7)}).number == 1
    assert epochs.record({"v": version(4)}, {"t": version(8)}).number == 2
    newest = epochs.newest()
    assert newest is not None
    assert (newest.get("v"), newest.get("t")) == (version(4), version(8))
    assert newest.get("w") is None
    assert epochs.read(9) is None


def test_a_damaged_epoch_is_named(tmp_path: Path) -> None:
    epochs = Epochs(tmp_path)
    epochs.record({"v": version(3)}, {})
    file = tmp_path / "_freshview" / "epochs" / "000000000001.json"
    for text in ("", "[]", '{"time": ""}', '{"time": "", "views": {"v": 3}, "tables": {}}'):
        file.write_text(text)
        with pytest.raises(WarehouseCorrupt) as caught:
            epochs.newest()
        assert caught.value.parameters["file"] == str(file)


def test_the_newest_epoch_of_some_views_has_all_of_them(tmp_path: Path) -> None:
    epochs = Epochs(tmp_path)
    epochs.record({"v": version(3), "w": version(1)}, {})
    epochs.record({"v": version(4)}, {})
    both, one = epochs.newest(["v", "w"]), epochs.newest(["v"])
    assert both is not None
    assert one is not None
    assert (both.number, one.number) == (1, 2)
    assert epochs.newest(["v", "x"]) is None


def test_time_does_not_go_back_from_epoch_to_epoch(tmp_path: Path) -> None:
    epochs = Epochs(tmp_path)
    seen = epochs.record({"v": version(3)}, {}).number
    epochs.record({"v": version(5), "w": version(9)}, {})
    epochs.record({"w": version(10)}, {})
    for old in (version(4), version(7, "another table of that name")):
        with pytest.raises(OldNews) as caught:
            epochs.record({"v": old}, {}, seen)
        assert caught.value.newer.number == 2
    assert epochs.numbers() == [1, 2, 3]
    assert epochs.record({"v": version(5), "x": version(1)}, {"t": version(2)}, seen).number == 4
    with pytest.raises(OldNews):
        epochs.record({"y": version(1)}, {"t": version(1)}, seen)


def test_two_that_record_at_once_get_two_numbers(tmp_path: Path) -> None:
    def record(number: int) -> None:
        for _ in range(20):
            Epochs(tmp_path).record({f"v{number}": version(1)}, {})

    threads = [threading.Thread(target=record, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Epochs(tmp_path).numbers() == list(range(1, 81))


def test_changes_made_at_once_are_all_kept(tmp_path: Path) -> None:
    catalog_with(tmp_path)

    def add(number: int) -> None:
        mine = Catalog.create(tmp_path)
        for place in range(10):
            mine.add(TableEntry(f"t{number}_{place}", "x"))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = Catalog.create(tmp_path)
    assert {entry.name for entry in again} == {f"t{n}_{p}" for n in range(3) for p in range(10)}


@pytest.mark.parametrize("changes", [1, 40])
def test_a_process_that_wakes_up_late_overwrites_nothing(tmp_path: Path, changes: int) -> None:
    late, quick = catalog_with(tmp_path), Catalog.create(tmp_path)

    def others(name: str) -> None:
        faults.install(None)
        for number in range(changes):
            quick.add(TableEntry(f"quick{number}", "x"))

    faults.install(others)
    try:
        late.add(TableEntry("late", "x"))
    finally:
        faults.install(None)
    names = {entry.name for entry in Catalog.create(tmp_path)}
    assert names == {"late", *(f"quick{number}" for number in range(changes))}


def test_a_view_is_not_put_over_sources_that_are_gone(tmp_path: Path) -> None:
    catalog = catalog_with(tmp_path, TableEntry("t", "x"))
    Catalog.create(tmp_path).remove("t")
    with pytest.raises(UnknownName):
        catalog.add(view("v", "t"))
    assert list(Catalog.create(tmp_path)) == []


@pytest.mark.parametrize("point", ["catalog.before_upgrade", "catalog.upgrading"])
def test_a_killed_upgrade_is_undone_or_completed(tmp_path: Path, point: str) -> None:
    """Format 1 was one file; a freshview that knows only that must not write to it afterwards."""
    marker = catalog_with(tmp_path, TableEntry("t", "x"), view("v", "t")).marker
    states = tmp_path / "_freshview" / "catalog"
    newest = json.loads(max(states.glob("*.json")).read_text())
    shutil.rmtree(states)
    marker.write_text(json.dumps({**newest, "format": 1}))

    code = (
        "import sys; from pathlib import Path; from freshview import faults;"
        "from freshview.runtime.catalog import Catalog; from soak.dying import stopping_at;"
        "faults.install(stopping_at(sys.argv[2])); Catalog.create(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), f"{point}:1"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert json.loads(marker.read_text())["format"] == (1 if "before" in point else FORMAT)
    assert Catalog.create(tmp_path).view("v") == view("v", "t")
    assert json.loads(marker.read_text())["format"] == FORMAT
    Catalog.create(tmp_path).remove("v")
    assert [entry.name for entry in Catalog.create(tmp_path)] == ["t"]
