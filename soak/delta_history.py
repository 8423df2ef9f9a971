"""The history of a Delta table, read from its log files alone: what each commit says of itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote


class LogIncomplete(Exception):
    """A log without its first files, or with a gap: a table that is being removed."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit. ``named`` is what freshview wrote into it, None in a commit of somebody else."""

    version: int
    table: str
    changes_data: bool
    named: Mapping[str, Any] | None
    files: frozenset[str]
    """The data files of this version."""
    plain: bool
    """Whether these files hold its rows as they stand: no row is deleted, moved or computed."""
    schema: str
    """Its columns, as Spark's JSON."""
    identity: str
    """What tells it from another commit with its number: a digest of its lines."""

    @property
    def number(self) -> int | None:
        return None if self.named is None else int(self.named["number"])

    @property
    def fence(self) -> int | None:
        """The number of the lease under which it was made, None if the commit names none."""
        fence = ({} if self.named is None else self.named.get("metadata", {})).get("fence")
        return None if fence is None else int(fence)

    @property
    def identities(self) -> dict[str, str]:
        """The identity of the commit of each source that it names."""
        stored = {} if self.named is None else self.named.get("metadata", {}).get("sources", {})
        return {name: source.get("commit", "") for name, source in stored.items()}

    @property
    def sources(self) -> dict[str, tuple[int, str]] | None:
        """The version of each source and the table it is of, None if the commit names none."""
        metadata = {} if self.named is None else self.named.get("metadata", {})
        if "sources" not in metadata:
            return None
        stored = metadata["sources"].items()
        return {name: (source["version"], source["table"]) for name, source in stored}


def history(table: Path) -> list[LogEntry]:
    """Every commit of a table, oldest first; none if it is not there. The log must be whole."""
    found: list[LogEntry] = []
    files: dict[str, bool] = {}
    metadata: dict[str, Any] = {}
    for version, file in enumerate(sorted((table / "_delta_log").glob("*.json"))):
        if int(file.stem) != version:
            raise LogIncomplete(f"{table} has no log of version {version}")
        named, changes = None, False
        lines = [line for line in file.read_text().split("\n") if line.strip()]
        actions = [json.loads(line) for line in lines]
        for action in actions:
            metadata = action.get("metaData", metadata)
            named = named or _named(action.get("commitInfo", {}))
            for kind in ("add", "remove"):
                changes = changes or bool(action.get(kind, {}).get("dataChange"))
        # A file whose rows are deleted in part is removed and added again in one commit.
        for action in actions:
            files.pop(unquote(action.get("remove", {}).get("path", "")), None)
        for action in actions:
            if "add" in action:
                files[unquote(action["add"]["path"])] = "deletionVector" in action["add"]
        plain = not any(files.values()) and not metadata["partitionColumns"]
        plain = plain and "delta.columnMapping.mode" not in metadata["configuration"]
        entry = LogEntry(
            version,
            metadata["id"],
            changes,
            named,
            frozenset(files),
            plain,
            metadata["schemaString"],
            hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16],
        )
        found.append(entry)
    return found


def _named(info: Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        stored = json.loads(info.get("userMetadata") or "null")
    except ValueError:
        return None
    ours = stored.get("freshview") if isinstance(stored, dict) else None
    return ours if isinstance(ours, dict) and "number" in ours else None
