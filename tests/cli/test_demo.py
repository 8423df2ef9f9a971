"""The demo at a tiny scale: every kind of refresh happens, and every view is right in the end."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from freshview.cli.answer import WIDTH, plain
from freshview.demo import run
from freshview.demo.run import Demo, run_demo
from freshview.runtime.check import CheckResult
from tests.cli.run import in_process

VIEWS = {"revenue", "open_lines", "nation_revenue", "big_orders"}


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """The findings of one demo, what it printed, and where its warehouse stayed."""
    shop = tmp_path_factory.mktemp("demo") / "shop"
    printed = io.StringIO()
    found = run_demo(shop, sf=0.002, seed=1, console=Console(file=printed, width=WIDTH))
    return found, printed.getvalue(), shop


@pytest.mark.spark
def test_every_kind_of_refresh_happens(ran):
    demo = json.loads(json.dumps(ran[0].summary(), default=plain))
    modes = [{v["view"]: v["mode"] for v in step["report"]["views"]} for step in demo["steps"]]
    assert len(modes) == 5
    assert all(set(step) == VIEWS for step in modes)
    assert set(modes[-1].values()) == {"unchanged"}
    assert modes[0]["big_orders"] == "unchanged"
    assert modes[2]["revenue"] == "no effect"
    assert {"incremental"} <= {mode for step in modes for mode in step.values()}
    for step, mode in zip(demo["steps"], modes, strict=True):
        assert set(step["recompute_ms"]) == {v for v in VIEWS if mode[v] in ("incremental", "full")}


@pytest.mark.spark
def test_every_view_is_right_in_the_end(ran):
    found, _, shop = ran
    assert found.ok
    assert {check.view for check in found.checks} == VIEWS
    status = in_process("status", "-w", shop, "--json").answer
    assert {view["view"] for view in status["views"] if view["fresh"]} == VIEWS


@pytest.mark.spark
def test_it_prints_narrow_plain_tables(ran):
    text = ran[1]
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\x1b" not in text
    assert text.count(" equal ") == len(VIEWS)
    for title in ("1. 10 lines inserted", "5. nothing", "recompute ms", "rows missing"):
        assert title in text


def demo_with(monkeypatch, missing):
    check = CheckResult("revenue", missing, 0, None, {"orders": 1}, 5.0)
    monkeypatch.setattr(run, "run_demo", lambda *_, **__: Demo(checks=[check]))


def test_the_command_ends_with_0_when_all_views_are_right(monkeypatch):
    demo_with(monkeypatch, missing=0)
    assert in_process("demo").status == 0
    answer = in_process("demo", "--json").answer
    assert (answer["ok"], answer["demo"]["ok"]) == (True, True)


def test_the_command_ends_with_1_when_a_view_is_wrong(monkeypatch):
    demo_with(monkeypatch, missing=1)
    assert in_process("demo").status == 1
    found = in_process("demo", "--json")
    assert found.status == 1
    assert (found.answer["ok"], found.answer["code"]) == (False, "VIEW_DIFFERS")
    assert found.answer["demo"]["checks"][0]["missing"] == 1
