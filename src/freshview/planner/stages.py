"""The stages of one view's refresh as frozen data: ``explain`` prints the list that a refresh runs."""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.relations import Changes, Given, Relation, Scan, State
from freshview.planner.lookups import Probes, probe_text
from freshview.reasons import Reason


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """The changed rows of a source between the version the view has and the pinned one."""

    source: str
    after: int
    upto: int
    columns: tuple[str, ...]
    rows: int | None = None

    def __str__(self) -> str:
        known = "" if self.rows is None else f": {self.rows} rows"
        return f"read changes of {self.source} from version {self.after} to {self.upto}{known}"


@dataclass(frozen=True, slots=True)
class LookUpRows:
    """The rows of an operand that a term can meet, found by key."""

    leaf: Scan
    version: int
    probes: Probes
    expected: int
    needs: frozenset[Changes | Given] = frozenset()

    def __str__(self) -> str:
        return (
            f"look up {self.leaf.table} {_state(self.leaf)} (version {self.version}) where"
            f" {probe_text(self.leaf, self.probes[0])}: ≈ {self.expected} rows"
        )


@dataclass(frozen=True, slots=True)
class ScanRows:
    """A whole operand, read by Spark: no key leads to it, or too many rows would come."""

    leaf: Scan
    version: int
    expected: int
    needs: frozenset[Changes | Given] = frozenset()

    def __str__(self) -> str:
        return (
            f"scan {self.leaf.table} {_state(self.leaf)} (version {self.version}) with Spark:"
            f" {self.expected} rows"
        )


@dataclass(frozen=True, slots=True)
class EvaluateStep:
    """A temporary, computed once: a shared delta, or a change table whose keys are looked up."""

    relation: Relation
    leaf: Given

    def __str__(self) -> str:
        return f"evaluate {self.leaf.name}"


@dataclass(frozen=True, slots=True)
class ReadStored:
    """The stored rows that the change table touches, or all of a small view."""

    leaf: Scan
    version: int
    by_key: bool
    expected: int

    def __str__(self) -> str:
        way = "the touched rows" if self.by_key else "all rows"
        return f"read {way} of {self.leaf.table} (version {self.version}): ≈ {self.expected} rows"


@dataclass(frozen=True, slots=True)
class EvaluateRefresh:
    """The refresh operator: the new value of every touched row."""

    relation: Relation

    def __str__(self) -> str:
        return "evaluate the refresh operator ⊔"


@dataclass(frozen=True, slots=True)
class ApplyRows:
    """Set and delete rows of the view by key, with the consumed versions in the same commit."""

    view: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"apply to {self.view} by ({', '.join(self.key)}), with the consumed versions"


@dataclass(frozen=True, slots=True)
class Advance:
    """Nothing in the view changes; only the consumed versions are committed."""

    view: str

    def __str__(self) -> str:
        return f"commit the consumed versions of {self.view}; no row changes"


@dataclass(frozen=True, slots=True)
class Recompute:
    """The whole view again, with the reason."""

    view: str
    reason: Reason

    def __str__(self) -> str:
        return f"recompute {self.view} in full and overwrite it ({self.reason.code})"


Stage = (
    ReadChanges
    | LookUpRows
    | ScanRows
    | EvaluateStep
    | ReadStored
    | EvaluateRefresh
    | ApplyRows
    | Advance
    | Recompute
)


def _state(leaf: Scan) -> str:
    return {State.PRE: "before", State.POST: "after", State.NOW: "now"}[leaf.state]
