"""What only a storage with files can do wrong: caches, lost files, races."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, convert_to_deltalake, write_deltalake

from freshview.errors import (
    ConcurrentWrite,
    HistoryLost,
    NativeRefused,
    StaleCommit,
    TableMissing,
    TooManyBytes,
)
from freshview.storage import native_handles
from freshview.storage.columns import columns_of
from freshview.storage.interface import Commit
from freshview.storage.native import NativeStorage
from freshview.storage.native_files import live_files
from freshview.storage.native_match import keys_for
from freshview.storage.native_ranges import ranges_of
from freshview.storage.native_write import commit_properties

from .samples import bag, difference

APP = "freshview:0000"


def rows(*keys: int | None, v: str = "x") -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.repeat(pa.scalar(v), len(keys))})


@pytest.fixture
def storage() -> NativeStorage:
    return NativeStorage()


@pytest.fixture
def path(tmp_path: Path, storage: NativeStorage) -> str:
    folder = str(tmp_path / "t")
    storage.create(folder, rows(1, 2, 3), commit=Commit(APP, 1))
    return folder


def test_commits_of_others_are_seen(storage: NativeStorage, path: str) -> None:
    assert storage.latest(path) == 0
    other = NativeStorage()
    other.append(path, rows(4), Commit(APP, 2, {"by": "other"}))
    assert storage.latest(path) == 1
    assert storage.last_commit(path, APP) == (1, Commit(APP, 2, {"by": "other"}))
    assert storage.number(path, APP) == 2
    assert bag(storage.read(path, 0)) == bag(rows(1, 2, 3))
    assert bag(storage.read(path, 1)) == bag(rows(1, 2, 3, 4))


def test_a_table_made_again_at_the_same_path_is_another_one(
    storage: NativeStorage, path: str
) -> None:
    before = storage.state(path)
    storage.append(path, rows(4), None)
    storage.read(path, 0)
    shutil.rmtree(path)
    assert not storage.exists(path)
    with pytest.raises(TableMissing):
        storage.latest(path)
    NativeStorage().create(path, rows(9))
    assert storage.latest(path) == 0
    assert storage.state(path).table_id != before.table_id
    assert bag(storage.read(path, 0)) == bag(rows(9))


def test_a_table_replaced_while_its_handle_moves_on_is_noticed(
    storage: NativeStorage, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp, asked = native_handles.stamp, itertools.count(1)

    def replacing(folder: str, version: int) -> Any:
        if next(asked) == 2:  # the handle was advanced, and has not got its new stamp
            shutil.rmtree(path)
            NativeStorage().create(path, rows(9))
        return stamp(folder, version)

    storage.latest(path)
    monkeypatch.setattr(native_handles, "stamp", replacing)
    storage.latest(path)
    monkeypatch.undo()
    assert next(asked) > 2
    NativeStorage().append(path, rows(10), None)
    assert bag(storage.read(path, storage.latest(path))) == bag(rows(9, 10))


def test_a_table_replaced_while_its_handle_writes_is_noticed(
    storage: NativeStorage, path: str
) -> None:
    storage.latest(path)
    with storage._handles.newest(path):
        shutil.rmtree(path)
        NativeStorage().create(path, rows(9))
    assert path not in storage._handles._newest
    assert bag(storage.read(path, storage.latest(path))) == bag(rows(9))


def test_a_file_with_the_name_and_the_size_of_one_that_is_gone(
    storage: NativeStorage, tmp_path: Path
) -> None:
    """As other engines name their files: what its footer says is not what the old one said."""
    folder, sizes = tmp_path / "converted", set()
    for first in (1, 5001):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        held = pa.table({"k": pa.array(range(first, first + 1000), pa.int64())})
        file = folder / "data.parquet"
        pq.write_table(held, file, compression="none", use_dictionary=False)
        sizes.add(file.stat().st_size)
        convert_to_deltalake(str(folder))
        sought = pa.array([first + 4], pa.int64())
        found = storage.lookup(str(folder), 0, ["k"], "k", sought)
        assert found.column("k").to_pylist() == [first + 4]
    assert len(sizes) == 1


def test_a_replaced_table_has_no_common_history(storage: NativeStorage, path: str) -> None:
    """REPLACE TABLE writes new metadata with a new id into the same log."""
    first = Path(path, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    metadata = next(action for action in actions if "metaData" in action)
    metadata["metaData"]["id"] = "another-table"
    Path(path, "_delta_log", f"{1:020}.json").write_text(json.dumps(metadata))
    assert storage.latest(path) == 1
    with pytest.raises(HistoryLost) as caught:
        storage.changes(path, 0, 1)
    assert "replaced" in str(caught.value.parameters["reason"])


def test_a_vacuumed_file_is_lost_history(storage: NativeStorage, path: str) -> None:
    storage.overwrite(path, rows(4), None)
    gone = next(iter(DeltaTable(path, version=0).file_uris()))
    Path(gone).unlink()
    for ask in (
        lambda: storage.changes(path, 0, 1),
        lambda: storage.read(path, 0),
        lambda: storage.lookup(path, 0, ["v"], "k", pa.array([1])),
        lambda: NativeStorage(engine_above_bytes=0).lookup(path, 0, ["v"], "k", pa.array([1])),
    ):
        with pytest.raises(HistoryLost) as caught:
            ask()
        assert "vacuumed" in str(caught.value.parameters["reason"])
    assert bag(storage.read(path, 1)) == bag(rows(4))


def test_a_cleaned_log_is_lost_history(storage: NativeStorage, path: str) -> None:
    for key in range(3):
        storage.append(path, rows(key), Commit(APP, key + 2))
    DeltaTable(path).create_checkpoint()
    for version in range(3):
        Path(path, "_delta_log", f"{version:020}.json").unlink()
    with pytest.raises(HistoryLost) as caught:
        NativeStorage().changes(path, 1, 3)
    assert caught.value.code == "HISTORY_LOST"
    with pytest.raises(HistoryLost):
        storage.changes(path, 1, 3)
    assert NativeStorage().last_commit(path, APP) == (3, Commit(APP, 4))


def test_the_number_outlives_the_metadata(storage: NativeStorage, path: str) -> None:
    storage.append(path, rows(4), None)
    DeltaTable(path).create_checkpoint()
    Path(path, "_delta_log", f"{0:020}.json").unlink()
    later = NativeStorage()
    assert later.number(path, APP) == 1
    with pytest.raises(HistoryLost):
        later.last_commit(path, APP)
    assert later.append(path, None, Commit(APP, 2)) == 2


def test_a_vacuumed_file_of_the_feed_is_made_up_for_by_the_data_files(tmp_path: Path) -> None:
    path, storage = str(tmp_path / "t"), NativeStorage()
    storage.create(path, rows(1, 2, 3), properties={"delta.enableChangeDataFeed": "true"})
    storage.apply(path, ["k"], rows(2, v="y"), rows(3), None)
    wanted = difference(storage.read(path, 1), storage.read(path, 0))
    assert len(storage.measure_changes(path, 0, 1).feed) > 0
    assert bag(storage.changes(path, 0, 1)) == wanted
    for file in Path(path, "_change_data").rglob("*.parquet"):
        file.unlink()
    assert bag(storage.changes(path, 0, 1)) == wanted


def test_files_that_come_and_go_are_not_read(storage: NativeStorage, path: str) -> None:
    for key in range(4):
        storage.overwrite(path, rows(key), None)
    assert storage.measure_changes(path, 0, 4).files == 2
    assert storage.measure_changes(path, 4, 4).files == 0
    storage.append(path, rows(8), None)
    storage.append(path, rows(9), None)
    DeltaTable(path).optimize.compact()
    assert storage.latest(path) == 7
    assert storage.measure_changes(path, 6, 7).files == 0
    assert bag(storage.changes(path, 4, 7)) == bag(rows(8, 9))
    assert bag(storage.changes(path, 6, 7)) == {}


def test_of_two_writers_one_wins(storage: NativeStorage, path: str) -> None:
    other = NativeStorage()
    assert other.latest(path) == 0
    storage.append(path, rows(4), Commit(APP, 2))
    with pytest.raises(StaleCommit):
        other.append(path, rows(5), Commit(APP, 2))

    def overtaken(table: DeltaTable) -> None:
        storage.append(path, rows(6), Commit(APP, 3))
        write_deltalake(
            table, rows(7), mode="append", commit_properties=commit_properties(Commit(APP, 3))
        )

    with pytest.raises(ConcurrentWrite):
        other._write(path, Commit(APP, 3), overtaken)
    assert bag(other.read(path, other.latest(path))) == bag(rows(1, 2, 3, 4, 6))
    assert other.append(path, rows(7), Commit(APP, 4)) == 3


def test_columns_added_later_are_null_in_older_files(tmp_path: Path) -> None:
    path, storage = str(tmp_path / "t"), NativeStorage()
    old = pa.table({"k": [1], "s": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))})
    storage.create(path, old)
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    new = pa.table({"k": [2], "s": pa.array([{"a": 2, "b": "y"}], kind), "w": ["z"]})
    write_deltalake(path, new, mode="append", schema_mode="merge")
    found = sorted(storage.read(path, 1).to_pylist(), key=repr)
    assert found == [
        {"k": 1, "s": {"a": 1, "b": None}, "w": None},
        {"k": 2, "s": {"a": 2, "b": "y"}, "w": "z"},
    ]
    assert bag(storage.changes(path, 0, 1, ["k"])) == bag(pa.table({"k": [2]}))
    for column in ("w", "s"):
        with pytest.raises(HistoryLost):
            storage.changes(path, 0, 1, [column])
    assert storage.lookup(path, 1, ["k"], "w", pa.array([None], pa.string())).to_pylist() == [
        {"k": 1}
    ]


def test_many_row_groups_and_files_are_searched(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("freshview.storage.native_files.BATCH_ROWS", 7)
    path, storage = str(tmp_path / "t"), NativeStorage()
    keys = [*range(100), None, None, *range(50, 100)]
    table = pa.table({"k": pa.array(keys, pa.int64()), "v": [str(key) for key in keys]})
    from deltalake import WriterProperties

    small = WriterProperties(max_row_group_size=16)
    for start in range(0, len(keys), 40):
        write_deltalake(path, table.slice(start, 40), mode="append", writer_properties=small)
    monkeypatch.setattr("freshview.storage.native_ranges._COVERED_MAX", 0.5)
    for wanted in ([3], [55, 99, None], [None], list(range(200)), [1000], list(range(0, 60, 2))):
        expected = [row for row in table.to_pylist() if row["k"] in wanted]
        for searched in (storage, NativeStorage(engine_above_bytes=0)):
            found = searched.lookup(
                path, storage.latest(path), ["v", "k"], "k", pa.array(wanted, pa.int64())
            )
            assert bag(found) == bag(pa.Table.from_pylist(expected, table.schema))


def test_the_log_may_hold_any_text(tmp_path: Path) -> None:
    path, storage = str(tmp_path / "t"), NativeStorage()
    texts = ["line\u2028separator", "next\u0085line", 'quo"te', "per%cent /=:", "new\nline"]
    storage.create(path, pa.table({"k": range(len(texts)), "p": texts}), partition_by=["p"])
    storage.append(path, pa.table({"k": [9], "p": [texts[0]]}), Commit(APP, 1, {"at": texts[0]}))
    assert storage.last_commit(path, APP) == (1, Commit(APP, 1, {"at": texts[0]}))
    assert bag(storage.read(path, 0)) == bag(pa.table({"k": range(len(texts)), "p": texts}))
    assert bag(storage.changes(path, 0, 1)) == bag(pa.table({"k": [9], "p": [texts[0]]}))


def refused(path: str, reader: list[str], writer: list[str]) -> Iterator[None]:
    file = Path(path, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {
                "minReaderVersion": 3 if reader else 1,
                "minWriterVersion": 7,
                "writerFeatures": writer,
            } | ({"readerFeatures": reader} if reader else {})
    file.write_text("\n".join(json.dumps(action) for action in actions))
    yield


def test_an_unknown_feature_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    NativeStorage().create(path, rows(1))
    list(refused(path, [], ["somethingNew", "appendOnly"]))
    storage = NativeStorage()
    assert "unknown:somethingNew" in storage.state(path).features
    with pytest.raises(NativeRefused) as caught:
        storage.append(path, rows(2), None)
    assert caught.value.parameters["reason"] == "NATIVE_UNKNOWN_FEATURE"


def test_keys_close_together_become_a_few_ranges(tmp_path: Path) -> None:
    path, storage = str(tmp_path / "t"), NativeStorage()
    storage.create(path, pa.table({"k": [-5_000_000, 0, 5_000_000]}))
    with storage._handles.at(path, 0) as table:
        state = storage.state(path, 0)
        (key,) = columns_of(state, ["k"])
        files = live_files(table, state, key)
    assert [(live.low, live.high, live.nulls) for live in files] == [(-5_000_000, 5_000_000, 0)]

    def ranges(values: list[int | None]) -> list[tuple[int, int]] | None:
        return ranges_of(keys_for(pa.array(values, pa.int64()), pa.int64()), key, files)

    assert ranges([3, 1, 3]) == [(1, 1), (3, 3)]
    assert ranges([1, None]) is None
    assert ranges([2**63 - 1]) is None
    close = ranges([*range(0, 100, 2), *range(1000, 1100)])
    assert close is not None
    assert len(close) == 16
    assert (close[0][0], close[-1][1]) == (0, 1099)
    assert all(low <= high for low, high in close)
    assert all(one[1] < two[0] for one, two in itertools.pairwise(close))
    assert ranges(list(range(0, 2_000_000, 100_000))) is None


@pytest.mark.parametrize("engine_above_bytes", [0, 1 << 30], ids=["engine", "scan"])
def test_a_lookup_stops_at_its_bytes(engine_above_bytes: int, tmp_path: Path) -> None:
    storage = NativeStorage(engine_above_bytes=engine_above_bytes)
    path = str(tmp_path / "wide")
    storage.create(path, rows(*range(40), v="x" * 1000))
    keys = pa.array([7, 8], pa.int64())
    found = storage.lookup(path, 0, ["k", "v"], "k", keys, None, 3000)
    assert bag(found) == bag(rows(7, 8, v="x" * 1000))
    with pytest.raises(TooManyBytes) as caught:
        storage.lookup(path, 0, ["k", "v"], "k", keys, None, 1500)
    assert caught.value.parameters == {"path": path, "limit": 1500}
