"""Transactions over several tables: each part is written once, and nobody rests on half of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from soak.findings import HALF, TWICE, Finding
from soak.warehouse_history import Versions, WarehouseHistory


class TransactionCheck:
    """The transactions of freshview's that the tables of a warehouse show."""

    def __init__(self, warehouse: WarehouseHistory) -> None:
        self._marks = list(_marks(warehouse))
        self.transactions: dict[str, dict[str, int]] = {}
        """Each transaction, with the version of each table that has all of it."""
        for name, version, mark in self._marks:
            self.transactions.setdefault(mark["transaction"], {})[name] = version

    def parts(self, settled: bool) -> Iterator[Finding]:
        """Each part of a transaction is written once, and in the end all of them are."""
        written = Counter(
            (mark["transaction"], mark["of"], name, mark["part"]) for name, _, mark in self._marks
        )
        parts: Counter[tuple[str, int]] = Counter()
        for (identity, of, name, part), times in written.items():
            parts[identity, of] += 1
            if times > 1:
                yield Finding(TWICE, f"{name}, {identity}", f"{part} is there {times} times")
        for (identity, of), there in parts.items():
            if settled and there < of:
                yield Finding(HALF, identity, f"{there} of its {of} parts are there")

    def halves(self, where: str, base: Versions) -> Iterator[Finding]:
        """Transactions that some of these versions have and others have not."""
        versions = {name: min(version for version, _ in found) for name, found in base.items()}
        for identity, parts in self.transactions.items():
            has = {versions[name] >= part for name, part in parts.items() if name in versions}
            if len(has) > 1:
                yield Finding(HALF, where, f"{identity} over {sorted(parts)} at {versions}")


def _marks(warehouse: WarehouseHistory) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """The commits of transactions: table, version, and what they say of them."""
    for name, entry in warehouse.entries.items():
        for commit in warehouse.history(name) if entry["kind"] == "table" else ():
            mark = {} if commit.named is None else commit.named.get("metadata", {})
            if "transaction" in mark:
                yield name, commit.version, mark
