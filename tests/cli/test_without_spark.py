"""Commands that need no Spark: those on an empty warehouse, and those that fail early."""

from __future__ import annotations

import os

import pytest

from tests.cli.run import in_process, own_process


def test_init_makes_a_warehouse_once(tmp_path):
    shop = tmp_path / "shop"
    first, second = in_process("init", shop, "--json"), in_process("init", shop, "--json")
    assert first.answer == {"ok": True, "path": str(shop), "created": True}
    assert second.answer == {"ok": True, "path": str(shop), "created": False}
    assert "already was a warehouse" in in_process("init", shop).out


def test_init_where_a_file_is(tmp_path):
    file = tmp_path / "file"
    file.touch()
    found = in_process("init", file, "--json")
    assert found.status == 1
    assert found.answer["code"] == "WRITE_FAILED"
    assert found.answer["parameters"] == {"path": str(file), "reason": "Not a directory"}
    assert file.read_bytes() == b""


@pytest.mark.parametrize("command", ["refresh", "status", "check"])
def test_an_empty_warehouse_has_no_views(command, tmp_path):
    in_process("init", tmp_path)
    assert "no views yet" in in_process(command, "-w", tmp_path).out
    answer = in_process(command, "-w", tmp_path, "--json").answer
    assert answer["ok"] is True
    assert answer["views"] == []


def test_a_folder_that_is_no_warehouse_is_an_error_without_traceback(tmp_path):
    found = own_process("status", "--warehouse", tmp_path)
    assert (found.status, found.out) == (1, "")
    assert found.err.startswith("WAREHOUSE_MISSING: ")
    assert "  do:  " in found.err
    assert "Traceback" not in found.err


def test_errors_in_json(tmp_path):
    found = own_process("refresh", "--json", FRESHVIEW_WAREHOUSE=str(tmp_path))
    assert (found.status, found.err) == (1, "")
    answer = found.answer
    assert answer["ok"] is False
    assert (answer["code"], answer["status"]) == ("WAREHOUSE_MISSING", 1)
    assert answer["parameters"] == {"path": str(tmp_path)}
    assert answer["error"].startswith("WAREHOUSE_MISSING: ")


@pytest.mark.parametrize(
    "arguments",
    [("refresh", "missing"), ("explain", "missing"), ("check", "missing"), ("why", "missing")],
)
def test_unknown_views_are_named(arguments, tmp_path):
    in_process("init", tmp_path)
    found = in_process(*arguments, "-w", tmp_path, "--json")
    assert found.status == 1
    assert found.answer["code"] == "UNKNOWN_NAME"
    assert found.answer["parameters"]["name"] == "missing"


def test_registering_what_is_no_table(tmp_path):
    in_process("init", tmp_path)
    found = in_process("register", "orders", tmp_path / "nowhere", "-w", tmp_path, "--json")
    assert found.status == 1
    assert found.answer["code"] == "TABLE_MISSING"


def test_vacuum_lists_and_removes_only_when_told(tmp_path):
    in_process("init", tmp_path)
    left = tmp_path / "views" / "made-01234567"
    left.mkdir(parents=True)
    (left / "part.parquet").write_text("rows")
    assert "nothing older than 2 hours" in vacuumed(tmp_path, "--older-than", "2").out
    for path in (left / "part.parquet", left):
        os.utime(path, (0, 0))
    listed = vacuumed(tmp_path, "--json").answer
    assert (listed["removed"], listed["bytes"], len(listed["leftovers"])) == (False, 4, 1)
    shown = vacuumed(tmp_path).out
    assert "view without a definition" in shown
    assert "Nothing was removed; --remove would free: 4 bytes in 1 files and folders." in shown
    assert left.is_dir()
    removed = vacuumed(tmp_path, "--remove", "--json").answer
    assert [leftover["path"] for leftover in removed["leftovers"]] == [str(left)]
    assert not left.exists()


def vacuumed(path, *arguments):
    done = in_process("vacuum", *arguments, "--warehouse", path)
    assert done.status == 0
    return done
