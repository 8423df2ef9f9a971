"""One refresh of some views: what it has pinned, and what the views hand on to those above them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from freshview.errors import FreshviewError
from freshview.runtime.cancellation import check
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.clock import pinned_clock
from freshview.runtime.commit import Consumed, SourceVersion
from freshview.runtime.incremental import ChangesKey, Handover
from freshview.runtime.lease import Lease
from freshview.runtime.report import ViewReport
from freshview.runtime.sources import Sources
from freshview.storage.interface import Commit


@dataclass(slots=True)
class Refresh:
    """One refresh: the pinned versions, and what refreshed views hand to those above them."""

    sources: Sources
    pinned: dict[str, SourceVersion]
    moment: datetime
    """The one moment for which all views of this refresh are refreshed."""
    after: int = 0
    """The newest epoch from before the versions were pinned."""
    missing: dict[str, FreshviewError] = field(default_factory=dict)
    """Tables that are not where they were, or have half of a transaction."""
    handed: dict[str, Handover] = field(default_factory=dict)
    changes: dict[ChangesKey, pa.Table] = field(default_factory=dict)
    """What was read of the sources' changes, for the views that come next."""
    reports: list[ViewReport] = field(default_factory=list)
    source_rows: dict[str, int] = field(default_factory=dict)
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    lease: Lease | None = None
    """The lease of the view that is being refreshed."""

    def commit(
        self,
        entry: ViewEntry,
        consumed: Consumed,
        sources: Mapping[str, SourceVersion],
        mode: str,
    ) -> Commit:
        """The commit that follows a view's state, once it is sure that the view is still ours."""
        assert self.lease is not None
        check()
        self.lease.check()
        self.check_pinned(sources)
        return consumed.next(entry, sources, mode, self.lease.fence)

    def vector(self, entry: ViewEntry, clocks: Iterable[str]) -> dict[str, SourceVersion]:
        """What a view is refreshed to: the pinned versions of its tables, and the pinned moment."""
        tables = {name: self.pinned[name] for name in entry.sources}
        return tables | {name: pinned_clock(name, self.moment) for name in clocks}

    def check_pinned(self, vector: Mapping[str, SourceVersion]) -> None:
        """Raises Overtaken if a table was put in the place of one that was pinned."""
        for name, pinned in vector.items():
            if self.sources.identity(name, pinned.version) != pinned.commit:
                raise Overtaken(name)

    def release(self, following: Iterable[ViewEntry] = ()) -> None:
        """Let go of the rows that were handed over and that none of the following views reads."""
        read = {source for entry in following for source in entry.sources}
        for name in [name for name in self.handed if name not in read]:
            self.handed.pop(name).release()


class Overtaken(Exception):
    """Another refresher has brought a view past the versions that this refresh pinned."""
