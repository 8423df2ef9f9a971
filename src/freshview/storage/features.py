"""Which features a table has, in one vocabulary for both libraries.

A Delta table tells its features in three places: the protocol action (lists of names from writer
version 7 on, only numbers before), the table's configuration, and the metadata of single columns.
`features_of` reads all three and answers in normalised names; `choose.py` decides from these alone
which library can serve the table faithfully.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

DELETION_VECTORS = "deletion_vectors"
COLUMN_MAPPING = "column_mapping"
COLUMN_MAPPING_ID = "column_mapping_id"
ROW_TRACKING = "row_tracking"
CLUSTERING = "clustering"
TYPE_WIDENING = "type_widening"
CHANGE_DATA_FEED = "change_data_feed"
CHAR = "char"
VARCHAR = "varchar"
VARIANT = "variant"
COLLATION = "collation"
IDENTITY = "identity"
COLUMN_DEFAULT = "column_default"
IN_COMMIT_TIMESTAMP = "in_commit_timestamp"
GENERATED = "generated"
CHECK = "check"
V2_CHECKPOINT = "v2_checkpoint"
APPEND_ONLY = "append_only"
INVARIANT = "invariant"
TIMESTAMP = "timestamp"
TIMESTAMP_PARTITION = "timestamp_partition"
BINARY_PARTITION = "binary_partition"
DECIMAL_PARTITION = "decimal_partition"
NESTED = "nested"
FILES_OUTSIDE = "files_outside"
"""Data files that lie in the folder of another table, as those of a shallow clone do."""
UNKNOWN_PREFIX = "unknown:"

# Protocol feature names that are in use by being listed. Those that are not here are either
# harmless (timestampNtz), or listed for any table of that protocol and used only when the
# configuration or a column says so (changeDataFeed, invariants, generatedColumns, …).
_LISTED = {
    "deletionVectors": DELETION_VECTORS,
    "columnMapping": COLUMN_MAPPING,
    "rowTracking": ROW_TRACKING,
    "clustering": CLUSTERING,
    "liquidClustering": CLUSTERING,
    "typeWidening": TYPE_WIDENING,
    "typeWidening-preview": TYPE_WIDENING,
    "variantType": VARIANT,
    "variantType-preview": VARIANT,
    "variantShredding": VARIANT,
    "variantShredding-preview": VARIANT,
    "collations": COLLATION,
    "collations-preview": COLLATION,
    "identityColumns": IDENTITY,
    "allowColumnDefaults": COLUMN_DEFAULT,
    "inCommitTimestamp": IN_COMMIT_TIMESTAMP,
    "inCommitTimestamp-preview": IN_COMMIT_TIMESTAMP,
    "v2Checkpoint": V2_CHECKPOINT,
}
_HARMLESS = {
    "timestampNtz",
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "domainMetadata",
    "vacuumProtocolCheck",
    "checkpointProtection",
}


_PARTITIONS = {
    "timestamp": TIMESTAMP_PARTITION,
    "binary": BINARY_PARTITION,
    "decimal": DECIMAL_PARTITION,
}


def features_of(
    schema_json: str,
    configuration: Mapping[str, str],
    partition_columns: Sequence[str],
    listed: Iterable[str],
) -> frozenset[str]:
    """The normalised features of a table version.

    `listed` are the protocol's reader and writer feature names. A name this module does not know is
    kept with a prefix, so that the chooser refuses it natively instead of guessing.
    """
    found = set()
    for name in listed:
        if name in _LISTED:
            found.add(_LISTED[name])
        elif name not in _HARMLESS:
            found.add(UNKNOWN_PREFIX + name)
    found.update(_of_configuration(configuration))
    for field, depth in _fields(json.loads(schema_json)):
        found.update(_of_field(field, depth, partition_columns))
    return frozenset(found)


def _of_configuration(configuration: Mapping[str, str]) -> Iterator[str]:
    def on(name: str) -> bool:
        return configuration.get(name, "false").lower() == "true"

    if on("delta.enableChangeDataFeed"):
        yield CHANGE_DATA_FEED
    if on("delta.enableDeletionVectors"):
        yield DELETION_VECTORS
    if on("delta.enableRowTracking"):
        yield ROW_TRACKING
    if on("delta.appendOnly"):
        yield APPEND_ONLY
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        yield COLUMN_MAPPING
    if configuration.get("delta.columnMapping.mode") == "id":
        yield COLUMN_MAPPING_ID
    if any(name.startswith("delta.constraints.") for name in configuration):
        yield CHECK


def _fields(node: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Every struct field of a Spark type in JSON form, with its depth (0 for columns)."""
    if not isinstance(node, dict):
        return
    for field in node.get("fields", ()):
        yield field, depth
        yield from _fields(field["type"], depth + 1)
    for part in ("elementType", "keyType", "valueType"):
        if part in node:
            # An element has a type but no name; as a nameless field its type is checked as well.
            yield {"name": "", "type": node[part], "metadata": {}}, depth + 1
            yield from _fields(node[part], depth + 1)


def _of_field(field: Mapping[str, Any], depth: int, partitions: Sequence[str]) -> Iterator[str]:
    metadata, kind = field.get("metadata", {}), field["type"]
    declared = str(metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
    # The declared text of a nested type holds the types of its parts, so search all of it.
    if "char(" in declared.replace("varchar(", ""):
        yield CHAR
    if "varchar(" in declared:
        yield VARCHAR
    if "delta.generationExpression" in metadata:
        yield GENERATED
    if any(name.startswith("delta.identity.") for name in metadata):
        yield IDENTITY
    if "CURRENT_DEFAULT" in metadata:
        yield COLUMN_DEFAULT
    if "delta.invariants" in metadata:
        yield INVARIANT
    if "delta.typeChanges" in metadata:
        yield TYPE_WIDENING
    if "__COLLATIONS" in metadata or (isinstance(kind, str) and kind.startswith("string collate")):
        yield COLLATION
    if isinstance(kind, dict):
        yield NESTED
    if kind == "variant":
        yield VARIANT
    if kind == "timestamp":
        yield TIMESTAMP
    if depth == 0 and field["name"] in partitions:
        family = str(kind).split("(")[0]
        yield from filter(None, [_PARTITIONS.get(family)])
