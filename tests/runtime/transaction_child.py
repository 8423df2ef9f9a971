"""A process without Spark that changes two tables and pauses itself on the way, to be woken later.

``python -m tests.runtime.transaction_child FOLDER POINT NUMBER EXPIRES`` prints what came of it.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pyarrow as pa

from freshview import faults
from freshview.errors import FreshviewError
from freshview.runtime import lease
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.transactions import Transactions
from freshview.storage.choose import Tables
from freshview.storage.native import NativeStorage
from soak.dying import stopping_at

ROWS = pa.table({"k": [1], "v": ["late"]})


def transactions(folder: Path) -> Transactions:
    """Transactions over the tables in a folder, without Spark."""

    def no_spark() -> None:
        raise AssertionError("Spark is not needed here")

    tables = Tables(NativeStorage(), no_spark)  # type: ignore[arg-type]
    return Transactions(folder, tables, lambda name: str(folder / name))


def main() -> None:
    folder, point, number, expires = sys.argv[1:]
    lease.EXPIRES_S = float(expires)
    faults.install(stopping_at(f"{point}:{number}", signal.SIGSTOP))
    try:
        change = {name: TableChanges(insert=ROWS) for name in ("one", "two")}
        transactions(Path(folder)).apply(change)
    except FreshviewError as error:
        sys.stdout.write(error.code)
    else:
        sys.stdout.write("done")


if __name__ == "__main__":
    main()
