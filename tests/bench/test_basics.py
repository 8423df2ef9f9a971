"""The benchmark at a tiny scale: it runs, counts and proves; its times mean nothing here."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from freshview.bench import basics
from freshview.bench.basics import Basics, Pair, Scenario, Settings, run_basics
from freshview.cli.answer import WIDTH, plain
from freshview.runtime.check import CheckResult
from tests.cli.run import in_process


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_basics_measures_pairs_stages_jobs_and_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(basics, "MEMORY_REPEAT", 1)
    printed = io.StringIO()
    settings = Settings(tmp_path, sf=0.002, repeat=2, sizes=(5,))
    found = run_basics(settings, Console(file=printed, width=WIDTH))
    summary = json.loads(json.dumps(found.summary(), default=plain))
    assert found.ok
    assert [(s["kind"], s["rows"]) for s in summary["scenarios"]] == [
        ("inserted", 5),
        ("mixed", 5),
    ]
    for scenario in summary["scenarios"]:
        assert scenario["refresh_ms"]["count"] == 2
        assert scenario["ratio"]["median"] > 0
        assert {pair["mode"] for pair in scenario["pairs"]} == {"incremental"}
        assert {"read changes", "look up", "evaluate", "apply", "rest"} <= set(
            scenario["stages_ms"]
        )
    assert summary["unchanged"]["jobs"] == 0
    assert set(summary["memory"]) == {"0.0002", "0.002"}
    assert all(m["python_mb"] > 0 and m["heap_mb"] > 0 for m in summary["memory"]["0.002"])
    assert not list(tmp_path.glob("run-*"))
    assert max(map(len, printed.getvalue().splitlines())) <= WIDTH
    assert "equal to a recompute" in printed.getvalue()


def measured(missing):
    """A benchmark that found one pair, and the view right or wrong."""
    pair = Pair(100.0, 2_500.0, 0, "incremental", 5, 2, {"look up": 30.0, "apply": 50.0})
    check = CheckResult("revenue", missing, 0, None, {}, 1.0)
    found = Basics(Settings(Path("data")), {"cores": 2, "load": [0.1]}, check=check)
    found.scenarios.append(Scenario("mixed", 10, (pair,)))
    found.unchanged.append((2.0, 0))
    return found


def test_the_command_writes_what_it_found(monkeypatch, tmp_path):
    monkeypatch.setattr(basics, "run_basics", lambda *_: measured(0))
    out = tmp_path / "basics.json"
    answer = in_process("bench", "basics", "--out", out, "--json").answer
    written = json.loads(out.read_text())
    assert answer == {"ok": True, "bench": written}
    (scenario,) = written["scenarios"]
    assert scenario["ratio"] == {"median": 25.0, "least": 25.0, "greatest": 25.0, "count": 1}
    assert scenario["stages_ms"]["rest"]["median"] == 20.0


def test_the_command_ends_with_1_when_the_view_is_wrong(monkeypatch):
    monkeypatch.setattr(basics, "run_basics", lambda *_: measured(3))
    found = in_process("bench", "basics", "--json")
    assert (found.status, found.answer["code"]) == (1, "VIEW_DIFFERS")
    assert in_process("bench", "basics").status == 1
