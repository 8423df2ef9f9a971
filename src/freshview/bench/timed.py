"""A refresh as a user waits for it, measured from outside."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from freshview.bench.machine import jobs_started
from freshview.runtime.report import ViewReport
from freshview.runtime.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class TimedRefresh:
    """What a view's refresh reported, the milliseconds of the whole call, and its Spark jobs."""

    report: ViewReport
    ms: float
    jobs: int


def timed_refresh(warehouse: Warehouse, view: str) -> TimedRefresh:
    """Refresh one view: the whole call, not only what its report counts."""
    jobs = jobs_started(warehouse.spark)
    started = time.perf_counter()
    report = warehouse.refresh(view)
    spent = (time.perf_counter() - started) * 1000
    return TimedRefresh(report[view], spent, jobs_started(warehouse.spark) - jobs)


def stages_and_rest(stages_ms: Mapping[str, float], ms: float) -> dict[str, float]:
    """The stages of a refresh that took so long, and under "rest" what is in none of them."""
    return {**stages_ms, "rest": ms - sum(stages_ms.values())}
