"""What the native side can serve faithfully, decided from a table's features.

Each refusal is a planned way with a reason code that `explain` prints: Spark serves the table
instead. The rules come from measurements (`docs/storage.md`): where the native library is silently
wrong, where it refuses, and where it would write rows past a rule that Spark enforces.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from enum import StrEnum

from freshview.storage import features as has


class Operation(StrEnum):
    """What is asked of a table."""

    READ = "read"
    CHANGES = "changes"
    LOOKUP = "lookup"
    WRITE = "write"


_ALWAYS = {
    has.TYPE_WIDENING: "NATIVE_NO_TYPE_WIDENING",
    has.CHAR: "NATIVE_NO_CHAR_PADDING",
    has.VARIANT: "NATIVE_NO_VARIANT",
    has.COLLATION: "NATIVE_NO_COLLATION",
    has.COLUMN_MAPPING_ID: "NATIVE_NO_COLUMN_MAPPING_BY_ID",
    # The log keeps these partition values in the writer's time zone, or as text made of bytes.
    has.TIMESTAMP_PARTITION: "NATIVE_NO_TIMESTAMP_PARTITION",
    has.BINARY_PARTITION: "NATIVE_NO_BINARY_PARTITION",
    has.FILES_OUTSIDE: "NATIVE_NO_FILES_OUTSIDE",
}
_WRITES = {
    has.ROW_TRACKING: "NATIVE_NO_ROW_TRACKING_WRITE",
    has.CLUSTERING: "NATIVE_NO_CLUSTERING_WRITE",
    has.IDENTITY: "NATIVE_NO_IDENTITY_WRITE",
    has.COLUMN_DEFAULT: "NATIVE_NO_COLUMN_DEFAULT_WRITE",
    has.IN_COMMIT_TIMESTAMP: "NATIVE_NO_IN_COMMIT_TIMESTAMP_WRITE",
    # Spark computes or checks these on each write, and storage does not compute.
    has.GENERATED: "NATIVE_NO_GENERATED_WRITE",
    has.CHECK: "NATIVE_NO_CHECK_WRITE",
    has.INVARIANT: "NATIVE_NO_CHECK_WRITE",
    has.VARCHAR: "NATIVE_NO_VARCHAR_WRITE",
    has.APPEND_ONLY: "NATIVE_NO_APPEND_ONLY_WRITE",
    # deltalake 1.6 spells the partition value -1.10 as "-1.-10".
    has.DECIMAL_PARTITION: "NATIVE_NO_DECIMAL_PARTITION_WRITE",
}
_FLAT_TYPES = frozenset(
    {
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    }
)
FILES_OUTSIDE = _ALWAYS[has.FILES_OUTSIDE]
INT96 = "NATIVE_NO_INT96_WRITE"
"""A native write would copy rows out of files with INT96 timestamps, some of them wrongly."""

UNKNOWN_FEATURE = "NATIVE_UNKNOWN_FEATURE"


def refusal(features: AbstractSet[str], operation: Operation) -> str | None:
    """Why the native side cannot serve this operation on such a table; None when it can."""
    for name in sorted(features):
        if name.startswith(has.UNKNOWN_PREFIX):
            return UNKNOWN_FEATURE
        if name in _ALWAYS:
            return _ALWAYS[name]
        if operation is Operation.WRITE and name in _WRITES:
            return _WRITES[name]
    return None


def natively_writable(schema_json: str) -> bool:
    """Whether native makes the same table of rows with this schema (Spark's JSON) as Spark does.

    Flat columns only: the names inside nested ones have rules that Spark checks.
    """
    kinds = [field["type"] for field in json.loads(schema_json)["fields"]]
    flat = all(
        isinstance(kind, str) and (kind in _FLAT_TYPES or kind.startswith("decimal("))
        for kind in kinds
    )
    return flat and refusal(has.features_of(schema_json, {}, (), ()), Operation.WRITE) is None


def reason_codes() -> frozenset[str]:
    """Every code that `refusal` can give."""
    return frozenset({*_ALWAYS.values(), *_WRITES.values(), INT96, UNKNOWN_FEATURE})
