"""One view refreshed by change tables and by deltas, and recomputed, after the same batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from freshview.bench.reads import Read
from freshview.bench.samples import Spread, by_stage
from freshview.bench.timed import stages_and_rest

CHANGE_TABLE, DELTA, RECOMPUTE = "change_table", "delta", "recompute"
TECHNIQUES = (CHANGE_TABLE, DELTA)
VIEW = "view"
"""Under which name reads of the refreshed view itself are counted."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """One refresh of a view by one technique; a full one has a reason."""

    ms: float
    jobs: int
    mode: str
    reason: str | None
    rows_in: int
    rows_read: int
    """As the refresh itself counts, in one sum and without lookups that stay in Spark."""
    rows_out: int
    reads: dict[str, Read]
    """Of each table, and of the view itself."""
    stages_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Round:
    """One batch: the view refreshed by each technique, and in most rounds recomputed."""

    refreshes: dict[str, Refreshed]
    recompute_ms: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rounds of one view."""

    view: str
    rounds: tuple[Round, ...]

    def refreshes(self, technique: str) -> list[Refreshed]:
        return [turn.refreshes[technique] for turn in self.rounds]

    def stages(self, technique: str) -> list[dict[str, float]]:
        """The stages of each refresh, and what is in none of them."""
        return [stages_and_rest(r.stages_ms, r.ms) for r in self.refreshes(technique)]

    def ms(self, way: str) -> Spread:
        """The milliseconds of a technique, or of the recompute."""
        return Spread.of(_ms(turn, way) for turn in self._with(way))

    def ratio(self, slow: str, fast: str) -> Spread:
        """How many times the one fits into the other, round by round."""
        return Spread.of(_ms(turn, slow) / _ms(turn, fast) for turn in self._with(slow, fast))

    def _with(self, *ways: str) -> list[Round]:
        """The rounds that have these ways; every one has the techniques."""
        return [t for t in self.rounds if RECOMPUTE not in ways or t.recompute_ms is not None]

    def summary(self) -> dict[str, Any]:
        """Medians, spreads and every round."""
        ratios = ((RECOMPUTE, CHANGE_TABLE), (RECOMPUTE, DELTA), (DELTA, CHANGE_TABLE))
        return {
            "view": self.view,
            **{f"{way}_ms": asdict(self.ms(way)) for way in (*TECHNIQUES, RECOMPUTE)},
            **{f"{a}_by_{b}": asdict(self.ratio(a, b)) for a, b in ratios},
            "modes": {t: sorted({r.mode for r in self.refreshes(t)}) for t in TECHNIQUES},
            "reads": {t: median_reads(self.refreshes(t)) for t in TECHNIQUES},
            "stages_ms": {
                t: {name: asdict(spread) for name, spread in by_stage(self.stages(t)).items()}
                for t in TECHNIQUES
            },
            "rounds": [asdict(turn) for turn in self.rounds],
        }


def _ms(turn: Round, way: str) -> float:
    if way != RECOMPUTE:
        return turn.refreshes[way].ms
    assert turn.recompute_ms is not None
    return turn.recompute_ms


def median_reads(refreshes: Sequence[Refreshed]) -> dict[str, float]:
    """The rows that refreshes of a view read of each table, and of the view."""
    names = dict.fromkeys(name for refreshed in refreshes for name in refreshed.reads)
    return {n: Spread.of(r.reads[n].rows for r in refreshes).median for n in names}
