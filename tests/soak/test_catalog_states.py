"""What the states of the catalog tell of each other, and a view that is lost from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import freshview as fv
from soak.catalog_states import CatalogStates
from soak.findings import CATALOG, UNKNOWN
from soak.kills import misplaced
from tests.soak.planting import kinds, rewrite, verdict

Entry = Mapping[str, Any]


def table(name: str = "r", path: str = "tables/r") -> Entry:
    return {"kind": "table", "name": name, "path": path}


def view(name: str = "v", id: str = "1", *sources: str, sql: str = "", policy: str = "A") -> Entry:
    made = {"kind": "view", "name": name, "id": id, "path": f"views/{name}-{id}"}
    return {**made, "sources": sources, "sql": sql, "policy": policy}


def written(root: Path, *states: list[Entry] | None) -> CatalogStates:
    folder = root / "_freshview" / "catalog"
    folder.mkdir(parents=True)
    for number, entries in enumerate(states, start=1):
        if entries is not None:
            text = json.dumps({"format": 2, "entries": entries})
            (folder / f"{number:012d}.json").write_text(text)
    return CatalogStates(root)


@pytest.mark.parametrize(
    "states",
    [
        pytest.param([[], [table()], [table(), view("v", "1", "r")]], id="added"),
        pytest.param([[table(), view()], [table()]], id="dropped"),
        pytest.param([[view("v", "1")], [view("v", "2")]], id="replaced"),
        pytest.param([[view()], [view(policy="B")], [view(policy="B")]], id="another policy"),
    ],
)
def test_what_a_catalog_goes_through_is_no_finding(tmp_path: Path, states: list[Any]) -> None:
    assert list(written(tmp_path, *states).check()) == []


@pytest.mark.parametrize(
    "states",
    [
        pytest.param([[table()], None, [table(), view()]], id="a state is missing"),
        pytest.param([None, [table()]], id="the first state is missing"),
        pytest.param([[view("v"), view("w", "2")], [view("x", "3")]], id="several at once"),
        pytest.param([[table()], [table(), view()], [table(), view("w", "2")]], id="overwritten"),
        pytest.param([[table()], []], id="a lost table"),
        pytest.param([[table()], [table(path="tables/s")]], id="another table"),
        pytest.param([[view()], [table("v")]], id="a table in place of a view"),
        pytest.param([[table(), view("v", "1", "r")], [view("v", "1", "r")]], id="lost, and read"),
        pytest.param([[view()], [view(sql="other")]], id="other definition, same identity"),
        pytest.param([[view()], [], [view()]], id="an identity that comes again"),
        pytest.param([[view()], [view("v", "2")], [view("v", "1")]], id="a replacement undone"),
    ],
)
def test_what_no_change_of_a_catalog_does_is_found(tmp_path: Path, states: list[Any]) -> None:
    assert {finding.kind for finding in written(tmp_path, *states).check()} == {CATALOG}


def test_a_view_that_is_expected_must_be_there(tmp_path: Path) -> None:
    states = written(tmp_path, [view("v"), view("w", "2")], [view("v")])
    assert list(states.check(expected=["v"])) == []
    assert [finding.where for finding in states.check(expected=["v", "w"])] == ["w"]


def test_a_kill_that_takes_or_brings_back_a_view_is_found(tmp_path: Path) -> None:
    written(tmp_path / "lost", [])
    written(tmp_path / "there", [view("made")])
    for place, there in (("lost", False), ("there", True)):
        assert misplaced(tmp_path / place, "here", there) == []
        assert misplaced(tmp_path / place, "here", True, False) == []
        assert [f.kind for f in misplaced(tmp_path / place, "here", not there)] == [CATALOG]


def newest(warehouse: fv.Warehouse) -> Path:
    return max((warehouse.root / "_freshview" / "catalog").glob("*.json"))


def lose(content: dict[str, Any], *names: str) -> None:
    content["entries"] = [entry for entry in content["entries"] if entry["name"] not in names]


@pytest.mark.spark
def test_a_view_that_the_newest_state_lost_is_found(warehouse: fv.Warehouse) -> None:
    """The state that brought it has it no more, so none has; but epochs name it."""
    rewrite(newest(warehouse), lambda content: lose(content, "both"))
    assert kinds(warehouse) == {UNKNOWN}
    found = verdict(warehouse, expected=("rows", "totals", "both"))
    assert {finding.kind for finding in found.findings} == {UNKNOWN, CATALOG}
    assert found.views == ["rows", "totals"]


@pytest.mark.spark
def test_a_view_that_is_gone_and_was_not_dropped_is_found(warehouse: fv.Warehouse) -> None:
    """By its files it might have been dropped by a process that was killed then."""
    last = newest(warehouse)
    following = last.with_name(f"{int(last.stem) + 1:012d}.json")
    following.write_text(last.read_text())
    rewrite(following, lambda content: lose(content, "both"))
    assert kinds(warehouse) == set()
    assert kinds(warehouse, expected=("rows", "totals", "both")) == {CATALOG}


@pytest.mark.spark
def test_a_lost_view_that_others_read_is_found(warehouse: fv.Warehouse) -> None:
    rewrite(newest(warehouse), lambda content: lose(content, "rows"))
    found = verdict(warehouse, settled=True)
    assert CATALOG in {finding.kind for finding in found.findings}
    assert found.views == []
