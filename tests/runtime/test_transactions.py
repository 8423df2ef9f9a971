"""Transactions over several tables: all of it or nothing, once, whoever dies or sleeps on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from freshview import faults
from freshview.errors import InvalidChanges, LeaseLost, TransactionUnfinished
from freshview.runtime import lease
from freshview.runtime import transactions as transactions_module
from freshview.runtime.table_changes import TableChanges
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


@contextmanager
def asleep(folder: Path, point: str, number: int) -> Iterator[subprocess.Popen[str]]:
    """A process that changes both tables and has stopped itself on the way."""
    child = [transaction_child.__name__, str(folder), point, str(number), str(EXPIRES_S)]
    command = [sys.executable, "-m", *child]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sleeper:
        _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield sleeper


def change(value: str) -> dict[str, TableChanges]:
    rows = pa.table({"k": [2], "v": [value]})
    return {name: TableChanges(insert=rows) for name in TABLES}


def dying(point: str) -> Callable[[str], None]:
    def handler(name: str) -> None:
        if name == point:
            faults.install(None)
            raise KeyboardInterrupt

    return handler


def interrupted(folder: Path, point: str) -> None:
    """A transaction over both tables whose process ends at a point."""
    faults.install(dying(point))
    try:
        with pytest.raises(KeyboardInterrupt):
            transactions(folder).apply(change("whole"))
    finally:
        faults.install(None)


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
    with asleep(folder, point, number) as sleeper:
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
    interrupted(folder, "transaction.table_written")
    assert [len(values(folder, name)) for name in TABLES] == [2, 1]
    with transactions(folder).whole():
        assert [values(folder, name) for name in TABLES] == [["first", "whole"]] * 2


def test_bad_rows_are_refused_before_anything_is_written(folder: Path) -> None:
    bad = {"one": TableChanges(insert=ROWS), "two": TableChanges(insert=pa.table({"x": [1]}))}
    with pytest.raises(InvalidChanges):
        transactions(folder).apply(bad)
    assert [values(folder, name) for name in TABLES] == [["first"], ["first"]]


def test_one_that_sleeps_is_sealed_also_if_the_first_who_took_over_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "EXPIRES_S", EXPIRES_S)
    with asleep(folder, "transaction.checked", 1) as sleeper:
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


def test_a_table_of_two_warehouses_gets_the_parts_of_both(folder: Path, tmp_path: Path) -> None:
    """Both are at the same fence, and one waits with its intent while the other writes."""
    others = tmp_path / "other"
    shutil.copytree(folder / "two", others / "two")
    (others / "one").symlink_to(folder / "one")
    interrupted(folder, "transaction.intended")
    transactions(others).apply(change("other"))
    transactions(folder).recover()
    assert values(folder, "one") == ["first", "other", "whole"]
    assert values(folder, "two") == ["first", "whole"]
    assert values(others, "two") == ["first", "other"]


def test_a_copied_warehouse_completes_in_its_own_tables(folder: Path, tmp_path: Path) -> None:
    interrupted(folder, "transaction.table_written")
    copy = shutil.copytree(folder, tmp_path.with_name("copy"))
    transactions(copy).recover()
    assert values(copy, "one") == values(copy, "two") == ["first", "whole"]
    assert values(folder, "two") == ["first"]
    transactions(folder).recover()
    assert values(folder, "one") == values(folder, "two") == ["first", "whole"]


def test_a_column_that_a_table_gets_meanwhile_is_null(folder: Path) -> None:
    interrupted(folder, "transaction.table_written")
    table = DeltaTable(folder / "two")
    table.alter.add_columns([Field("extra", PrimitiveType("integer"))])
    transactions(folder).recover()
    storage, path = NativeStorage(), str(folder / "two")
    rows = storage.read(path, storage.latest(path)).to_pylist()
    assert {"k": 2, "v": "whole", "extra": None} in rows


@pytest.mark.parametrize("change", ["insert", "update"])
def test_a_column_that_a_table_gets_during_the_write_is_null(
    folder: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were given the table's columns meet a table with one more."""
    shape, shaped = transactions_module._widened, []

    def then_altered(rows: pa.Table, schema: pa.Schema) -> pa.Table:
        if not shaped:
            DeltaTable(folder / "one").alter.add_columns([Field("extra", PrimitiveType("integer"))])
        shaped.append(shape(rows, schema))
        return shaped[-1]

    monkeypatch.setattr(transactions_module, "_widened", then_altered)
    key = ["k"] if change == "update" else []
    other = TableChanges(insert=[{"k": 5, "v": "other"}])
    changes = TableChanges(**{change: [{"k": 0, "v": "new"}]}, key=key)
    transactions(folder).apply({"one": changes, "two": other})
    assert [rows.column_names for rows in shaped[:2]] == [["k", "v"], ["k", "v", "extra"]]
    storage, path = NativeStorage(), str(folder / "one")
    rows = storage.read(path, storage.latest(path)).to_pylist()
    assert {"k": 0, "v": "new", "extra": None} in rows
    assert len(rows) == (1 if change == "update" else 2)


@pytest.mark.parametrize("kind", [list, pa.Table.from_pylist, pd.DataFrame])
def test_columns_that_rows_do_not_have_are_null(folder: Path, kind: Callable[..., Any]) -> None:
    """A writer goes on when its table gets another column, whatever its rows are."""
    DeltaTable(folder / "one").alter.add_columns([Field("extra", PrimitiveType("integer"))])
    new, changed = kind([{"k": 2, "v": "new"}]), kind([{"k": 0, "v": "changed"}])
    changes = TableChanges(insert=new, update=changed, key=["k"])
    transactions(folder).apply({"one": changes})
    storage, path = NativeStorage(), str(folder / "one")
    rows = storage.read(path, storage.latest(path)).to_pylist()
    assert sorted(map(str, rows)) == [
        "{'k': 0, 'v': 'changed', 'extra': None}",
        "{'k': 2, 'v': 'new', 'extra': None}",
    ]


def test_one_that_lost_its_lease_says_what_is_left(folder: Path) -> None:
    """Somebody else has the lease, and cannot complete the transaction either."""

    def others(name: str) -> None:
        if name == "transaction.table_written":
            faults.install(None)
            shutil.rmtree(folder / "two")
            held = max((folder / "_freshview" / "transactions" / "lease").glob("0*"))
            taken = held.with_name(f"{int(held.name) + 1:012d}")
            taken.touch()
            os.utime(taken, (0, 0))

    faults.install(others)
    try:
        with pytest.raises(TransactionUnfinished):
            transactions(folder).apply(change("half"))
    finally:
        faults.install(None)


def test_a_commit_whose_checkpoint_fails_is_a_commit(tmp_path: Path) -> None:
    path = tmp_path / "one"
    storage = NativeStorage()
    properties = {"delta.checkpointInterval": "1"}
    storage.create(str(path), pa.table({"k": [0], "v": ["first"]}), properties=properties)
    for version in range(1, 4):
        blocked = path / "_delta_log" / f"{version:020}.checkpoint.parquet"
        blocked.mkdir()
        (blocked / "full").touch()
    with pytest.raises(DeltaError, match="directory"):
        storage.append(str(path), pa.table({"k": [1], "v": ["by hand"]}), None)
    one = {"one": TableChanges(insert=pa.table({"k": [2], "v": ["once"]}))}
    assert transactions(tmp_path).apply(one) == {"one": 2}
    assert values(tmp_path, "one") == ["by hand", "first", "once"]


@pytest.mark.parametrize("point", ["transaction.staged", "transaction.before_write"])
def test_one_commit_of_one_that_slept_does_not_come_late(folder: Path, point: str) -> None:
    def sleep(name: str) -> None:
        if name == point:
            faults.install(None)
            held = max((folder / "_freshview" / "transactions" / "lease").glob("0*"))
            os.utime(held, (0, 0))
            update = pa.table({"k": [0], "v": ["quick"]})
            transactions(folder).apply({"one": TableChanges(update=update, key=["k"])})

    update = pa.table({"k": [0], "v": ["late"]})
    faults.install(sleep)
    try:
        with pytest.raises(LeaseLost):
            transactions(folder).apply({"one": TableChanges(update=update, key=["k"])})
    finally:
        faults.install(None)
    assert values(folder, "one") == ["quick"]


NOT_FITTING = [
    ({"update": [{"k": 1, "v": "b"}], "key": ["k", "k"]}, "twice in the key"),
    ({"update": [{"k": 1, "v": "b"}], "key": [1]}, "no column 1"),
    ({"insert": pa.table({"k": [1], "v": ["x"], "lost": [1]})}, "no column ['lost']"),
    ({"delete": pa.table({"v": ["x"]}), "key": ["k"]}, "has no k, which is its key"),
    ({"update": [{"k": 1, "v": "x"}, {"v": "x"}], "key": ["k"]}, "has no k, which is its key"),
    ({"insert": pd.DataFrame({"k": [1, "a"], "v": ["x", "y"]})}, "Could not convert"),
    ({"insert": [{"k": 2**70}]}, "too large"),
    ({"insert": [{"k": 1, "v": "\ud800"}]}, "surrogates not allowed"),
    ({"insert": [1]}, "not iterable"),
    ({"insert": 5}, "not iterable"),
]


@pytest.mark.parametrize(("given", "reason"), NOT_FITTING)
def test_rows_that_do_not_fit_are_refused(folder: Path, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidChanges) as caught:
        transactions(folder).apply({**change("half"), "two": TableChanges(**given)})
    assert reason in str(caught.value)
    assert values(folder, "one") == ["first"]
    assert not list((folder / "_freshview").glob("transactions/*.*"))


def test_null_in_a_column_that_has_none_is_refused(folder: Path) -> None:
    strict = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())])
    DeltaTable.create(folder / "strict", Schema.from_arrow(strict))
    with pytest.raises(InvalidChanges):
        transactions(folder).apply(
            {"one": change("half")["one"], "strict": TableChanges(insert=[{"v": "x"}])}
        )
    assert values(folder, "one") == ["first"]


def test_nothing_at_all_and_something_else(folder: Path) -> None:
    assert transactions(folder).apply({}) == {}
    assert not (folder / "_freshview").exists()
    with pytest.raises(InvalidChanges, match="int is no TableChanges"):
        transactions(folder).apply({"one": 5})  # type: ignore[dict-item]
    given = ({"k": number, "v": str(number)} for number in range(2))
    transactions(folder).apply({"one": TableChanges(insert=given)})
    transactions(folder).apply({"one": TableChanges(delete=[{"k": 0, "v": "?"}], key="k")})
    assert values(folder, "one") == ["1"]
