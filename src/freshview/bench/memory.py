"""The driver's memory during refreshes, measured in a process that does nothing else.

The measured process opens a warehouse and refreshes when told to; the process that started it makes
the changes. Measured after each refresh: the peak of the resident memory of Python since the one
before, and the heap that is in use in the JVM after a collection.

    python -m freshview.bench.memory WAREHOUSE     one JSON object per line read, until end of input
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MB = 1024**2


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes in use after one refresh, and how the view was refreshed."""

    python_mb: float
    heap_mb: float
    mode: str
    rows_read: int

    @property
    def total_mb(self) -> float:
        """Python and JVM together."""
        return self.python_mb + self.heap_mb


def peak_memory(warehouse: Path, changes: Callable[[], object], repeat: int) -> list[Memory]:
    """The memory of each of some refreshes in a new process, after one that warms it up."""
    with _refresher(warehouse) as (told, heard):
        found = []
        for _ in range(repeat + 1):
            changes()
            told.write("refresh\n")
            told.flush()
            answer = heard.readline()
            if not answer:
                raise RuntimeError("the measured process ended early; its error is printed above")
            found.append(Memory(**json.loads(answer)))
        return found[1:]


@contextmanager
def _refresher(warehouse: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    command = [sys.executable, "-m", "freshview.bench.memory", str(warehouse)]
    with subprocess.Popen(  # noqa: S603 (this interpreter and this module)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdin, process.stdout
        finally:
            process.stdin.close()
            process.wait(timeout=60)


def serve(path: str, lines: IO[str], answers: IO[str]) -> None:
    """Refresh once per line and answer with the memory it took."""
    from freshview.runtime.warehouse import open_warehouse

    warehouse = open_warehouse(path, create=False)
    for _ in lines:
        _forget_peak()
        (view,) = warehouse.refresh().views
        python_mb = _peak_kb() / 1024
        heap_mb = _heap_bytes(warehouse.spark) / _MB
        answers.write(json.dumps(asdict(Memory(python_mb, heap_mb, view.mode, view.rows_read))))
        answers.write("\n")
        answers.flush()


def _forget_peak() -> None:
    """Let the system measure the peak of resident memory anew from here (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak_kb() -> int:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def _heap_bytes(spark: SparkSession) -> int:
    """The heap in use after a full collection."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 (PySpark has no other way to the JVM)
    assert jvm is not None
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


if __name__ == "__main__":
    serve(sys.argv[1], sys.stdin, sys.stdout)
