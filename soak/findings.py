"""What a check can find, and what it says in the end."""

from __future__ import annotations

from dataclasses import dataclass, field

WRONG = "wrong"
LOST = "lost"
TWICE = "twice"
UNNAMED = "without versions"
MIXED = "mixed versions"
BACKWARDS = "back in time"
HALF = "half a transaction"
STALE = "not the newest"
HIDDEN = "hidden state"
COLUMNS = "columns"
FENCE = "fence"
CATALOG = "catalog"
UNKNOWN = "unknown table"
KINDS = (
    *(WRONG, LOST, TWICE, UNNAMED, MIXED, BACKWARDS, HALF, STALE),
    *(HIDDEN, COLUMNS, FENCE, CATALOG, UNKNOWN),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be."""

    kind: str
    where: str
    what: str


@dataclass(slots=True)
class Verdict:
    """What was looked at, and what was found.

    ``gone`` counts the versions that could not be computed again, because a table they name is no
    longer there; ``unstated`` are the views whose hidden state nobody stated.
    """

    views: list[str] = field(default_factory=list)
    versions: int = 0
    epochs: int = 0
    gone: int = 0
    unstated: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(finding.kind == kind for finding in self.findings)

    def __str__(self) -> str:
        counts = ", ".join(f"{kind} {self.count(kind)}" for kind in KINDS)
        looked = f"{len(self.views)} views, {self.versions} versions of them, {self.epochs} epochs"
        lines = [f"{looked} checked: {counts}"]
        if self.gone:
            lines.append(f"  not computed again: {self.gone} versions over tables that are gone")
        if self.unstated:
            lines.append(f"  hidden columns not compared: {', '.join(self.unstated)}")
        lines += [f"  {f.kind}: {f.where}: {f.what}" for f in self.findings[:20]]
        return "\n".join(lines)
