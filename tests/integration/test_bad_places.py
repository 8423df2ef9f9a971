"""Paths, folders and state files that cannot be: refused with a code, and left as they were."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import freshview as fv
from freshview.runtime.catalog import FORMAT
from tests.unchanged import fingerprint, refused

ROWS = pa.table({"a": [1, 2]})
SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture
def shop(tmp_path: Path) -> fv.Warehouse:
    """A warehouse with one table, for which no Spark is started."""
    warehouse = fv.open(tmp_path / "shop")
    warehouse.create_table("t", ROWS)
    return warehouse


def a_file(folder: Path) -> Path:
    file = folder / "file"
    file.write_text("no table")
    return file


def an_empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def a_parquet_folder(folder: Path) -> Path:
    (folder / "parquet").mkdir()
    pq.write_table(ROWS, folder / "parquet" / "part.parquet")
    return folder / "parquet"


def an_empty_log(folder: Path) -> Path:
    (folder / "log" / "_delta_log").mkdir(parents=True)
    return folder / "log"


def a_missing_path(folder: Path) -> Path:
    return folder / "nowhere"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (a_file, "it is a file"),
        (an_empty_folder, "the folder is empty"),
        (a_parquet_folder, "no _delta_log"),
        (an_empty_log, "No files in log segment"),
        (a_missing_path, "no such folder"),
    ],
)
def test_registering_what_is_no_delta_table(
    shop: fv.Warehouse, tmp_path: Path, make: Callable[[Path], Path], why: str
) -> None:
    place = make(tmp_path)
    before = fingerprint(tmp_path)
    refused(shop.root, "TABLE_MISSING", lambda: shop.register("bad", place), str(place), why)
    assert {name for name in fingerprint(tmp_path) if "/leases/" not in name} == {
        name for name in before if "/leases/" not in name
    }


@pytest.mark.parametrize("place", ["ftp://nobody/x", "jar:file:///x", "-- ; DROP", "`", "t'"])
def test_registering_what_is_no_path(shop: fv.Warehouse, place: str) -> None:
    refused(shop.root, "TABLE_MISSING", lambda: shop.register("bad", place), place)


SIGNS = ("%", "%20", "%2e%2e", "[", "]", "|", "^", "\\", "\n", "\0", "\x7f", "\udcff")


@pytest.mark.parametrize("sign", SIGNS, ids=repr)
def test_folders_that_the_libraries_take_for_others(
    shop: fv.Warehouse, tmp_path: Path, sign: str
) -> None:
    place = tmp_path / f"a{sign}b" / "t"
    before = sorted(tmp_path.iterdir())
    for act in (
        lambda: shop.register("bad", place),
        lambda: fv.open(place),
        lambda: fv.open(place, create=False),
    ):
        refused(shop.root, "INVALID_PATH", act, "the Delta libraries cannot read a path with")
    assert sorted(tmp_path.iterdir()) == before


def test_a_link_is_followed_before_the_path_is_judged(shop: fv.Warehouse, tmp_path: Path) -> None:
    (tmp_path / "a[b]").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a[b]")
    refused(shop.root, "INVALID_PATH", lambda: shop.register("bad", tmp_path / "link"), "a[b]")


def test_nothing_is_written_through_a_link_out_of_the_warehouse(tmp_path: Path) -> None:
    shop, outside = fv.open(tmp_path / "shop"), tmp_path / "outside"
    outside.mkdir()
    for folder in ("tables", "views"):
        (shop.root / folder).symlink_to(outside)
    for act in (
        lambda: shop.create_table("t", ROWS),
        lambda: shop.create_view("v", "SELECT 1 AS a"),
        lambda: shop.view(lambda: shop.table("t"), name="v"),
    ):
        refused(shop.root, "INVALID_PATH", act, "leads out of the warehouse")
    assert list(outside.iterdir()) == []


def test_registering_needs_a_place(shop: fv.Warehouse) -> None:
    refused(shop.root, "INVALID_PATH", lambda: shop.register("bad"), "neither a path nor")
    refused(shop.root, "INVALID_PATH", lambda: shop.register("bad", ""), "it is empty")
    for long in ("a" * 256, "é" * 128, "a/" * 2000):
        for act in (lambda long=long: shop.register("bad", long), lambda long=long: fv.open(long)):
            refused(shop.root, "INVALID_PATH", act, "at most 255 bytes")


def test_a_table_is_stored_under_its_plain_path(shop: fv.Warehouse, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "x"), ROWS)
    shop.register("x", shop.root / ".." / "x")
    shop.register("again", shop.root / "tables" / ".." / "tables" / "t")
    assert {entry.name: entry.path for entry in shop.catalog} == {
        "t": "tables/t",
        "x": str(tmp_path / "x"),
        "again": "tables/t",
    }


def test_a_table_is_never_replaced(shop: fv.Warehouse) -> None:
    write_deltalake(str(shop.root / "tables" / "left"), ROWS)
    refused(shop.root, "TABLE_EXISTS", lambda: shop.create_table("left", ROWS), "tables/left")


def test_rows_that_are_none(shop: fv.Warehouse) -> None:
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    for rows in (5, "x", None, [{"a": 1}], pd.DataFrame({"a": [object()]}), twice):
        act = partial(shop.create_table, "bad", rows)
        refused(shop.root, "INVALID_CHANGES", act, "bad", type(rows).__name__)
    for kind in (pa.duration("s"), pa.time64("us"), pa.float16(), pa.decimal256(60, 2)):
        act = partial(shop.create_table, "bad", pa.schema([("a", kind)]))
        refused(shop.root, "SCHEMA_MISMATCH", act, "tables/bad", "Invalid data type")


VIEW = {
    "kind": "view", "name": "v", "id": "1", "path": "views/v-1", "sources": ["t"],
    "columns": ["a"], "counted": True, "technique": "counting", "policy": "AUTO", "sql": "x",
    "function": None, "comment": None, "settings": {}, "source_columns": {"t": ["a"]},
}  # fmt: skip
CORRUPT = {
    "empty": "",
    "cut off": '{"format": 1, "entries": [{"kind": "tab',
    "not JSON": "format: 1",
    "not text": "\udcff\udcfe",
    "a list": "[]",
    "no format": '{"entries": []}',
    "a wrong format": '{"format": "new", "entries": []}',
    "no entries": '{"format": 1}',
    "entries of a wrong kind": '{"format": 1, "entries": [1]}',
    "an entry without a path": '{"format": 1, "entries": [{"kind": "table", "name": "t"}]}',
    "a path that is none": json.dumps(
        {"format": 1, "entries": [{"kind": "table", "name": "t", "path": 7}]}
    ),
    "a name that is none": json.dumps(
        {"format": 1, "entries": [{"kind": "table", "name": "../t", "path": "t"}]}
    ),
    "a policy that is none": json.dumps({"format": 1, "entries": [VIEW | {"policy": "x"}]}),
    "a view elsewhere": json.dumps({"format": 1, "entries": [VIEW | {"path": "tables/t"}]}),
    "a view above": json.dumps({"format": 1, "entries": [VIEW | {"path": "views/../tables"}]}),
    "a view anywhere": json.dumps({"format": 1, "entries": [VIEW | {"path": "/views/t"}]}),
    "a view that is all": json.dumps({"format": 1, "entries": [VIEW | {"path": "views"}]}),
}


def next_state(shop: fv.Warehouse) -> Path:
    """The file in which the next state of the catalog would be."""
    states = shop.catalog._states
    return states.file(states.numbers()[-1] + 1)


@pytest.mark.parametrize("case", CORRUPT)
def test_a_damaged_catalog(shop: fv.Warehouse, case: str) -> None:
    file = next_state(shop)
    file.write_bytes(CORRUPT[case].encode("utf-8", "surrogateescape"))
    for act in (
        lambda: fv.open(shop.root),
        lambda: fv.open(shop.root, create=False),
        shop.refresh,
        lambda: shop.register("other", shop.root / "tables" / "t"),
    ):
        refused(shop.root, "WAREHOUSE_CORRUPT", act, str(file))


def test_a_catalog_as_it_is_stored_is_not_damaged(shop: fv.Warehouse) -> None:
    next_state(shop).write_text(json.dumps({"format": FORMAT, "entries": [VIEW]}))
    assert fv.open(shop.root).catalog.view("v").path == "views/v-1"


def test_a_warehouse_of_a_later_version(shop: fv.Warehouse) -> None:
    text = json.dumps({"format": FORMAT + 1, "entries": "of another shape"})
    next_state(shop).write_text(text)
    for act in (lambda: fv.open(shop.root), lambda: shop.create_table("u", ROWS), shop.refresh):
        refused(
            shop.root,
            "WAREHOUSE_TOO_NEW",
            act,
            f"format {FORMAT + 1}",
            f"this version knows up to {FORMAT}",
        )


def test_a_damaged_intent(shop: fv.Warehouse) -> None:
    folder = shop.root / "_freshview" / "transactions"
    folder.mkdir(exist_ok=True)
    for text in ("", "[1]", '[{"table": "t"}]', "{}x"):
        (folder / "000000000001.intent.json").write_text(text)
        changes = {"t": fv.TableChanges(insert=[{"a": 3}])}
        for act in (lambda c=changes: shop.apply(c), shop.refresh):
            refused(shop.root, "WAREHOUSE_CORRUPT", act, "000000000001.intent.json")


def test_a_warehouse_where_a_file_is(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    refused(tmp_path, "WRITE_FAILED", lambda: fv.open(file), str(file), "Not a directory")
    refused(tmp_path, "WRITE_FAILED", lambda: fv.open(file / "below"), "Not a directory")
    refused(tmp_path, "WAREHOUSE_MISSING", lambda: fv.open(file, create=False), str(file))
    refused(tmp_path, "WAREHOUSE_MISSING", lambda: fv.open(tmp_path, create=False))


WITHOUT_RIGHTS = """
import os, sys
import pyarrow as pa
import freshview as fv
import freshview.runtime.warehouse
from freshview.errors import FreshviewError
root = sys.argv[1]
if os.geteuid() == 0:
    os.setuid(65534)
for act in (
    lambda: fv.open(root + "/new"),
    lambda: fv.open(root).create_table("u", pa.table({"a": [1]})),
    lambda: fv.open(root).register("u", root + "/tables/t"),
    lambda: fv.open(root).apply({"t": fv.TableChanges(insert=[{"a": 3}])}),
):
    try:
        act()
    except FreshviewError as error:
        print(error.code, error.parameters["reason"])
"""


def test_a_warehouse_without_the_right_to_write(shop: fv.Warehouse) -> None:
    """In a process that is not root, because nothing is forbidden to root."""
    with tempfile.TemporaryDirectory() as open_to_all:
        root = Path(shutil.copytree(shop.root, Path(open_to_all) / "shop"))
        folders = [Path(open_to_all), root, *(p for p in root.rglob("*") if p.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        before = fingerprint(root)
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_RIGHTS, str(root)],
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
            capture_output=True,
            text=True,
            check=False,
        )
        for folder in folders:
            folder.chmod(0o755)
        assert done.stdout.splitlines() == ["WRITE_FAILED Permission denied"] * 4, done.stderr
        assert fingerprint(root) == before
