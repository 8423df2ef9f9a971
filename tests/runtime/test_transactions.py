"""Transactions over several tables: all of it or nothing, once, whoever dies or sleeps on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from freshview import faults
from freshview.errors import InvalidChanges
from freshview.runtime import lease
from freshview.runtime.transactions import TableChanges
from freshview.storage.native import NativeStorage
from tests.runtime import transaction_child
from tests.runtime.transaction_child import ROWS, transactions

EXPIRES_S = 1.0
TABLES = ("one", "two")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in TABLES:
        NativeStorage().create(str(tmp_path / name), pa.table({"k": [0], "v": ["first"]}))
    return tmp_path


def values(folder: Path, name: str) -> list[str]:
    storage, path = NativeStorage(), str(folder / name)
    return sorted(storage.read(path, storage.latest(path))["v"].to_pylist())


def change(value: str) -> dict[str, TableChanges]:
    rows = pa.table({"k": [2], "v": [value]})
    return {name: TableChanges(insert=rows) for name in TABLES}


@pytest.mark.parametrize(
    ("point", "number", "outcome"),
    [
        ("transaction.staged", 1, "LEASE_LOST"),
        ("transaction.checked", 1, "LEASE_LOST"),
        ("transaction.intended", 1, "done"),
        ("transaction.before_write", 1, "done"),
        ("transaction.before_write", 2, "done"),
        ("transaction.table_written", 1, "done"),
        ("transaction.complete", 1, "done"),
    ],
)
def test_one_that_sleeps_past_its_lease_does_nothing_twice_and_nothing_by_halves(
    folder: Path, monkeypatch: pytest.MonkeyPatch, point: str, number: int, outcome: str
) -> None:
    monkeypatch.setattr(lease, "EXPIRES_S", EXPIRES_S)
    command = [
        sys.executable,
        "-m",
        transaction_child.__name__,
        str(folder),
        point,
        str(number),
        str(EXPIRES_S),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sleeper:
        _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        others = transactions(folder)
        expected = {"done": ["first", "late"], "LEASE_LOST": ["first"]}[outcome]
        with others.whole() as held:
            assert held.fence == 2
            pinned = [values(folder, name) for name in TABLES]
            assert pinned == [expected, expected]
        others.apply(change("quick"))
        os.kill(sleeper.pid, signal.SIGCONT)
        said, _ = sleeper.communicate(timeout=60)
    assert said == outcome
    for name in TABLES:
        assert values(folder, name) == sorted([*expected, "quick"])
    transactions(folder).apply(change("after"))
    for name in TABLES:
        assert values(folder, name) == sorted([*expected, "quick", "after"])


def test_a_part_that_somebody_else_writes_meanwhile_is_not_written_again(folder: Path) -> None:
    """Between looking whether a part is there and writing it, another process completes it."""
    others = transactions(folder)

    def complete_it(name: str) -> None:
        if name == "transaction.before_write":
            faults.install(None)
            for intent in others._intents():
                others._recover(intent)

    faults.install(complete_it)
    try:
        transactions(folder).apply({name: TableChanges(insert=ROWS) for name in TABLES})
    finally:
        faults.install(None)
    for name in TABLES:
        assert values(folder, name) == ["first", "late"]


def test_one_that_is_interrupted_is_completed_before_anything_else(folder: Path) -> None:
    def die(name: str) -> None:
        if name == "transaction.table_written":
            raise KeyboardInterrupt

    faults.install(die)
    try:
        with pytest.raises(KeyboardInterrupt):
            transactions(folder).apply(change("interrupted"))
    finally:
        faults.install(None)
    assert [len(values(folder, name)) for name in TABLES] == [2, 1]
    with transactions(folder).whole():
        assert [values(folder, name) for name in TABLES] == [["first", "interrupted"]] * 2


def test_bad_rows_are_refused_before_anything_is_written(folder: Path) -> None:
    bad = {"one": TableChanges(insert=ROWS), "two": TableChanges(insert=pa.table({"x": [1]}))}
    with pytest.raises(InvalidChanges):
        transactions(folder).apply(bad)
    assert [values(folder, name) for name in TABLES] == [["first"], ["first"]]


def test_one_that_sleeps_is_sealed_also_if_the_first_who_took_over_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "EXPIRES_S", EXPIRES_S)
    command = [
        sys.executable,
        "-m",
        transaction_child.__name__,
        str(folder),
        "transaction.checked",
        "1",
        str(EXPIRES_S),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sleeper:
        _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        with (
            pytest.raises(KeyboardInterrupt),
            lease.lease(folder / "_freshview/transactions/lease"),
        ):
            raise KeyboardInterrupt
        with transactions(folder).whole() as held:
            assert held.fence == 3
            os.kill(sleeper.pid, signal.SIGCONT)
            said, _ = sleeper.communicate(timeout=60)
            assert said == "LEASE_LOST"
            assert [values(folder, name) for name in TABLES] == [["first"], ["first"]]


def test_two_names_of_one_table_are_two_parts(folder: Path) -> None:
    work = transactions(folder)
    work._path = lambda name: str(folder / "one")
    rows = [pa.table({"k": [2], "v": [value]}) for value in ("x", "y")]
    work.apply({"one": TableChanges(insert=rows[0]), "alias": TableChanges(insert=rows[1])})
    assert values(folder, "one") == ["first", "x", "y"]
