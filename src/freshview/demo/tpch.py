"""TPC-H tables: generated as Parquet and kept as Delta tables."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from freshview.demo.kept_tables import PROPERTIES, keep_table
from freshview.errors import FreshviewError
from freshview.storage.plain_arrow import nullable_schema

KEYS = {
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
    "nation": ("n_nationkey",),
}
_TOOL = "tpchgen-cli"


@final
class GeneratorMissing(FreshviewError):
    """The program that generates TPC-H data is not installed."""

    code = "GENERATOR_MISSING"
    what_template = "{tool} was not found, and it makes the TPC-H tables."
    why_template = "it comes with the extra bench of freshview"
    do_template = "install it with: pip install 'freshview[bench]'"


@final
class GeneratorFailed(FreshviewError):
    """The program that generates TPC-H data ended with an error."""

    code = "GENERATOR_FAILED"
    what_template = "{tool} could not make the TPC-H tables in {folder}."
    why_template = "{reason}"
    do_template = "free the disk or choose another folder, then run it again"


def parquet_file(folder: Path, table: str) -> Path:
    """Where the generated rows of a table are."""
    return folder / f"{table}.parquet"


def generate(folder: Path, sf: float, tables: Sequence[str]) -> None:
    """Generate tables at a scale factor as Parquet files, unless they are there already."""
    missing = [name for name in tables if not parquet_file(folder, name).exists()]
    if not missing:
        return
    tool = shutil.which(_TOOL, path=os.pathsep.join([str(Path(sys.executable).parent), _path()]))
    if tool is None:
        raise GeneratorMissing(tool=_TOOL)
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    wanted = f"--tables={','.join(missing)}"
    command = [tool, "parquet", "--quiet", f"--scale-factor={sf}", wanted, "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own arguments)
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
        raise GeneratorFailed(tool=_TOOL, folder=str(folder), reason=reason)
    for name in missing:
        parquet_file(unfinished, name).rename(parquet_file(folder, name))
    unfinished.rmdir()


def _path() -> str:
    return os.environ.get("PATH", os.defpath)


def batches(file: Path) -> pa.RecordBatchReader:
    """The rows of a generated file as a stream in plain types."""
    source = pq.ParquetFile(file)
    schema = nullable_schema(source.schema_arrow)

    def plain() -> Iterator[pa.RecordBatch]:
        for batch in source.iter_batches():
            yield batch.cast(schema)

    return pa.RecordBatchReader.from_batches(schema, plain())


def write_delta(parquet: Path, table: Path) -> None:
    """Make a Delta table, with its change feed on, from a generated file."""
    write_deltalake(str(table), batches(parquet), configuration=PROPERTIES)


def cached_tables(folder: Path, sf: float, tables: Sequence[str]) -> Path:
    """The folder that holds generated tables of this scale as Parquet and as Delta tables."""
    kept = folder / f"tpch-sf{sf:g}"
    kept.mkdir(parents=True, exist_ok=True)
    generate(kept, sf, tables)
    for name in tables:
        keep_table(kept / name, partial(write_delta, parquet_file(kept, name)))
    return kept
