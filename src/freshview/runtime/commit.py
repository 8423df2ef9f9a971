"""What a view has consumed: read from and written with its own Delta commits, trusted after a crash.

The commit that changes a view carries the version of every source it was computed from. There is no
second place to keep it, so the two can never disagree.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freshview.planner.strategy import Strategy
from freshview.runtime.catalog import ViewEntry
from freshview.storage.interface import Commit

_NULLABLE = re.compile(r", nullable=(?:True|False)")


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """A version of a source, and what tells it from others with that number.

    A table that was put back from a backup has the same identity and counts on from there, so the
    commit has one too; it is empty where the log file of the commit is gone.
    """

    version: int
    table_id: str
    commit: str = ""

    def is_same(self, other: SourceVersion | None) -> bool:
        """Whether both are one state of one table, as far as the log can tell."""
        if other is None or (self.version, self.table_id) != (other.version, other.table_id):
            return False
        return not self.commit or not other.commit or self.commit == other.commit


@dataclass(frozen=True, slots=True)
class Consumed:
    """The state of a view: its own version, the number of its commit, and what it was made from.

    ``definition`` tells one function from another (`definition_of`); a view by SQL text has none.
    ``layout`` is what the stored columns mean; commits of earlier releases do not tell.
    """

    version: int
    number: int
    sources: Mapping[str, SourceVersion]
    definition: str = ""
    layout: str = ""

    def next(
        self, entry: ViewEntry, sources: Mapping[str, SourceVersion], mode: str, fence: int
    ) -> Commit:
        """The commit that follows this state, by the holder of the lease with this number."""
        number = self.number + 1
        return commit_of(entry, number, sources, mode, fence, self.definition, self.layout)


def commit_of(
    entry: ViewEntry,
    number: int,
    sources: Mapping[str, SourceVersion],
    mode: str,
    fence: int = 0,
    definition: str = "",
    layout: str = "",
) -> Commit:
    metadata: dict[str, object] = {
        "view": entry.name,
        "mode": mode,
        "sources": stored_versions(sources),
        "fence": fence,
    }
    if definition:
        metadata["definition"] = definition
    if layout:
        metadata["layout"] = layout
    return Commit(entry.application, number, metadata)


def consumed_of(version: int, commit: Commit) -> Consumed:
    stored: Any = commit.metadata["sources"]
    definition = str(commit.metadata.get("definition", ""))
    layout = str(commit.metadata.get("layout", ""))
    return Consumed(version, commit.number, parsed_versions(stored), definition, layout)


def definition_of(entry: ViewEntry, strategy: Strategy) -> str:
    """What the function of a view defines, as short as can be told from other definitions.

    The function itself is not kept, only its name, and may be another one in the next process.
    Whether a column can be NULL is the table's affair.
    """
    if entry.function is None:
        return ""
    defined = _NULLABLE.sub("", repr(strategy.relation))
    return hashlib.sha256(defined.encode()).hexdigest()[:32]


def stored_versions(vector: Mapping[str, SourceVersion]) -> dict[str, dict[str, object]]:
    """A version vector as JSON."""
    return {
        name: {"version": source.version, "table": source.table_id, "commit": source.commit}
        for name, source in vector.items()
    }


def parsed_versions(stored: Mapping[str, Any]) -> dict[str, SourceVersion]:
    """A version vector from JSON."""
    return {
        name: SourceVersion(held["version"], held["table"], held.get("commit", ""))
        for name, held in stored.items()
    }
