"""What a lookup costs: `python bench/lookups.py WORKDIR [--scale 0.1 1]`.

Makes TPC-H orders and lineitem (tpchgen-cli) as Delta tables in Spark's file layout (snappy, one
row group per file), then looks up keys in a fresh process each, and prints the median wall time,
the processor time, and how far the lookup raised the process's peak memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import WriterProperties, write_deltalake

from freshview.demo.tpch import batches, generate, parquet_file

COLUMNS = {
    "orders": ("o_orderkey", ["o_orderkey", "o_custkey", "o_orderdate"]),
    "lineitem": ("l_orderkey", ["l_orderkey", "l_extendedprice", "l_shipdate", "l_comment"]),
}
ROW_GROUP_ROWS = 3_000_000


def make(workdir: Path, table: str, scale: str) -> Path:
    """The table at this scale, made once."""
    folder = workdir / f"{table}-{scale}"
    if folder.exists():
        return folder
    raw = workdir / f"raw-{scale}"
    generate(raw, float(scale), [table])
    layout = WriterProperties(compression="SNAPPY", max_row_group_size=ROW_GROUP_ROWS)
    write_deltalake(str(folder), batches(parquet_file(raw, table)), writer_properties=layout)
    return folder


def peak_mb() -> float:
    """The most memory this process has held; not ru_maxrss, which a child inherits."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(folder: str, table: str, count: int, repeats: int) -> None:
    """One measurement, in this process; prints it as JSON."""
    from freshview.storage.native import NativeStorage

    key, columns = COLUMNS[table]
    storage = NativeStorage()
    version = storage.latest(folder)
    total = storage.state(folder).rows or 0
    highest = total * (4 if table == "orders" else 1)
    keys = pa.array(np.unique(np.random.default_rng(7).integers(1, highest, count)))
    storage.lookup(folder, version, columns, key, pa.array([-1], pa.int64()))
    before, walls, processors, found = peak_mb(), [], [], 0
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        found = len(storage.lookup(folder, version, columns, key, keys))
        walls.append((time.perf_counter() - wall) * 1000)
        processors.append((time.process_time() - processor) * 1000)
    result = {
        "rows": found,
        "wall_ms": statistics.median(walls),
        "cpu_ms": statistics.median(processors),
        "peak_mb": peak_mb(),
        "grew_mb": peak_mb() - before,
    }
    print(json.dumps(result))


def main() -> None:
    """Make the tables and print one line per measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workdir", type=Path)
    parser.add_argument("--scale", nargs="*", default=["0.1", "1"])
    parser.add_argument("--keys", nargs="*", type=int, default=[10, 1000, 10000])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--one", nargs=3)
    options = parser.parse_args()
    if options.one:
        folder, table, count = options.one
        measure(folder, table, int(count), options.repeats)
        return
    for table in COLUMNS:
        for scale in options.scale:
            folder = make(options.workdir, table, scale)
            for count in options.keys:
                command = [sys.executable, __file__, str(options.workdir)]
                command += [
                    "--repeats",
                    str(options.repeats),
                    "--one",
                    str(folder),
                    table,
                    str(count),
                ]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                result = json.loads(output)
                shown = "  ".join(f"{name} {value:8.1f}" for name, value in result.items())
                print(f"{table:8} SF {scale:4} keys {count:6}  {shown}", flush=True)


if __name__ == "__main__":
    main()
