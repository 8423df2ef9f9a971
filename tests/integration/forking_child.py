"""Opens a warehouse, forks and spawns: ``python -m tests.integration.forking_child FOLDER``."""

from __future__ import annotations

import multiprocessing
import os
import sys

import pyarrow as pa
from deltalake import write_deltalake

import freshview as fv
from freshview.errors import ForkedProcess
from freshview.storage.native import NativeStorage


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def add(warehouse: fv.Warehouse, number: int) -> list[int]:
    """Insert a row; the rows that there are then."""
    warehouse.apply({"r": fv.TableChanges(insert=pa.table({"id": [number]}))})
    tables, path = warehouse.parts.tables, warehouse.parts.sources.path("r")
    rows = tables.native.read(path, tables.latest(path))
    return sorted(rows.column("id").to_pylist())


def in_a_fork(warehouse: fv.Warehouse) -> None:
    for when, used in (("before", lambda: warehouse), ("after", lambda: fv.open(warehouse.root))):
        try:
            result = str(add(used(), 9))
        except ForkedProcess as error:
            result = error.code
        say(f"forked, opened {when}: {result}")
    try:
        list(warehouse.vacuum())
    except ForkedProcess as error:
        say(f"forked, vacuum: {error.code}")


def in_a_new_process(folder: str) -> None:
    say(f"spawned: {add(fv.open(folder), 2)}")


def only_deltalake(folder: str) -> None:
    """The parent has used the native library without freshview."""
    write_deltalake(folder, pa.table({"id": [1]}))
    if os.fork() == 0:
        try:
            NativeStorage().latest(folder)
        except ForkedProcess as error:
            say(f"forked, freshview unused: {error.code}")
        os._exit(0)
    os.wait()


def main() -> None:
    only_deltalake(f"{sys.argv[1]}/table")
    warehouse = fv.open(f"{sys.argv[1]}/warehouse")
    warehouse.create_table("r", pa.table({"id": [1]}))
    if os.fork() == 0:
        in_a_fork(warehouse)
        os._exit(0)
    os.wait()
    new = multiprocessing.get_context("spawn").Process(
        target=in_a_new_process, args=(str(warehouse.root),)
    )
    new.start()
    new.join()
    say(f"parent: {add(warehouse, 3)}")


if __name__ == "__main__":
    main()
