"""Techniques asked for by name: each keeps the view, says so, and can be exchanged for another."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import freshview as fv
from freshview.errors import TechniqueNotApplicable, UnknownTechnique
from freshview.runtime.report import FULL, INCREMENTAL
from freshview.runtime.warehouse import Warehouse, open_warehouse
from tests.integration.random_views import SCHEMAS, random_rows
from tests.integration.test_random_views import change
from tests.unchanged import fingerprint

pytestmark = pytest.mark.spark

VIEWS = {
    "joined": "SELECT r.id AS id, s.w AS w FROM r JOIN s ON r.k = s.k",
    "outer": "SELECT r.id AS id, s.w AS w FROM r FULL JOIN s ON r.k = s.k",
    "grouped": "SELECT g, count(*) AS n, max(v) AS m FROM r GROUP BY g",
    "nested": "SELECT q.g, q.n, s.w FROM (SELECT g, k, count(*) AS n FROM r GROUP BY g, k) q"
    " JOIN s ON q.k = s.k",
}
APPLICABLE = {
    "joined": ("counting", "delta"),
    "outer": ("delta", "change_table"),
    "grouped": ("counting", "delta", "change_table", "group_recompute"),
    "nested": ("delta", "change_table"),
}
TECHNIQUES = ("counting", "delta", "change_table", "group_recompute")


def started(root: Path, spark: SparkSession) -> tuple[Warehouse, random.Random]:
    dice = random.Random(11)
    warehouse = open_warehouse(root, spark)
    for name in SCHEMAS:
        warehouse.create_table(name, random_rows(name, dice, 12))
    return warehouse, dice


def test_a_technique_without_a_rule_is_refused_and_nothing_is_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse, _ = started(tmp_path, spark)
    before = fingerprint(warehouse.root)
    for view, techniques in APPLICABLE.items():
        for technique in set(TECHNIQUES) - set(techniques):
            with pytest.raises(TechniqueNotApplicable) as refused:
                warehouse.create_view("v", VIEWS[view], technique=technique)
            assert refused.value.parameters["technique"] == technique
            assert refused.value.parameters["reason"].startswith("NOT_BY_")
    with pytest.raises(UnknownTechnique):
        warehouse.create_view("v", VIEWS["joined"], technique="magic")
    assert fingerprint(warehouse.root) == before


def test_another_technique_takes_over_with_one_recompute(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse, dice = started(tmp_path, spark)
    warehouse.sql(
        "CREATE MATERIALIZED VIEW v POLICY INCREMENTAL OPTIONS (technique = change_table) AS "
        + VIEWS["outer"]
    )
    assert warehouse.catalog.view("v").wanted == "change_table"
    warehouse.sql("ALTER MATERIALIZED VIEW v SET OPTIONS (technique = 'delta')")
    change(warehouse, dice)
    assert "STORED_OTHERWISE" in str(warehouse.explain("v"))
    report = warehouse.refresh()["v"]
    assert (report.mode, report.reason) == (FULL, "STORED_OTHERWISE")
    assert warehouse.check("v").ok
    change(warehouse, dice)
    report = warehouse.refresh()["v"]
    assert (report.mode, report.technique) == (INCREMENTAL, "delta")
    assert warehouse.check("v").ok
    warehouse.set_technique("v", "auto")
    assert warehouse.check("v", repair_groups=True).ok
    with pytest.raises(TechniqueNotApplicable):
        warehouse.set_technique("v", "group_recompute")
    assert warehouse.catalog.view("v").wanted == "auto"


def test_a_view_function_can_have_a_technique(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, dice = started(tmp_path, spark)

    @warehouse.view(technique="delta", policy="STRICT")
    def highest(wh: fv.Warehouse) -> object:
        return wh.table("r").groupBy("g").agg({"v": "max"}).toDF("g", "m")

    change(warehouse, dice)
    report = warehouse.refresh()["highest"]
    assert (report.mode, report.technique) == (INCREMENTAL, "delta")
    assert warehouse.check("highest").ok
