"""Repeated measurements and their spread."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some measurements, with the least and the greatest."""

    median: float
    least: float
    greatest: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        known = list(values)
        return cls(statistics.median(known), min(known), max(known), len(known))

    def text(self, digits: int = 0) -> str:
        """The median, and the range in brackets."""
        low, high = f"{self.least:,.{digits}f}", f"{self.greatest:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({low}–{high})"


def by_stage(samples: Iterable[Mapping[str, float]]) -> dict[str, Spread]:
    """The spread of each stage, in the order in which stages first occur."""
    known = list(samples)
    names = dict.fromkeys(name for sample in known for name in sample)
    return {name: Spread.of(sample.get(name, 0.0) for sample in known) for name in names}
