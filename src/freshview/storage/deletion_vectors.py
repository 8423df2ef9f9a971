"""Deletion vectors: which rows of a data file are gone.

The native library applies vectors to whole snapshots and shows them only for all files of one
version. Changes need them per commit, before and after, so they are decoded here from the Delta
protocol's definition ("Deletion Vector Format"): a 64-bit Roaring bitmap of row numbers, inline in
the log (`i`) or in a file beside the data (`u`, or `p` with an absolute path).
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow.fs as pafs

Positions: TypeAlias = npt.NDArray[np.int64]

_MAGIC = 1681511377
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_NO_OFFSETS_BELOW = 4
_ARRAY_MAX = 4096
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_VALUE = {letter: value for value, letter in enumerate(_Z85)}


class UnreadableVector(ValueError):
    """A vector in a form this decoder does not know; the caller leaves the table to Spark."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Where a deletion vector is stored, as a log action describes it."""

    storage: str
    where: str
    offset: int | None
    size: int
    cardinality: int

    @staticmethod
    def of_action(action: Mapping[str, Any]) -> Vector:
        """From the `deletionVector` part of an add or remove action."""
        offset = action.get("offset")
        return Vector(
            action["storageType"],
            action["pathOrInlineDv"],
            None if offset is None else int(offset),
            int(action["sizeInBytes"]),
            int(action["cardinality"]),
        )

    @property
    def identity(self) -> tuple[str, str, int | None]:
        """The protocol's unique id of a vector."""
        return (self.storage, self.where, self.offset)


def deleted_rows(vector: Vector, store: pafs.FileSystem) -> Positions:
    """The row numbers that the vector deletes, rising."""
    rows = _bitmap_array(_stored(vector, store))
    if len(rows) != vector.cardinality:
        raise UnreadableVector(f"{len(rows)} rows in a vector of {vector.cardinality}")
    return rows


def _stored(vector: Vector, store: pafs.FileSystem) -> bytes:
    if vector.storage == "i":
        return _z85_decoded(vector.where)[: vector.size]
    if vector.storage != "u":
        # "p" is an absolute path, as shallow clones have; its data files are absolute as well.
        raise UnreadableVector(f"storage type {vector.storage}")
    folder, encoded = vector.where[:-20], vector.where[-20:]
    name = f"deletion_vector_{uuid.UUID(bytes=_z85_decoded(encoded))}.bin"
    with store.open_input_file(f"{folder}/{name}" if folder else name) as file:
        file.seek(vector.offset or 0)
        (size,) = struct.unpack(">i", file.read(4))
        data: bytes = file.read(size)
        (checksum,) = struct.unpack(">I", file.read(4))
    if size != vector.size or zlib.crc32(data) != checksum:
        raise UnreadableVector(f"{name} is damaged at {vector.offset}")
    return data


def _z85_decoded(text: str) -> bytes:
    decoded = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for letter in text[start : start + 5]:
            value = value * 85 + _Z85_VALUE[letter]
        decoded += struct.pack(">I", value)
    return bytes(decoded)


def _bitmap_array(data: bytes) -> Positions:
    magic, count = struct.unpack_from("<iq", data, 0)
    if magic != _MAGIC:
        raise UnreadableVector(f"magic number {magic}")
    position, parts = 12, []
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, position)
        low, position = _bitmap(data, position + 4)
        parts.append(low + (np.int64(high) << np.int64(32)))
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _bitmap(data: bytes, position: int) -> tuple[Positions, int]:
    """One 32-bit Roaring bitmap in its portable form, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, position)
    position += 4
    if cookie & 0xFFFF == _WITH_RUNS:
        containers = (cookie >> 16) + 1
        flags = np.frombuffer(data, np.uint8, (containers + 7) // 8, position)
        runs = np.unpackbits(flags, bitorder="little")
        position += len(flags)
        offsets = containers >= _NO_OFFSETS_BELOW
    elif cookie == _WITHOUT_RUNS:
        (containers,) = struct.unpack_from("<I", data, position)
        position += 4
        runs, offsets = np.zeros(containers, np.uint8), True
    else:
        raise UnreadableVector(f"roaring cookie {cookie}")
    header = np.frombuffer(data, "<u2", 2 * containers, position).reshape(-1, 2).astype(np.int64)
    position += 4 * containers + (4 * containers if offsets else 0)
    parts = []
    for (high, less_one), is_run in zip(header, runs, strict=False):
        low, position = _container(data, position, int(less_one) + 1, bool(is_run))
        parts.append(low + (high << np.int64(16)))
    return (np.concatenate(parts) if parts else np.empty(0, np.int64)), position


def _container(data: bytes, position: int, size: int, is_run: bool) -> tuple[Positions, int]:
    if is_run:
        (count,) = struct.unpack_from("<H", data, position)
        pairs = np.frombuffer(data, "<u2", 2 * count, position + 2).reshape(-1, 2).astype(np.int64)
        spans = [np.arange(start, start + length + 1) for start, length in pairs]
        rows = np.concatenate(spans) if spans else np.empty(0, np.int64)
        return rows.astype(np.int64), position + 2 + 4 * count
    if size <= _ARRAY_MAX:
        return np.frombuffer(data, "<u2", size, position).astype(np.int64), position + 2 * size
    bits = np.unpackbits(np.frombuffer(data, np.uint8, 8192, position), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), position + 8192
