"""Which values of a column are among given keys, as Spark's `<=>` decides it.

Integers, dates, timestamps, booleans and floats are compared as 64-bit patterns: a small table of
the keys' low bits rejects nearly every row in two passes, and only what is left is searched. Floats
are normalised first, because Spark holds NaN equal to NaN and -0.0 equal to 0.0. Other flat types go
through Arrow's exact `is_in`. Nested types are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Bits = npt.NDArray[np.int64]
_Positions = npt.NDArray[np.int64]
_TABLE_BITS_MIN, _TABLE_BITS_MAX = 12, 22


def has_bits(kind: pa.DataType) -> bool:
    """Whether a type's values are compared as 64-bit patterns."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
    )


def can_match(kind: pa.DataType) -> bool:
    """Whether keys of this type can be looked up."""
    types = pa.types
    texts = types.is_string(kind) or types.is_binary(kind)
    return has_bits(kind) or texts or types.is_decimal(kind)


@dataclass(frozen=True, slots=True)
class Keys:
    """Distinct keys of one column, ready to be searched for."""

    values: pa.Array
    """Distinct, without null, in the column's type."""
    with_null: bool
    sorted_bits: _Bits | None
    table: npt.NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.values) + int(self.with_null)

    def hits(self, column: pa.Array) -> _Positions:
        """The positions of the column's values that are among the keys, rising."""
        if self.sorted_bits is None or self.table is None:
            return _positions(self._among(column))
        if len(self.sorted_bits) == 0:
            found = np.empty(0, np.int64)
        else:
            bits = bit_patterns(column)
            maybe = np.flatnonzero(self.table[bits & np.int64(len(self.table) - 1)])
            candidates = bits[maybe]
            places = np.searchsorted(self.sorted_bits, candidates)
            places = np.minimum(places, len(self.sorted_bits) - 1)
            found = maybe[self.sorted_bits[places] == candidates]
        if column.null_count:
            nulls = column.is_null().to_numpy(zero_copy_only=False)
            found = found[~nulls[found]]
            if self.with_null:
                found = np.union1d(found, np.flatnonzero(nulls))
        return found

    def _among(self, column: pa.Array) -> pa.Array:
        if column.type != self.values.type:
            column = column.cast(self.values.type)
        among = pc.is_in(column, value_set=self.values)
        return pc.or_(among, column.is_null()) if self.with_null else among

    def may_lie_within(self, low: int | None, high: int | None, nulls: int | None) -> bool:
        """Whether a file or row group with these bounds of bit patterns can hold a key.

        None says "unknown". Only meaningful for types whose patterns keep their order.
        """
        if self.with_null and nulls != 0:
            return True
        if self.sorted_bits is None or low is None or high is None:
            return True
        first = np.searchsorted(self.sorted_bits, low)
        return bool(first < len(self.sorted_bits) and self.sorted_bits[first] <= high)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Closed ranges of one column's bit patterns, which keep the order of its values."""

    lows: _Bits
    highs: _Bits

    def __len__(self) -> int:
        return len(self.lows)

    def hits(self, column: pa.Array) -> _Positions:
        """The positions of the column's values that lie in a range, rising."""
        bits = bit_patterns(column)
        inside = np.zeros(len(bits), bool)
        for low, high in zip(self.lows, self.highs, strict=True):
            inside |= (bits >= low) & (bits <= high)
        if column.null_count:
            inside &= ~column.is_null().to_numpy(zero_copy_only=False)
        return np.flatnonzero(inside)

    def may_lie_within(self, low: int | None, high: int | None, _nulls: int | None) -> bool:
        """Whether a file or row group with these bounds of bit patterns can hold such a value."""
        if low is None or high is None:
            return True
        return bool(((self.lows <= high) & (self.highs >= low)).any())


Wanted = Keys | Ranges


def ranges_for(lows: pa.Array, highs: pa.Array, kind: pa.DataType) -> Ranges:
    """Prepare ranges for a column of this type. Raises ValueError if it has no such order."""
    types = pa.types
    ordered = types.is_signed_integer(kind) or types.is_date32(kind) or types.is_timestamp(kind)
    if not ordered:
        raise ValueError(f"ranges of type {kind} are not looked up natively")
    ends = [bit_patterns(in_type(held, kind)) for held in (lows, highs)]
    if len(ends[0]) != len(lows) or len(ends[1]) != len(highs):
        raise ValueError(f"an end of a range is no {kind}")
    return Ranges(*ends)


def keys_for(keys: pa.Array, kind: pa.DataType) -> Keys:
    """Prepare keys for a column of this type; keys the type cannot hold match nothing.

    Raises ValueError when keys and column are of different kinds.
    """
    if not can_match(kind):
        raise ValueError(f"keys of type {kind} are not looked up natively")
    with_null = keys.null_count > 0
    values = in_type(keys.drop_null(), kind).unique()
    if not has_bits(kind):
        return Keys(values, with_null, None, None)
    bits = np.unique(bit_patterns(values))
    wanted = int(np.ceil(np.log2(max(len(bits), 1) * 64)))
    size = 1 << min(max(wanted, _TABLE_BITS_MIN), _TABLE_BITS_MAX)
    table = np.zeros(size, bool)
    table[bits & np.int64(size - 1)] = True
    return Keys(values, with_null, bits, table)


def bit_patterns(column: pa.Array) -> _Bits:
    """One int64 per value, equal exactly when Spark calls the values equal; nulls are arbitrary."""
    kind = column.type
    if pa.types.is_floating(kind):
        floats = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        # A float column's values widen exactly; adding zero turns -0.0 into 0.0.
        floats = floats + 0.0
        floats[np.isnan(floats)] = np.nan
        # The low bits of most doubles are zero: fold the high half in, which is reversible.
        raw = floats.view(np.uint64)
        return np.asarray((raw ^ (raw >> np.uint64(32))).view(np.int64))
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(0)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def _positions(mask: pa.Array) -> _Positions:
    return np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64)


def in_type(keys: pa.Array, kind: pa.DataType) -> pa.Array:
    """Keys in a column's type, without those that the type cannot hold (they match nothing)."""
    if keys.type == kind:
        return keys
    if pa.types.is_null(keys.type):
        return pa.nulls(0, kind)
    if not _comparable(keys.type, kind):
        raise ValueError(f"keys are {keys.type}, the column is {kind}")
    try:
        return keys.cast(kind)
    except pa.ArrowInvalid:
        return pa.array(_eachin_type(keys, kind), kind)


def _eachin_type(keys: pa.Array, kind: pa.DataType) -> Sequence[object]:
    held = []
    for key in keys:
        try:
            held.append(key.cast(kind).as_py())
        except pa.ArrowInvalid:
            continue
    return held


def _comparable(given: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(given) and types.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    blobs = (types.is_binary, types.is_large_binary, types.is_binary_view)
    families = (
        (types.is_integer,),
        (types.is_floating,),
        (types.is_decimal,),
        texts,
        blobs,
    )
    return any(
        any(is_kind(given) for is_kind in family) and any(is_kind(wanted) for is_kind in family)
        for family in families
    )
