"""The benchmark of the paper's views at a tiny size: it runs, counts and proves; no times here."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from freshview.bench import change_tables
from freshview.bench.change_tables import ChangeTables, Settings, run_change_tables
from freshview.bench.comparison import TECHNIQUES, Comparison, Refreshed, Round
from freshview.bench.reads import Read
from freshview.bench.show_change_tables import comparison_table
from freshview.cli.answer import WIDTH, plain
from freshview.runtime.check import CheckResult
from tests.cli.run import in_process


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_each_view_is_refreshed_by_both_techniques_and_recomputed(tmp_path, monkeypatch):
    monkeypatch.setattr(change_tables, "WARM_UP", 1)
    printed = io.StringIO()
    settings = Settings(tmp_path, sales=2_000, rows=20, repeat=1)
    found = run_change_tables(settings, Console(file=printed, width=WIDTH, markup=False))
    summary = json.loads(json.dumps(found.summary(), default=plain))
    assert found.ok
    assert summary["table_rows"] == {
        "sales": 2_000,
        "stores": 1_000,
        "items": 10_000,
        "infostates": 100,
    }
    assert len(summary["checks"]) == 6
    views = {view["view"]: view for view in summary["views"]}
    assert list(views) == ["CitySales", "CategorySales", "SSFullInfo"]
    for view in views.values():
        assert view["modes"] == {"change_table": ["incremental"], "delta": ["incremental"]}
        for way in ("change_table", "delta", "recompute"):
            assert view[f"{way}_ms"]["count"] == 1
        assert view["recompute_by_delta"]["median"] > 0
        assert view["delta_by_change_table"]["median"] > 0
        for technique in TECHNIQUES:
            stages = view["stages_ms"][technique]
            assert {"read changes", "evaluate", "apply", "rest"} <= set(stages)
        (turn,) = view["rounds"]
        assert {r["rows_in"] for r in turn["refreshes"].values()} == {20}
        assert view["reads"]["change_table"]["sales"] == 0, "change tables never read sales"
    for name in ("CitySales", "CategorySales"):
        assert views[name]["reads"]["delta"]["sales"] > 0
    assert views["CitySales"]["reads"]["change_table"]["stores"] > 0
    assert views["CategorySales"]["reads"]["change_table"]["items"] == 40
    assert not list(tmp_path.glob("run-*"))
    assert max(map(len, printed.getvalue().splitlines())) <= WIDTH
    assert "The views in the end: equal to a recompute" in printed.getvalue()


def refreshed(ms, mode="incremental", reason=None):
    reads = {"sales": Read(0), "view": Read(100)}
    return Refreshed(ms, 0, mode, reason, 20, 100, 10, reads, {"look up": 30.0, "apply": 20.0})


def measured(missing=0, delta=None, recompute_ms=2_500.0):
    """A benchmark that found one view, right or wrong, in two rounds; recomputed in the first."""
    check = CheckResult("CitySales_delta", missing, 0, None, {}, 1.0)
    rounds = tuple(
        Round({"change_table": refreshed(100.0), "delta": delta or refreshed(500.0)}, ms)
        for ms in (recompute_ms, None)
    )
    found = ChangeTables(Settings(Path("data"), repeat=2), {"cores": 2, "load": [0.1]})
    found.views.append(Comparison("CitySales", rounds))
    found.checks.append(check)
    return found


def test_ratios_are_of_the_rounds_that_have_both():
    summary = measured().summary()
    (view,) = summary["views"]
    assert (view["recompute_ms"]["count"], view["change_table_ms"]["count"]) == (1, 2)
    assert view["recompute_by_change_table"]["median"] == 25.0
    assert view["recompute_by_delta"]["median"] == 5.0
    assert view["delta_by_change_table"] == {
        "median": 5.0,
        "least": 5.0,
        "greatest": 5.0,
        "count": 2,
    }
    assert view["stages_ms"]["delta"]["rest"]["median"] == 450.0


def text(found):
    printed = io.StringIO()
    Console(file=printed, width=WIDTH, markup=False).print(comparison_table(found))
    return printed.getvalue()


def test_a_refresh_that_fell_back_is_named():
    assert "FULL" not in text(measured())
    printed = text(measured(delta=refreshed(500.0, "full", "EVALUATION_FAILED")))
    (line,) = [line for line in printed.splitlines() if "delta FULL" in line]
    assert "500" in line
    assert "CitySales by delta: 2 of 2 refreshes were full EVALUATION_FAILED" in printed


def test_fewer_recomputes_than_rounds_are_told():
    assert "2,500 (2,500–2,500) ×1" in text(measured())


def test_the_command_writes_what_it_found(monkeypatch, tmp_path):
    seen = []

    def run(settings, console):
        seen.append(settings)
        return measured()

    monkeypatch.setattr(change_tables, "run_change_tables", run)
    out = tmp_path / "found.json"
    options = ("--sales", "3000", "--rows", "30", "--data", tmp_path, "--out", out)
    answer = in_process("bench", "change-tables", *options, "--json").answer
    assert answer == {"ok": True, "bench": json.loads(out.read_text())}
    assert seen == [Settings(tmp_path, 3_000, 30, 7, 1)]


def test_the_command_ends_with_1_when_a_view_is_wrong(monkeypatch):
    monkeypatch.setattr(change_tables, "run_change_tables", lambda *_: measured(missing=3))
    found = in_process("bench", "change-tables", "--json")
    assert (found.status, found.answer["code"]) == (1, "VIEW_DIFFERS")
    assert in_process("bench", "change-tables").status == 1
    assert "DIFFERENT from a recompute: CitySales_delta" in text(measured(missing=3))
