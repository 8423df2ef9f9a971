"""A first cost model: what an incremental refresh and a recompute are expected to take.

The incremental way has a fixed cost (a few native calls and one Spark evaluation) and a cost per
row that is read, looked up or written; an operand without a key costs a Spark scan. A recompute
costs what the last one took, of which the part that its rows took grows and shrinks with the
tables. Coefficients were measured on two cores; they only have to be right about which way is
cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

FIXED_MS = 150.0
EVALUATION_MS = 30.0
ROW_MS = 0.02
SCAN_FIXED_MS = 600.0
SCAN_ROW_MS = 0.0004
RECOMPUTE_FIXED_MS = 800.0
RECOMPUTE_ROW_MS = 0.0006


@dataclass(frozen=True, slots=True)
class LastRecompute:
    """How long the last recompute of a view took, and over how many source rows."""

    ms: float
    rows: int


@dataclass(frozen=True, slots=True)
class Costs:
    """Both estimates in milliseconds."""

    incremental_ms: float
    full_ms: float

    @property
    def prefers_full(self) -> bool:
        return self.full_ms < self.incremental_ms


def incremental_ms(local_rows: int, scanned_rows: tuple[int, ...], evaluations: int = 0) -> float:
    """The estimate; ``evaluations`` are those beyond the one that every refresh has."""
    scans = sum(SCAN_FIXED_MS + rows * SCAN_ROW_MS for rows in scanned_rows)
    return FIXED_MS + evaluations * EVALUATION_MS + local_rows * ROW_MS + scans


def full_ms(source_rows: int, last: LastRecompute | None) -> float:
    if last is None or last.rows == 0:
        return RECOMPUTE_FIXED_MS + source_rows * RECOMPUTE_ROW_MS
    of_rows = min(last.ms, max(last.ms - RECOMPUTE_FIXED_MS, last.rows * RECOMPUTE_ROW_MS))
    return last.ms + of_rows * (source_rows / last.rows - 1)
