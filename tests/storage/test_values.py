"""Properties of the value-level parts: matching keys, adding up rows, deletion vectors."""

from __future__ import annotations

import struct
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshview.storage.consolidate import consolidated, duplicate_count
from freshview.storage.deletion_vectors import UnreadableVector, Vector, deleted_rows
from freshview.storage.interface import COUNT, Commit
from freshview.storage.native_match import keys_for
from freshview.storage.plain_arrow import fitted

from .samples import bag

FLOATS = st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 1.5, -1.5, 1e300, 5e-324])
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**32, 2**40]),
    pa.int8(): st.integers(-128, 127),
    pa.bool_(): st.booleans(),
    pa.float64(): FLOATS,
    pa.float32(): FLOATS.map(lambda value: float(np.float32(min(value, 1e30)))),
    pa.string(): st.text(max_size=2),
    pa.binary(): st.binary(max_size=2),
    pa.decimal128(38, 2): st.integers(-5, 5).map(lambda cents: Decimal(cents).scaleb(-2)),
    pa.timestamp("us", tz="UTC"): st.integers(-5, 5),
    pa.date32(): st.integers(-5, 5),
}


def same(left: Any, right: Any) -> bool:
    """Spark's `<=>`."""
    return left == right or (repr(left) == repr(right) == "nan")


@given(st.data())
def test_a_key_matches_as_in_spark(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(VALUES)))
    values = st.none() | VALUES[kind]
    column = pa.array(data.draw(st.lists(values, max_size=12)), kind)
    keys = pa.array(data.draw(st.lists(values, max_size=6)), kind)
    wanted = [
        place
        for place, value in enumerate(column.to_pylist())
        if any(same(value, key) for key in keys.to_pylist())
    ]
    assert keys_for(keys, kind).hits(column).tolist() == wanted


def test_keys_of_another_kind_are_refused() -> None:
    for keys, kind in (
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.string()),
        (pa.array([1]), pa.timestamp("us")),
        (pa.array([{"a": 1}]), pa.struct([("a", pa.int64())])),
    ):
        with pytest.raises(ValueError, match="keys"):
            keys_for(keys, kind)


ROW = st.tuples(
    st.none() | FLOATS,
    st.none() | st.text(max_size=1),
    st.none() | st.lists(st.none() | FLOATS, max_size=2),
)
SCHEMA = pa.schema(
    [("f", pa.float64()), ("s", pa.string()), ("l", pa.list_(pa.float64())), (COUNT, pa.int64())]
)


@given(st.lists(st.tuples(ROW, st.sampled_from([-2, -1, 1, 2])), max_size=12))
def test_adding_up_keeps_every_count(rows: list[tuple[tuple[Any, ...], int]]) -> None:
    delta = pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, (*row, count), strict=True)) for row, count in rows], SCHEMA
    )
    small = consolidated(delta)
    assert bag(small) == bag(delta)
    signs = {count > 0 for _, count in rows}
    if len(signs) == 2:
        assert len(bag(small)) == small.num_rows


@given(st.lists(st.none() | FLOATS, max_size=6), st.booleans())
def test_duplicates_are_counted_as_spark_groups(values: list[float | None], nested: bool) -> None:
    groups = Counter("0" if value == 0 else repr(value) for value in values)
    if nested:
        column = pa.array([{"a": value} for value in values], pa.struct([("a", pa.float64())]))
    else:
        column = pa.array(values, pa.float64())
    table = pa.table([column, pa.nulls(len(values))], names=["k", "v"])
    assert duplicate_count(table, ["k"]) == len(values) - len(groups)


def roaring(rows: list[int], *, runs: bool) -> bytes:
    """A bitmap array as the Delta protocol defines it, written without the code under test."""
    by_high: dict[int, dict[int, list[int]]] = {}
    for row in rows:
        by_high.setdefault(row >> 32, {}).setdefault((row >> 16) & 0xFFFF, []).append(row & 0xFFFF)
    data = struct.pack("<iq", 1681511377, len(by_high))
    for high, containers in by_high.items():
        data += struct.pack("<I", high) + _bitmap(containers, runs)
    return data


def _bitmap(containers: dict[int, list[int]], runs: bool) -> bytes:
    count = len(containers)
    if runs:
        head = struct.pack("<I", 12347 | ((count - 1) << 16)) + b"\xff" * ((count + 7) // 8)
    else:
        head = struct.pack("<II", 12346, count)
    keys = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers.items())
    offsets = b"\0\0\0\0" * count if not runs or count >= 4 else b""
    return head + keys + offsets + b"".join(_container(low, runs) for low in containers.values())


def _container(low: list[int], runs: bool) -> bytes:
    if runs:
        spans: list[list[int]] = []
        for value in low:
            if spans and spans[-1][0] + spans[-1][1] + 1 == value:
                spans[-1][1] += 1
            else:
                spans.append([value, 0])
        packed = b"".join(struct.pack("<HH", *span) for span in spans)
        return struct.pack("<H", len(spans)) + packed
    if len(low) <= 4096:
        return struct.pack(f"<{len(low)}H", *low)
    bits = np.zeros(65536, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize(
    "rows",
    [
        [0],
        [1, 5, 65_535, 65_536, 200_000],
        list(range(10_000)),
        list(range(0, 20_000, 2)),
        [*range(70_000, 70_100), *range(5 << 32, (5 << 32) + 3)],
        [place << 16 for place in range(9)],
    ],
    ids=["one", "few", "run", "bits", "beyond 32 bits", "many containers"],
)
def test_deletion_vectors_are_decoded(rows: list[int], runs: bool, tmp_path: Any) -> None:
    data = roaring(rows, runs=runs)
    import uuid
    import zlib

    name = uuid.uuid4()
    file = tmp_path / f"deletion_vector_{name}.bin"
    file.write_bytes(
        b"\x01" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    )
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    vector = Vector("u", _z85(name.bytes), 1, len(data), len(rows))
    assert deleted_rows(vector, store).tolist() == rows
    padded = data + b"\0" * (-len(data) % 4)
    inline = Vector("i", _z85(padded), None, len(data), len(rows))
    assert deleted_rows(inline, store).tolist() == rows
    with pytest.raises(UnreadableVector):
        deleted_rows(Vector("i", _z85(padded), None, len(data), len(rows) + 1), store)
    with pytest.raises(UnreadableVector):
        deleted_rows(Vector("p", "file:/elsewhere", 1, 4, 1), store)


def _z85(data: bytes) -> str:
    alphabet = (
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    )
    text = ""
    for (number,) in struct.iter_unpack(">I", data):
        letters = []
        rest = number
        for _ in range(5):
            rest, digit = divmod(rest, 85)
            letters.append(alphabet[digit])
        text += "".join(reversed(letters))
    return text


def test_metadata_of_others_is_not_ours() -> None:
    commit = Commit("a", 3, {"x": [1, {"y": None}]})
    assert Commit.from_user_metadata(commit.user_metadata()) == commit
    assert Commit.from_user_metadata(commit.user_metadata("mark")) == commit
    for text in (None, "", "freshview", '"freshview"', '{"freshview": 1}', "[1]", "{bad freshview"):
        assert Commit.from_user_metadata(text) is None


def test_only_exact_changes_of_representation_are_made() -> None:
    def to(kind: pa.DataType, given: pa.Array) -> pa.Table:
        return fitted(pa.table({"x": given}), pa.schema([("x", kind)]))

    assert to(pa.float64(), pa.array([0.5], pa.float32())).column("x").to_pylist() == [0.5]
    with pytest.raises(ValueError, match="column x is double"):
        to(pa.float32(), pa.array([0.1], pa.float64()))
    with pytest.raises(ValueError, match="column x"):
        to(pa.int32(), pa.array([2**40]))
    nothing = pa.chunked_array([], pa.struct([("a", pa.list_(pa.field("item", pa.int32())))]))
    wanted = pa.struct([("a", pa.list_(pa.field("element", pa.int32())))])
    empty = fitted(pa.table({"x": nothing}), pa.schema([("x", wanted)]))
    assert (empty.num_rows, empty.schema.field("x").type) == (0, wanted)
