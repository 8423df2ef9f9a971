"""The demo at a tiny scale: every kind of refresh happens, and every view is right in the end."""

from __future__ import annotations

import shutil

import pytest

from tests.cli.run import in_process

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.skipif(shutil.which("tpchgen-cli") is None, reason="tpchgen-cli is not installed"),
]

VIEWS = {"revenue", "open_lines", "nation_revenue", "big_orders"}


def test_demo_refreshes_and_proves_its_views(tmp_path):
    found = in_process("demo", "--sf", "0.002", "--path", tmp_path / "shop", "--json")
    assert found.status == 0
    demo = found.answer["demo"]
    assert {check["view"] for check in demo["checks"]} == VIEWS
    assert all(check["missing"] == check["extra"] == 0 for check in demo["checks"])
    modes = [{v["view"]: v["mode"] for v in step["report"]["views"]} for step in demo["steps"]]
    assert len(modes) == 7
    assert all(set(step) == VIEWS for step in modes)
    assert set(modes[-1].values()) == {"unchanged"}
    assert modes[0]["big_orders"] == "unchanged"
    assert modes[4]["revenue"] == "no effect"
    for step, mode in zip(demo["steps"], modes, strict=True):
        assert set(step["recompute_ms"]) == {v for v in VIEWS if mode[v] in ("incremental", "full")}
    assert in_process("check", "-w", tmp_path / "shop").status == 0


def test_demo_prints_narrow_plain_tables():
    found = in_process("demo", "--sf", "0.002")
    assert found.status == 0
    assert max(map(len, found.out.splitlines())) <= 100
    assert "\x1b" not in found.out
    assert found.out.count("equal") == len(VIEWS)
    for title in ("1. 10 lines inserted", "7. nothing", "recompute ms", "rows missing"):
        assert title in found.out


def test_demo_ends_with_1_when_a_view_is_wrong(monkeypatch):
    from dataclasses import replace

    from freshview.runtime.warehouse import Warehouse

    right = Warehouse.check

    def wrong(self, name, **options):
        result = right(self, name, **options)
        return replace(result, missing=1) if name == "revenue" else result

    monkeypatch.setattr(Warehouse, "check", wrong)
    found = in_process("demo", "--sf", "0.002")
    assert found.status == 1
    assert "DIFFERS" in found.out
