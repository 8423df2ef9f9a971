"""Who serves what: features first, then sizes; Spark starts only when it must."""

from __future__ import annotations

import pyarrow as pa
import pytest

from freshview.errors import NativeRefused, TooManyRows
from freshview.storage import choose, features
from freshview.storage.choose import Limits, Served, Tables
from freshview.storage.features import features_of
from freshview.storage.interface import Commit, Storage
from freshview.storage.memory import MemoryStorage
from freshview.storage.native_rules import Operation, reason_codes, refusal

from .samples import bag

PATH = "t"
ROWS = pa.table({"k": [1, 2, 2, 3], "v": ["a", "b", "c", None]})


class Starts:
    """A Spark that counts how often it was started; it shares the tables of the other side."""

    def __init__(self, memory: MemoryStorage) -> None:
        self.count, self.memory = 0, memory

    def __call__(self) -> Storage:
        self.count += 1
        other = MemoryStorage()
        other._tables = self.memory._tables
        return other


@pytest.fixture
def memory() -> MemoryStorage:
    memory = MemoryStorage()
    memory.create(PATH, ROWS)
    return memory


def tables(memory: MemoryStorage, **limits: int) -> tuple[Tables, Starts]:
    starts = Starts(memory)
    return Tables(memory, starts, Limits(**limits)), starts


def test_small_things_start_no_spark(memory: MemoryStorage) -> None:
    chosen, starts = tables(memory)
    chosen.append(PATH, ROWS.slice(0, 1), Commit("a", 1))
    chosen.apply(PATH, ["k"], ROWS.slice(3), ROWS.slice(0, 0), Commit("a", 2))
    answers = [
        chosen.read(PATH, 1),
        chosen.changes(PATH, 0, 2),
        chosen.lookup(PATH, 1, ["v"], "k", pa.array([2])),
    ]
    assert chosen.latest(PATH) == 2
    assert chosen.last_commit(PATH, "a") == (2, Commit("a", 2))
    assert starts.count == 0
    for rows, served in answers:
        assert (served.by, served.reason, served.rows) == ("native", None, rows.num_rows)
        assert served.ms >= 0


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"read_rows": 3}, choose.TABLE_TOO_LARGE),
        ({"changes_rows": 3}, choose.TOO_MANY_CHANGED_ROWS),
        ({"changes_bytes": 3}, choose.TOO_MANY_CHANGED_BYTES),
        ({"lookup_keys": 1}, choose.TOO_MANY_KEYS),
        ({"lookup_rows": 2}, choose.TOO_MANY_ROWS_FOUND),
        ({"lookup_bytes": 2}, choose.TOO_MANY_BYTES_FOUND),
        ({"write_rows": 3}, choose.TOO_MANY_ROWS_TO_WRITE),
        ({"merge_table_bytes": 1}, choose.TABLE_TOO_LARGE),
    ],
)
def test_what_is_large_goes_to_spark(
    memory: MemoryStorage, limits: dict[str, int], reason: str
) -> None:
    chosen, starts = tables(memory, **limits)
    memory.append(PATH, ROWS, None)
    served: list[Served] = []
    for rows, record in (
        chosen.read(PATH, 0),
        chosen.changes(PATH, 0, 1),
        chosen.lookup(PATH, 0, ["v"], "k", pa.array([2, 3])),
    ):
        assert bag(rows)
        served.append(record)
    served.append(chosen.overwrite(PATH, ROWS, None)[1])
    served.append(chosen.apply(PATH, ["v"], ROWS.slice(0, 1), ROWS.slice(0, 0), None)[1])
    assert {record.reason for record in served if record.by == "spark"} == {reason}
    assert starts.count == 1


def test_a_limit_of_the_caller_is_kept(memory: MemoryStorage) -> None:
    chosen, starts = tables(memory, lookup_rows=2)
    with pytest.raises(TooManyRows):
        chosen.lookup(PATH, 0, ["v"], "k", pa.array([2]), limit=1)
    assert starts.count == 0
    with pytest.raises(TooManyRows):
        chosen.lookup(PATH, 0, ["v"], "k", pa.array([1, 2, 3]), limit=3)
    rows, served = chosen.lookup(PATH, 0, ["v"], "k", pa.array([1, 2]), limit=3)
    assert (len(rows), served.by, served.reason) == (3, "spark", choose.TOO_MANY_ROWS_FOUND)


def test_a_refusal_on_the_way_goes_to_spark(
    memory: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, _ = tables(memory)

    def refuse(*_: object) -> pa.Table:
        raise NativeRefused(path=PATH, operation="read", reason="NATIVE_NO_SUCH_LUCK")

    monkeypatch.setattr(memory, "read", refuse)
    rows, served = chosen.read(PATH, 0)
    assert bag(rows) == bag(ROWS)
    assert (served.by, served.reason) == ("spark", "NATIVE_NO_SUCH_LUCK")


def test_features_are_read_from_protocol_configuration_and_columns() -> None:
    schema = """{"type":"struct","fields":[
      {"name":"c","type":"string","nullable":true,"metadata":{"__CHAR_VARCHAR_TYPE_STRING":"char(5)"}},
      {"name":"w","type":"string","nullable":true,"metadata":{"__CHAR_VARCHAR_TYPE_STRING":"varchar(5)"}},
      {"name":"d","type":"decimal(5,2)","nullable":true,"metadata":{"CURRENT_DEFAULT":"1"}},
      {"name":"t","type":"timestamp","nullable":true,"metadata":{"delta.generationExpression":"x"}},
      {"name":"n","type":{"type":"array","elementType":"variant","containsNull":true},
       "nullable":true,"metadata":{}}]}"""
    configuration = {
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": "id",
        "delta.constraints.positive": "d > 0",
    }
    found = features_of(
        schema, configuration, ["t", "d"], ["rowTracking", "appendOnly", "brandNew"]
    )
    assert found == {
        features.CHAR,
        features.VARCHAR,
        features.COLUMN_DEFAULT,
        features.DECIMAL_PARTITION,
        features.TIMESTAMP,
        features.TIMESTAMP_PARTITION,
        features.GENERATED,
        features.NESTED,
        features.VARIANT,
        features.CHANGE_DATA_FEED,
        features.COLUMN_MAPPING,
        features.COLUMN_MAPPING_ID,
        features.CHECK,
        features.ROW_TRACKING,
        "unknown:brandNew",
    }


def test_every_refusal_has_a_code() -> None:
    for name in (features.ROW_TRACKING, features.CLUSTERING, features.CHECK, features.VARCHAR):
        assert refusal({name}, Operation.READ) is None
        assert refusal({name}, Operation.LOOKUP) is None
        assert refusal({name}, Operation.CHANGES) is None
        assert refusal({name}, Operation.WRITE) in reason_codes()
    for name in (features.TYPE_WIDENING, features.CHAR, features.VARIANT, "unknown:x"):
        for operation in Operation:
            assert refusal({name}, operation) in reason_codes()
    for name in (features.DELETION_VECTORS, features.CHANGE_DATA_FEED, features.V2_CHECKPOINT):
        for operation in Operation:
            assert refusal({name}, operation) is None
