"""Reading rows out of a table's data files, a batch at a time.

The native library's own query engine reads Delta tables well, but a lookup of a thousand keys in
six million rows held 0.6 to 2 GB (whole row groups, and result strings that keep their pages
alive), it renders keys as SQL text, and INT96 timestamps outside 1677–2262 come back wrong. Reading
the same files with pyarrow in batches holds a few MB per thread, compares values without text, and
decodes INT96 exactly. The log, the snapshots and all writing stay with the native library.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from freshview.errors import NativeRefused
from freshview.storage.columns import Column
from freshview.storage.features import DELETION_VECTORS
from freshview.storage.interface import TableState
from freshview.storage.native_handles import file_stamp, local_folder
from freshview.storage.plain_arrow import has_views

BATCH_ROWS = 16_384
_BUFFER_BYTES = 1 << 17
_FileKey = tuple[str | int, ...]
_LEGACY_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of a snapshot."""

    path: str
    size: int
    partition: Mapping[str, pa.Scalar]
    low: int | None
    high: int | None
    nulls: int | None
    """Bounds and NULLs of the key column where the log tells them, for integers and dates."""
    kept: npt.NDArray[np.bool_] | None
    """Which rows are there, None for all; a missing tail counts as kept."""

    def picked(self, first: int, length: int) -> pa.Array | None:
        """The positions, in this stretch of the file, of rows that are there; None for all."""
        if self.kept is None:
            return None
        here = self.kept[first : first + length]
        tail = np.arange(len(here), length)
        return pa.array(np.concatenate([np.flatnonzero(here), tail]))


def _file_key(root: str, path: str, size: int) -> _FileKey:
    """What tells a data file from others: none changes, but one can have the name of one that is gone.

    Of a file elsewhere there is no more than its size. Raises FileNotFoundError.
    """
    folder = local_folder(root)
    if folder is None:
        return (root, path, size)
    return (root, path, *file_stamp(Path(folder, path)))


class Footers:
    """The footers of recently read files."""

    def __init__(self, kept: int = 128) -> None:
        self._kept = kept
        self._known: OrderedDict[_FileKey, pq.FileMetaData] = OrderedDict()
        self._int96: dict[_FileKey, bool] = {}
        self._lock = Lock()

    def opened(self, root: str, store: pafs.FileSystem, path: str, size: int) -> pq.ParquetFile:
        """A file ready to read in batches. Raises FileNotFoundError, NativeRefused."""
        key = _file_key(root, path, size)
        with self._lock:
            known = self._known.get(key)
        file = pq.ParquetFile(
            store.open_input_file(path),
            metadata=known,
            pre_buffer=False,
            buffer_size=_BUFFER_BYTES,
            coerce_int96_timestamp_unit="us",
        )
        if known is None:
            text = file.metadata.metadata or {}
            if any(name in text for name in _LEGACY_CALENDAR):
                reason = f"{path} was written in the calendar of Spark 2"
                raise NativeRefused(path=root, operation="read", reason=reason)
        with self._lock:
            self._known[key] = file.metadata
            self._known.move_to_end(key)
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        return file

    def has_int96(self, root: str, store: pafs.FileSystem, live: LiveFile) -> bool:
        """Whether a file holds INT96 timestamps. Asked once per file and then remembered.

        Raises NativeRefused, as opening does, for a file in the calendar of Spark 2.
        """
        key = _file_key(root, live.path, live.size)
        with self._lock:
            known = self._int96.get(key)
        if known is None:
            with self.opened(root, store, live.path, live.size) as file:
                schema = file.metadata.schema
                known = any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))
            with self._lock:
                self._int96[key] = known
        return known


def live_files(table: DeltaTable, state: TableState, key: Column | None = None) -> list[LiveFile]:
    """The data files of a snapshot with their partition values and deleted rows.

    With a key column also with its bounds, so that files without the keys are not opened.
    """
    actions = pa.table(table.get_add_actions())
    kept = kept_rows(table) if DELETION_VECTORS in state.features else {}
    partitions = (
        actions.column("partition").to_pylist() if "partition" in actions.column_names else None
    )
    bounds = [_logged(actions, part, key) for part in ("min", "max", "null_count")]
    files = []
    for index, encoded in enumerate(actions.column("path").to_pylist()):
        path = unquote(encoded)
        values = partitions[index] if partitions else {}
        low, high, nulls = (part[index] if part else None for part in bounds)
        files.append(
            LiveFile(
                path,
                actions.column("size_bytes")[index].as_py(),
                {
                    name: pa.scalar(value, state.arrow_schema.field(name).type)
                    for name, value in values.items()
                },
                low,
                high,
                nulls,
                kept.get(path),
            )
        )
    return files


def _logged(actions: pa.Table, part: str, key: Column | None) -> list[int | None] | None:
    """One statistic of the key column per file, as integers.

    Only for integers and dates: the log cuts timestamps to milliseconds and texts to 32 letters.
    """
    if key is None or key.partition or part not in actions.column_names:
        return None
    exact = pa.types.is_signed_integer(key.arrow_type) or pa.types.is_date32(key.arrow_type)
    kinds = actions.schema.field(part).type
    place = kinds.get_field_index(key.name)
    if not exact or place < 0 or key.name != key.physical:
        return None
    column = pa.chunked_array(
        [chunk.flatten()[place] for chunk in actions.column(part).chunks], kinds.field(place).type
    )
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: list[int | None] = column.cast(pa.int64()).to_pylist()
    return values


def kept_rows(table: DeltaTable) -> dict[str, npt.NDArray[np.bool_]]:
    """Per decoded relative path, which rows its deletion vector leaves."""
    vectors = pa.table(table.deletion_vectors().read_all())
    root = unquote(urlsplit(table.table_uri).path).rstrip("/") + "/"
    kept = {}
    for uri, mask in zip(vectors.column(0), vectors.column(1), strict=True):
        path = unquote(urlsplit(uri.as_py()).path)
        if not path.startswith(root):
            raise NativeRefused(path=root, operation="read", reason=f"a vector of {path}")
        kept[path[len(root) :]] = np.asarray(mask.values.to_numpy(zero_copy_only=False), bool)
    return kept


def file_batches(
    file: pq.ParquetFile, columns: Sequence[Column], row_group: int
) -> Iterator[tuple[int, int, dict[str, pa.Array]]]:
    """Per batch: its first row in the row group, its length, and the columns that are stored."""
    held = set(file.schema_arrow.names)
    wanted = [c.physical for c in columns if not c.partition and c.physical in held]
    if not wanted:
        total = file.metadata.row_group(row_group).num_rows
        for start in range(0, total, BATCH_ROWS):
            yield start, min(BATCH_ROWS, total - start), {}
        return
    start = 0
    for batch in file.iter_batches(
        BATCH_ROWS, row_groups=[row_group], columns=wanted, use_threads=False
    ):
        names = batch.schema.names
        arrays = {name: batch.column(names.index(name)) for name in wanted}
        yield start, batch.num_rows, arrays
        start += batch.num_rows


def shown(
    columns: Sequence[Column],
    arrays: Mapping[str, pa.Array],
    partition: Mapping[str, pa.Scalar],
    length: int,
    picked: pa.Array | None,
) -> pa.RecordBatch:
    """A batch as the table shows it: the picked rows, typed, with partition values restored."""
    count = length if picked is None else len(picked)
    result = []
    for column in columns:
        if column.partition:
            result.append(pa.repeat(partition[column.name], count))
        elif column.physical in arrays:
            array = arrays[column.physical]
            if picked is not None:
                # Arrow cannot take from views, which natively merged files come back as.
                array = (column.from_file(array) if has_views(array.type) else array).take(picked)
            result.append(column.from_file(array))
        else:
            result.append(column.missing(count))
    fields = [pa.field(column.name, column.arrow_type) for column in columns]
    return pa.RecordBatch.from_arrays(result, schema=pa.schema(fields))


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The Arrow schema of these columns."""
    return pa.schema([pa.field(column.name, column.arrow_type) for column in columns])
