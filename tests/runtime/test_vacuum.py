"""Vacuum: what is left over is found; what is young, in use, needed above or not ours is not."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from freshview.errors import NotFresh, RetentionTooShort
from freshview.runtime.catalog import Catalog, TableEntry, ViewEntry
from freshview.runtime.commit import Consumed, SourceVersion
from freshview.runtime.epochs import Epochs
from freshview.runtime.lease import lease, view_lease
from freshview.runtime.vacuum import (
    OLD_EPOCH,
    OLD_FILE,
    STAGED_ROWS,
    TEMPORARY,
    UNFINISHED_VIEW,
    leftovers,
)

OLD_S = 3 * 3600
HOURS = 2


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A table, a view of it with two versions, and a view above that has seen the first."""
    catalog = Catalog.create(tmp_path)
    catalog.add(TableEntry("r", "tables/r"))
    catalog.add(view("v", "views/v-01234567", "r"))
    catalog.add(view("above", "views/above-01234567", "v"))
    for path in ("tables/r", "views/v-01234567", "views/above-01234567"):
        for number in range(3):
            write_deltalake(tmp_path / path, pa.table({"n": [number]}), mode="overwrite")
    return catalog


def view(name: str, path: str, source: str) -> ViewEntry:
    return ViewEntry(name, name, path, (source,), ("n",), False, "counting")


def consumed_at(catalog: Catalog, version: int) -> Callable[[ViewEntry], Consumed]:
    def consumed(entry: ViewEntry) -> Consumed:
        source = entry.sources[0]
        table = identity(Path(catalog.path(catalog.get(source))))
        return Consumed(0, 1, {source: SourceVersion(version, table)})

    return consumed


def identity(table: Path) -> str:
    return str(DeltaTable(table).metadata().id) if DeltaTable.is_deltatable(str(table)) else ""


def age(path: Path) -> None:
    """Make a file, or all files of a folder, older than the retention, to Delta as well."""
    then = time.time() - OLD_S
    for file in (path, *path.rglob("*")):
        if file.parent.name == "_delta_log" and file.suffix == ".json":
            removed = f'"deletionTimestamp":{int(then * 1000)}'
            text = re.sub(r'"deletionTimestamp":\d+', removed, file.read_text())
            file.write_text(text)
    for file in (*path.rglob("*"), path):
        os.utime(file, (then, then))


def found(catalog: Catalog, version: int = 2) -> set[tuple[str, str]]:
    listed = leftovers(catalog, consumed_at(catalog, version), HOURS)
    return {(x.kind, x.path.relative_to(catalog.root).as_posix()) for x in listed}


def write(file: Path, text: str = "x") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("hours", [0, 0.9, -1, math.nan, math.inf])
def test_a_retention_that_readers_could_feel_is_refused(hours: float, catalog: Catalog) -> None:
    with pytest.raises(RetentionTooShort):
        list(leftovers(catalog, consumed_at(catalog, 0), hours))


def test_folders_of_views_that_never_were(catalog: Catalog, tmp_path: Path) -> None:
    views = tmp_path / "views"
    for name in ("made-89abcdef", "young-89abcdef", "mine", "table-89abcdef"):
        write(views / name / "part.parquet")
    (views / "link-89abcdef").symlink_to(tmp_path / "tables")
    catalog.add(TableEntry("registered", "views/table-89abcdef"))
    for name in ("made-89abcdef", "mine", "table-89abcdef"):
        age(views / name)
    assert found(catalog) == {(UNFINISHED_VIEW, "views/made-89abcdef")}
    with lease(view_lease(tmp_path, "made")):
        assert found(catalog) == set()


def test_a_view_that_gets_into_the_catalog_meanwhile_stays(
    catalog: Catalog, tmp_path: Path
) -> None:
    for name in ("a-89abcdef", "made-89abcdef"):
        write(tmp_path / "views" / name / "part.parquet")
        age(tmp_path / "views" / name)
    going = leftovers(catalog, consumed_at(catalog, 2), HOURS)
    assert next(going).path.name == "a-89abcdef"
    Catalog.create(tmp_path).add(view("made", "views/made-89abcdef", "r"))
    assert [leftover.path.name for leftover in going] == []


def test_files_of_old_versions(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "views" / "v-01234567"
    files = [set(DeltaTable(path, version).file_uris()) for version in range(3)]
    names = [Path(next(iter(uris))).name for uris in files]
    assert found(catalog) == set()
    orphan = write(path / "part-orphan.parquet")
    write(path / "part-young.parquet")
    write(path / "deletion_vector_1.bin")
    write(path / "_delta_log" / "_commit_1.json.tmp")
    age(path)
    age(tmp_path / "tables" / "r")
    os.utime(path / "part-young.parquet")
    gone = {
        (OLD_FILE, f"views/v-01234567/{orphan.name}"),
        (TEMPORARY, "views/v-01234567/_delta_log/_commit_1.json.tmp"),
    }
    old = [(OLD_FILE, f"views/v-01234567/{name}") for name in names]
    assert found(catalog, version=2) == {*gone, old[0], old[1]}
    # The view above has come to version 1 only: its next delta starts there.
    assert found(catalog, version=1) == {*gone, old[0]}
    with lease(view_lease(tmp_path, "v")):
        assert found(catalog) == set()


def test_a_reader_without_a_state_needs_nothing(catalog: Catalog, tmp_path: Path) -> None:
    def unknown(entry: ViewEntry) -> Consumed:
        raise NotFresh(name=entry.name)

    age(tmp_path / "views" / "v-01234567")
    assert len(list(leftovers(catalog, unknown, HOURS))) == 2


def test_a_dropped_view_is_no_error(catalog: Catalog, tmp_path: Path) -> None:
    for file in sorted((tmp_path / "views" / "v-01234567").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert found(catalog) == set()


def test_rows_of_transactions_that_never_happened(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "_freshview" / "transactions"
    for name in ("1.r.insert.parquet", "2.r.insert.parquet", "2.intent.json", "3.r.insert.parquet"):
        age(write(folder / name))
    os.utime(folder / "3.r.insert.parquet")
    write(folder / "1.r.trial" / "_delta_log" / "0.json")
    age(folder / "1.r.trial")
    names = {"1.r.insert.parquet", "1.r.trial"}
    assert found(catalog) == {(STAGED_ROWS, f"_freshview/transactions/{name}") for name in names}
    with lease(folder / "lease"):
        assert found(catalog) == set()


def test_temporary_files(catalog: Catalog, tmp_path: Path) -> None:
    age(write(tmp_path / "_freshview" / "epochs" / ".12.tmp"))
    write(tmp_path / "_freshview" / ".catalog.json.9.tmp")
    assert found(catalog) == {(TEMPORARY, "_freshview/epochs/.12.tmp")}


def test_the_last_epoch_in_which_views_agree_stays(catalog: Catalog, tmp_path: Path) -> None:
    epochs = Epochs(tmp_path)
    for views in (("v", "above"), ("v",), ("v",), ("above",), ("v",)):
        epochs.record({name: SourceVersion(0, name) for name in views}, {})
    age(tmp_path / "_freshview" / "epochs")
    assert found(catalog) == {
        (OLD_EPOCH, f"_freshview/epochs/{number:012d}.json") for number in (2, 3)
    }


def test_files_of_versions_in_kept_epochs_stay(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "views" / "v-01234567"
    age(folder)
    old = {file.name for file in folder.glob("*.parquet")} - names_of(folder, 2)
    assert {Path(name).name for _, name in found(catalog)} == old - names_of(folder, 2)
    earlier = SourceVersion(10, "a view that had the name before")
    Epochs(tmp_path).record({"v": earlier, "gone": earlier}, {})
    Epochs(tmp_path).record({"v": SourceVersion(0, identity(folder))}, {}, after=1)
    kept = names_of(folder, 0)
    assert kept
    assert {Path(name).name for _, name in found(catalog)} == old - kept


def names_of(folder: Path, version: int) -> set[str]:
    return {Path(uri).name for uri in DeltaTable(folder, version).file_uris()}


def test_removing_twice_is_no_error(catalog: Catalog, tmp_path: Path) -> None:
    write(tmp_path / "views" / "made-89abcdef" / "part.parquet")
    age(tmp_path / "views" / "made-89abcdef")
    (leftover,) = leftovers(catalog, consumed_at(catalog, 2), HOURS)
    assert leftover.bytes == 1
    leftover.remove()
    leftover.remove()
    assert not leftover.path.exists()
    assert found(catalog) == set()
