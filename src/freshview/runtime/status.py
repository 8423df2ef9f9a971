"""What is known of a view without touching its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freshview.errors import FreshviewError
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.clock import moment_text
from freshview.runtime.parts import Parts

if TYPE_CHECKING:
    from freshview.runtime.refresh import Refresher


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """A view's state: ``pending`` maps each source that moved on to (version it has, newest)."""

    view: str
    technique: str
    policy: str
    version: int | None
    rows: int | None
    sources: Mapping[str, int]
    pending: Mapping[str, tuple[int, int]]
    problem: str | None = None
    moment: str | None = None
    """The day or moment for which a view that reads the clock was refreshed."""

    @property
    def fresh(self) -> bool:
        return not self.pending and self.problem is None


def status_of(parts: Parts, refresher: Refresher, entry: ViewEntry) -> ViewStatus:
    try:
        consumed = refresher.consumed(entry)
        pending = refresher.pending(entry)
        rows = parts.tables.state(parts.catalog.path(entry)).rows
    except FreshviewError as error:
        return ViewStatus(
            entry.name, entry.technique, entry.policy.value, None, None, {}, {}, error.code
        )
    versions = {name: consumed.sources[name].version for name in entry.sources}
    return ViewStatus(
        entry.name,
        entry.technique,
        entry.policy.value,
        consumed.version,
        rows,
        versions,
        pending,
        moment=moment_text(consumed.sources),
    )
