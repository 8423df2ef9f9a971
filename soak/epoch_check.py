"""Epochs: what each names was there, agrees, and is not earlier than what the one before it names."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from soak.findings import BACKWARDS, LOST, STALE, UNKNOWN, Finding
from soak.transaction_check import TransactionCheck
from soak.warehouse_history import WarehouseHistory, disagreements

YOUNGEST_VACUUMED_S = 3600
"""`freshview vacuum` takes nothing that is younger."""


class EpochCheck:
    """The epochs of a warehouse, by number."""

    def __init__(self, warehouse: WarehouseHistory, transactions: TransactionCheck) -> None:
        self.warehouse, self.transactions = warehouse, transactions

    @cached_property
    def _files(self) -> dict[int, Path]:
        files = sorted((self.warehouse.root / "_freshview" / "epochs").glob("*.json"))
        return {int(file.stem): file for file in files}

    @cached_property
    def epochs(self) -> dict[int, Mapping[str, Any]]:
        return {number: json.loads(file.read_text()) for number, file in self._files.items()}

    def _missing(self) -> Iterator[Finding]:
        """Numbers that are left out, and are too young for a vacuum to have removed them."""
        vacuumed = time.time() - YOUNGEST_VACUUMED_S
        for before, after in pairwise(self._files):
            if after != before + 1 and self._files[before].stat().st_mtime > vacuumed:
                yield Finding(LOST, f"epoch {before + 1}", f"{after} follows {before}")

    def check(self) -> Iterator[Finding]:
        """The views of an epoch rest on its tables and on no other versions of them."""
        warehouse = self.warehouse
        seen: dict[str, dict[str, int]] = {}
        yield from self._missing()
        for number, epoch in self.epochs.items():
            where = f"epoch {number}"
            found: dict[str, set[tuple[int, str]]] = {}
            for name, held in {**epoch["tables"], **epoch["views"]}.items():
                version, table = held["version"], held["table"]
                there = warehouse.has(name, version, table)
                if not there and not (
                    name in epoch["views"] and warehouse.had(name, version, table)
                ):
                    yield Finding(UNKNOWN, where, f"{name} has no {version} of a table {table}")
                    continue
                if there and not warehouse.is_commit(name, version, held.get("commit", "")):
                    yield Finding(UNKNOWN, where, f"{name} {version} is not {held.get('commit')}")
                yield from _earlier(where, name, version, table, seen.setdefault(name, {}))
                # Of a view that was dropped or replaced since, nothing tells what it rests on.
                known = warehouse.base(name, version) if there else {}
                for base, versions in known.items():
                    found.setdefault(base, set()).update(versions)
            yield from disagreements(where, found)
            yield from self.transactions.halves(where, found)

    def unrecorded(self) -> Iterator[Finding]:
        """Views whose newest version is in no epoch."""
        last: dict[str, Mapping[str, Any]] = {}
        for epoch in self.epochs.values():
            last |= epoch["views"]
        for view in self.warehouse.views:
            named = [
                commit for commit in self.warehouse.history(view) if commit.sources is not None
            ]
            held = last.get(view, {"version": -1, "table": ""})
            for newest in named[-1:]:
                if held["version"] < newest.version or held["table"] != newest.table:
                    yield Finding(STALE, view, f"has {newest.version}, and the last epoch {held}")


def _earlier(
    where: str, name: str, version: int, table: str, seen: dict[str, int]
) -> Iterator[Finding]:
    """Versions of a table rise; a table that was replaced by another one does not come again."""
    if version < seen.get(table, 0):
        yield Finding(BACKWARDS, where, f"{name} {seen[table]} → {version}")
    elif table in seen and table != list(seen)[-1]:
        yield Finding(BACKWARDS, where, f"{name} is the table {table} again")
    seen[table] = version
