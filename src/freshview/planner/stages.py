"""The stages of one view's refresh as frozen data: ``explain`` prints the list that a refresh runs."""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.clock import is_clock
from freshview.algebra.clock_time import shown_clock
from freshview.algebra.relations import Changes, Given, Relation, Scan, State
from freshview.delta.moving_window import MOVED
from freshview.planner.bounds import Range
from freshview.planner.lookups import Probes, probe_text, range_text
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
        if is_clock(self.source):
            before, now = (shown_clock(self.source, v) for v in (self.after, self.upto))
            return f"{self.source} moves from {before} to {now}"
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
class LookUpRange:
    """The rows of an operand between the limits that a temporary holds: those the clock may turn."""

    leaf: Scan
    version: int
    range: Range
    expected: int
    needs: frozenset[Changes | Given] = frozenset()

    def __str__(self) -> str:
        return (
            f"look up {self.leaf.table} {_state(self.leaf)} (version {self.version}) where"
            f" {range_text(self.leaf, self.range)}: ≈ {self.expected} rows"
        )


@dataclass(frozen=True, slots=True)
class ReadClock:
    """The clock's one row, before the refresh or as it is pinned."""

    leaf: Scan
    version: int

    def __str__(self) -> str:
        value = shown_clock(self.leaf.table, self.version)
        return f"read {self.leaf.table} {_state(self.leaf)}: {value}"


@dataclass(frozen=True, slots=True)
class ScanRows:
    """A whole operand, read by Spark: no key leads to it, or too many rows would come."""

    leaf: Scan
    version: int
    expected: int
    needs: frozenset[Changes | Given] = frozenset()

    def __str__(self) -> str:
        turned = any(isinstance(one, Given) and one.name.startswith(MOVED) for one in self.needs)
        why = "; the clock is not compared with a column, so it gives no range" * turned
        return (
            f"scan {self.leaf.table} {_state(self.leaf)} (version {self.version}) with Spark:"
            f" {self.expected} rows{why}"
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


Fetching = LookUpRows | LookUpRange | ReadClock | ScanRows
"""The stages that bring the rows of a leaf."""

Stage = (
    ReadChanges
    | Fetching
    | EvaluateStep
    | ReadStored
    | EvaluateRefresh
    | ApplyRows
    | Advance
    | Recompute
)


def _state(leaf: Scan) -> str:
    return {State.PRE: "before", State.POST: "after", State.NOW: "now"}[leaf.state]
