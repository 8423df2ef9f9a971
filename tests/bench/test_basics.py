"""The benchmark at a tiny scale: it runs, counts and proves; its times mean nothing here."""

from __future__ import annotations

import json
import shutil

import pytest

from freshview.bench.basics import Settings, run_basics
from tests.cli.run import in_process

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tpchgen-cli") is None, reason="tpchgen-cli is not installed"),
]


def test_basics_measures_pairs_stages_jobs_and_memory(tmp_path):
    found = run_basics(Settings(tmp_path, sf=0.01, repeat=2, sizes=(5, 20)), None)
    summary = found.summary()
    assert found.ok
    assert [(s["kind"], s["rows"]) for s in summary["scenarios"]] == [
        ("inserted", 5),
        ("mixed", 5),
        ("inserted", 20),
        ("mixed", 20),
    ]
    for scenario in summary["scenarios"]:
        assert scenario["refresh_ms"]["count"] == 2
        assert scenario["ratio"]["median"] > 0
        assert {pair["mode"] for pair in scenario["pairs"]} == {"incremental"}
        assert {"read changes", "look up", "evaluate", "apply", "rest"} <= set(
            scenario["stages_ms"]
        )
    assert summary["unchanged"]["jobs"] == 0
    assert set(summary["memory"]) == {"0.001", "0.01"}
    assert all(m["python_mb"] > 0 and m["heap_mb"] > 0 for m in summary["memory"]["0.01"])
    assert not list(tmp_path.glob("run-*"))


def test_the_command_prints_tables_and_writes_json(tmp_path):
    out = tmp_path / "basics.json"
    arguments = ("--sf", "0.02", "--repeat", "1", "--no-memory", "--data", tmp_path, "--out", out)
    found = in_process("bench", "basics", *arguments)
    assert found.status == 0
    assert "1,000 mixed" in found.out
    assert "equal to a recompute" in found.out
    assert max(map(len, found.out.splitlines())) <= 100
    assert json.loads(out.read_text())["ok"] is True
