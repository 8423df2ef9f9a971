"""What a transaction is to do to one table: rows to insert, update and delete, checked before a write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from py4j.protocol import Py4JNetworkError
from pyspark.sql import DataFrame

from freshview.errors import FreshviewError, InvalidChanges, SparkGone, first_line
from freshview.storage.consolidate import duplicate_count


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes to one table. ``insert`` adds rows; ``update`` and ``delete`` go by ``key``.

    Rows are a ``pyarrow.Table``, a pandas or Spark DataFrame, or a list of dictionaries; columns that
    they do not have are NULL. ``update`` has whole rows: the row with that key becomes it, or it is
    added. ``delete`` needs the key only.
    """

    insert: Any = None
    update: Any = None
    delete: Any = None
    key: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """Changes to one table that fit it, by kind."""

    key: tuple[str, ...]
    rows: Mapping[str, pa.Table]


def checked(name: str, change: TableChanges, schema: pa.Schema) -> Checked:
    """The rows of each kind of change in the table's types. Raises InvalidChanges."""
    if not isinstance(change, TableChanges):
        raise InvalidChanges(table=name, reason=f"{type(change).__name__} is no TableChanges")
    key = (change.key,) if isinstance(change.key, str) else tuple(change.key)
    if not key and (change.update is not None or change.delete is not None):
        raise InvalidChanges(table=name, reason="update and delete need a key")
    missing = [str(column) for column in key if column not in schema.names]
    if missing:
        raise InvalidChanges(table=name, reason=f"it has no column {', '.join(missing)}")
    if len(set(key)) < len(key):
        raise InvalidChanges(table=name, reason="a column is twice in the key")
    key_schema = pa.schema([schema.field(column) for column in key])
    rows = {
        "insert": _rows(name, change.insert, schema),
        "update": _rows(name, change.update, schema, key),
        "delete": _rows(name, change.delete, schema, key, key_schema),
    }
    present = {kind: some for kind, some in rows.items() if some is not None}
    _check_keys(name, key, [present[k] for k in ("update", "delete") if k in present])
    if not present:
        raise InvalidChanges(table=name, reason="there is nothing to insert, update or delete")
    return Checked(key, present)


@contextmanager
def refusals(table: str) -> Iterator[None]:
    """What a table refuses in the block as an error in the changes."""
    try:
        yield
    except FreshviewError:
        raise
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkGone(name=table, reason=first_line(error)) from error
    except Exception as error:
        raise InvalidChanges(table=table, reason=first_line(error)) from error


def _check_keys(table: str, key: Sequence[str], changes: Sequence[pa.Table]) -> None:
    """A row is updated or deleted once in a transaction; twice would have no order."""
    if not changes:
        return
    keys = pa.concat_tables([rows.select(list(key)) for rows in changes])
    repeated = duplicate_count(keys, key)
    if repeated:
        reason = f"{repeated} of its updates and deletes have a key that another one has"
        raise InvalidChanges(table=table, reason=reason)


def _rows(
    table: str,
    rows: Any,
    schema: pa.Schema,
    key: Sequence[str] = (),
    wanted: pa.Schema | None = None,
) -> pa.Table | None:
    """The rows as Arrow in the table's columns and types, or in those of them that are wanted.

    A column that they do not have is NULL, as it is when the table gets another one; but their key
    has to be there.
    """
    if rows is None:
        return None
    wanted = schema if wanted is None else wanted
    with refusals(table):
        if isinstance(rows, DataFrame):
            rows = rows.toArrow()
        elif isinstance(rows, pd.DataFrame):
            rows = pa.Table.from_pandas(rows, preserve_index=False)
        elif not isinstance(rows, pa.Table):
            rows = list(rows)
        arrow = isinstance(rows, pa.Table)
        names = rows.column_names if arrow else {column for row in rows for column in row}
        unknown = sorted(set(names) - set(schema.names))
        if unknown:
            raise InvalidChanges(table=table, reason=f"it has no column {unknown}")
        held = names if arrow else set(schema.names).intersection(*rows)
        lacking = [column for column in key if column not in held]
        if lacking:
            reason = f"a row to update or delete has no {', '.join(lacking)}, which is its key"
            raise InvalidChanges(table=table, reason=reason)
        if not arrow:
            return pa.Table.from_pylist(rows, wanted)
        for field in wanted:
            if field.name not in names:
                rows = rows.append_column(field.name, pa.nulls(len(rows), field.type))
        return rows.select(wanted.names).cast(wanted)


def from_pandas(name: str, rows: object) -> pa.Table:
    """The rows of a new table from a pandas DataFrame. Raises InvalidChanges for anything else."""
    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except (AttributeError, TypeError, ValueError) as problem:
        reason = f"a {type(rows).__name__} is no table of rows: {problem}"
        raise InvalidChanges(table=name, reason=reason) from problem


def names_of(rows: pa.Table | pa.Schema) -> list[str]:
    """The columns of rows, or of a schema alone."""
    return list((rows if isinstance(rows, pa.Schema) else rows.schema).names)
