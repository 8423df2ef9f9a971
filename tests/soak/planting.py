"""A small honest warehouse, and ways to plant faults in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import freshview as fv
from freshview.storage.interface import Rows
from soak.checker import Checker
from soak.findings import Verdict

SCHEMA = pa.schema([("id", pa.int64()), ("g", pa.string()), ("v", pa.decimal128(10, 2))])
HIDDEN = {
    "totals": {
        "__rows": "count(*)",
        "__present1": "count(v)",
        "__sum1": "CAST(coalesce(sum(v), 0) AS DECIMAL(38,2))",
    }
}


def some(*values: int) -> fv.TableChanges:
    rows = [{"id": value, "g": "ab"[value % 2], "v": Decimal(value)} for value in values]
    return fv.TableChanges(insert=pa.Table.from_pylist(rows, SCHEMA))


def checker(warehouse: fv.Warehouse) -> Checker:
    return Checker(warehouse.root, warehouse.spark, hidden=HIDDEN)


def verdict(
    warehouse: fv.Warehouse, *, settled: bool = False, expected: tuple[str, ...] = ()
) -> Verdict:
    return checker(warehouse).run(settled=settled, expected=expected)


def kinds(warehouse: fv.Warehouse, *, expected: tuple[str, ...] = ()) -> set[str]:
    return {finding.kind for finding in verdict(warehouse, expected=expected).findings}


def path(warehouse: fv.Warehouse, name: str) -> str:
    return warehouse.parts.sources.path(name)


def epochs(warehouse: fv.Warehouse) -> list[Path]:
    return sorted((warehouse.root / "_freshview" / "epochs").glob("*.json"))


def rewrite(file: Path, change: Callable[[Any], None]) -> None:
    """Change what a JSON file holds."""
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def overwrite(warehouse: fv.Warehouse, name: str, rows: Rows, *, fence: int | None = None) -> None:
    """Put other rows into a view, with a commit as a refresh makes it."""
    entry = warehouse.catalog.view(name)
    last = warehouse._refresher.consumed(entry)
    with warehouse._held(name) as held:
        used = held.fence if fence is None else fence
        commit = last.next(entry, last.sources, "incremental", used)
        warehouse.parts.tables.overwrite(path(warehouse, name), rows, commit, new_schema=True)


def rows_of(warehouse: fv.Warehouse, name: str) -> pa.Table:
    """Everything that a view's table holds."""
    storage, place = warehouse.parts.tables.native, path(warehouse, name)
    return storage.read(place, storage.latest(place))
