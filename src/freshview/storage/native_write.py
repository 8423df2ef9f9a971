"""Native writes: the merge that sets rows by key, and what travels with a commit."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Transaction,
    WriterProperties,
)

from freshview.errors import DuplicateKey, SchemaMismatch
from freshview.storage.consolidate import duplicate_count
from freshview.storage.interface import Commit
from freshview.storage.plain_arrow import fitted

_DELETED = "__freshview_deleted"
_EXACT_DIGITS = 15
"""As many decimal digits survive in a floating point number."""


def commit_properties(commit: Commit | None) -> CommitProperties | None:
    """What makes a native write carry a commit: transaction and metadata."""
    if commit is None:
        return None
    return CommitProperties(
        custom_metadata={"userMetadata": commit.user_metadata()},
        app_transactions=[Transaction(commit.application, commit.number)],
    )


def writer_properties(schema: pa.Schema) -> WriterProperties:
    """Statistics for the columns where those of the library say what Spark takes them to say.

    It leaves NaN out of the greatest value, which for Spark NaN is, and the log has decimals as
    floating point numbers; Spark would skip files that hold rows it looks for. Nested columns have
    none: such numbers may be inside.
    """
    kept = {
        name: ColumnProperties(statistics_enabled="CHUNK")
        for name, kind in zip(schema.names, schema.types, strict=True)
        if _has_faithful_bounds(kind)
    }
    return WriterProperties(
        compression="SNAPPY",
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties=kept,
    )


def _has_faithful_bounds(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_decimal(kind):
        return bool(kind.precision <= _EXACT_DIGITS)
    return not (types.is_floating(kind) or types.is_nested(kind))


def fitting(path: str, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the table's columns and types. Raises SchemaMismatch."""
    try:
        return fitted(rows, schema)
    except ValueError as problem:
        raise SchemaMismatch(path=path, reason=str(problem)) from problem


def merge_source(
    path: str, schema: pa.Schema, key: Sequence[str], upserts: pa.Table, deletes: pa.Table
) -> pa.Table:
    """Upserts and deletes as one table with a mark; the other columns of a delete are NULL."""
    marked = schema.append(pa.field(_DELETED, pa.bool_()))
    setting = fitting(path, upserts, schema)
    keys = pa.schema([schema.field(name) for name in key])
    # Without key columns (a global aggregate) only the number of deletes says something.
    removing = fitting(path, deletes.select(list(key)), keys) if key else deletes
    loose = pa.schema([pa.field(field.name, field.type) for field in marked])
    parts = []
    for rows, deleted in ((setting, False), (removing, True)):
        columns = [
            rows.column(name) if not deleted or name in key else pa.nulls(rows.num_rows, kind)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        marks = pa.repeat(pa.scalar(deleted), rows.num_rows)
        parts.append(pa.table([*columns, marks], schema=loose))
    source = pa.concat_tables(parts)
    repeated = duplicate_count(source, key)
    if repeated:
        raise DuplicateKey(path=path, key=", ".join(key), count=repeated)
    return source


def merge(
    table: DeltaTable,
    schema: pa.Schema,
    key: Sequence[str],
    source: pa.Table,
    commit: Commit | None,
) -> None:
    """Set and delete rows by key. Makes no commit when nothing changes."""
    # Each comparison in parentheses: without them `a IS NOT DISTINCT FROM b AND …` is misparsed.
    matches = ["true"] + [
        f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)})" for name in key
    ]
    values = {_quoted(name): f"s.{_quoted(name)}" for name in schema.names}
    changed = {name: value for name, value in values.items() if name not in map(_quoted, key)}
    merger = table.merge(
        source,
        " AND ".join(matches),
        source_alias="s",
        target_alias="t",
        streamed_exec=False,
        writer_properties=writer_properties(schema),
        commit_properties=commit_properties(commit),
    )
    merger = merger.when_matched_delete(f"s.{_quoted(_DELETED)}")
    if changed:
        merger = merger.when_matched_update(changed)
    merger.when_not_matched_insert(values, f"NOT s.{_quoted(_DELETED)}").execute()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
