"""What the commits of a view say: numbers that rise, versions that exist, fences that do not fall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from soak.delta_history import LogEntry
from soak.findings import BACKWARDS, FENCE, LOST, STALE, TWICE, UNNAMED, Finding
from soak.transaction_check import TransactionCheck
from soak.warehouse_history import WarehouseHistory, disagreements


class CommitCheck:
    """The bookkeeping of the views of a warehouse."""

    def __init__(self, warehouse: WarehouseHistory, transactions: TransactionCheck) -> None:
        self.warehouse, self.transactions = warehouse, transactions

    def commits(self, view: str) -> Iterator[Finding]:
        """Each commit of a view follows the one before it and names what it rests on."""
        last_number = 0
        last_sources: Mapping[str, tuple[int, str]] = {}
        for commit in self.warehouse.history(view):
            where = f"{view}@{commit.version}"
            if commit.sources is None or commit.number is None:
                if commit.changes_data or commit.named is not None:
                    yield Finding(UNNAMED, where, "rows changed, and no versions are named")
                continue
            yield from self._names(view, where, commit.sources, commit.identities)
            if commit.number != last_number + 1:
                kind = TWICE if commit.number <= last_number else LOST
                yield Finding(kind, where, f"commit {commit.number} follows {last_number}")
            last_number = commit.number
            for name, (version, table) in commit.sources.items():
                before = last_sources.get(name)
                if before is not None and before[1] == table and before[0] > version:
                    yield Finding(BACKWARDS, where, f"{name} {before[0]} → {version}")
            last_sources = commit.sources
            base = self.warehouse.base(view, commit.version)
            yield from disagreements(where, base)
            yield from self.transactions.halves(where, base)

    def fences(self, view: str) -> Iterator[Finding]:
        """Fences rise with the leases of a view, and none is higher than the last lease.

        A view's first commit has 0: it is made before the view exists, so nobody can be overtaken.
        A commit of a time without fences names none.
        """
        folder = self.warehouse.root / "_freshview" / "leases" / "views" / view
        leases = [int(file.name) for file in folder.glob("*") if file.name.isdecimal()]
        last = 0
        for commit in self.warehouse.history(view):
            if commit.sources is None or (commit.fence is None and not last):
                continue
            where, fence = f"{view}@{commit.version}", commit.fence or 0
            if fence < (last or _least(commit)):
                yield Finding(FENCE, where, f"{fence} follows {last}")
            elif fence > max(leases, default=0):
                yield Finding(FENCE, where, f"{fence}, and the leases are {sorted(leases)}")
            last = max(last, fence)

    def _names(
        self,
        view: str,
        where: str,
        sources: Mapping[str, tuple[int, str]],
        identities: Mapping[str, str],
    ) -> Iterator[Finding]:
        """A commit names a version of each source, the table that has it, and its commit."""
        warehouse = self.warehouse
        if sources.keys() != set(warehouse.entries[view]["sources"]):
            yield Finding(UNNAMED, where, f"it names versions of {sorted(sources)} only")
        for name, (version, table) in sources.items():
            if warehouse.has(name, version, table):
                if not warehouse.is_commit(name, version, identities[name]):
                    yield Finding(UNNAMED, where, f"{name} {version} is not {identities[name]}")
            elif not warehouse.had(name, version, table):
                yield Finding(UNNAMED, where, f"{name} {version} is not of the table {table}")

    def stale(self) -> Iterator[Finding]:
        """Views that do not rest on the newest version of a table in which data changed."""
        warehouse = self.warehouse
        for view in warehouse.views:
            newest_of_view = len(warehouse.history(view)) - 1
            for table, versions in warehouse.base(view, newest_of_view).items():
                newest = max(c.version for c in warehouse.history(table) if c.changes_data)
                if min(version for version, _ in versions) < newest:
                    yield Finding(STALE, view, f"rests on {table} {versions}, which has {newest}")


def _least(commit: LogEntry) -> int:
    return 0 if commit.number == 1 else 1
