"""Random queries as views under STRICT, refreshed after batches: their recompute, and DuckDB's too."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from freshview.errors import FreshviewError, TechniqueNotApplicable
from freshview.runtime.named_tables import session_with
from freshview.runtime.report import FAILED, FULL
from freshview.runtime.warehouse import Warehouse, open_warehouse
from tests.integration.test_random_views import NOTHING_LOCAL, NOTHING_NATIVE
from tests.random_queries.data import ROWS, SCHEMAS, batch, rows
from tests.random_queries.generator import Relation, drawn
from tests.tpc.kept import types

DEPTH = 4
BATCHES = 3
PORTABLE = 0.7
"""How many of the queries are read by DuckDB as well."""
TECHNIQUES = ("auto", "auto", "delta", "change_table", "group_recompute")
THROUGH_SPARK = 0.15
"""How many of the warehouses do everything through Spark; the others use the native library."""
PLAIN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
}

Bag = Counter[tuple[object, ...]]


@dataclass
class Kept:
    """A query as a view, and what became of it."""

    seed: int
    query: Relation
    portable: bool
    technique: str = ""
    modes: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    by_duckdb: int = 0
    effects: int = 0
    wrong: list[str] = field(default_factory=list)
    shown: Bag = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return f"q{self.seed}"


def query_of(seed: int) -> Kept:
    """The query of a seed, for both dialects or for Spark only."""
    portable = random.Random(seed).random() < PORTABLE
    return Kept(seed, drawn(seed, DEPTH, spark_only=not portable), portable)


class Keeping:
    """A warehouse whose views are the queries of some seeds; its rows and batches have a seed of their own."""

    def __init__(self, seed: int, seeds: Sequence[int], folder: Path, spark: SparkSession) -> None:
        self.spark = spark
        self.dice = random.Random(seed)
        self.warehouse = open_warehouse(folder, spark)
        if self.dice.random() < THROUGH_SPARK:
            self.warehouse = Warehouse(self.warehouse.root, spark, NOTHING_LOCAL, NOTHING_NATIVE)
        for table in SCHEMAS:
            self.warehouse.create_table(table, rows(table, self.dice, ROWS))
        self.kept = [query_of(seed) for seed in seeds]
        for kept in self.kept:
            self._create(kept)

    def _create(self, kept: Kept) -> None:
        """By a technique that its seed names; by the best one if that one has no rule."""
        wanted = random.Random(kept.seed).choice(TECHNIQUES)
        try:
            try:
                self.warehouse.create_view(
                    kept.name, kept.query.text, policy="STRICT", technique=wanted
                )
            except TechniqueNotApplicable:
                self.warehouse.create_view(kept.name, kept.query.text, policy="STRICT")
        except Exception as problem:
            kept.wrong.append(f"created: {type(problem).__name__}: {str(problem)[:500]}")

    def run(self) -> list[Kept]:
        """Compare what was made, then after each batch, and after every table is emptied."""
        self.compare("created")
        for number in range(1, BATCHES + 1):
            self.warehouse.apply(batch(self.dice))
            self._refresh_and_compare(f"batch {number}")
        for table in SCHEMAS:
            path = self.warehouse.root / "tables" / table
            self.spark.sql(f"DELETE FROM delta.`{path}`")
        self._refresh_and_compare("emptied")
        return self.kept

    def _refresh_and_compare(self, when: str) -> None:
        # A view that fails has its error in its difference; the others go on.
        with suppress(FreshviewError):
            self.warehouse.refresh()
        self.compare(when)

    def compare(self, when: str) -> None:
        tables = {name: self.warehouse.table(name).toArrow() for name in SCHEMAS}
        frames = {
            name: self.spark.createDataFrame(held).coalesce(1) for name, held in tables.items()
        }
        session = session_with(self.spark, frames, PLAIN)
        for kept in self.kept:
            if not kept.wrong:
                try:
                    self._compare(kept, session, tables, when)
                except Exception as problem:
                    kept.wrong.append(f"{when}: {type(problem).__name__}: {str(problem)[:500]}")

    def _compare(
        self, kept: Kept, session: SparkSession, tables: dict[str, pa.Table], when: str
    ) -> None:
        view, plain = self.warehouse.read(kept.name), session.sql(kept.query.text)
        found, expected = bag(view.toArrow()), bag(plain.toArrow())
        if types(view) != types(plain):
            kept.wrong.append(f"{when}: types {types(view)} for {types(plain)}")
        kept.compared += 1
        if found != expected:
            kept.wrong.append(f"{when}: {told(found, expected)}")
        if kept.portable:
            kept.by_duckdb += 1
            independent = by_duckdb(kept.query.text, tables)
            if found != independent:
                kept.wrong.append(f"{when}, beside DuckDB: {told(found, independent)}")
        if when != "created":
            kept.effects += found != kept.shown
        kept.shown = found

    def log(self) -> None:
        """Note how each view was refreshed; STRICT lets none be recomputed after its creation."""
        by_name = {kept.name: kept for kept in self.kept}
        for entry in self.warehouse.parts.log.read().sort_by("time").to_pylist():
            kept = by_name[entry["view"]]
            kept.technique = entry["technique"]
            kept.modes[entry["mode"]] += 1
            if entry["mode"] == FAILED:
                kept.wrong.append(f"failed: {entry['reason']}: {entry['why']}")
        for kept in self.kept:
            if kept.modes[FULL] > 1:
                kept.wrong.append(f"recomputed: {kept.modes}")


def by_duckdb(text: str, tables: dict[str, pa.Table]) -> Bag:
    with duckdb.connect() as other:
        for name, held in tables.items():
            other.register(name, held)
        return Counter(map(normal, other.execute(text).fetchall()))


def bag(held: pa.Table) -> Bag:
    columns = [column.to_pylist() for column in held.columns]
    return Counter(map(normal, zip(*columns, strict=True)))


def normal(found: Sequence[object]) -> tuple[object, ...]:
    """A row in which NaN is equal to NaN."""
    return tuple(
        "NaN" if isinstance(value, float) and math.isnan(value) else value for value in found
    )


def told(found: Bag, expected: Bag) -> str:
    missing, extra = expected - found, found - expected
    some = {"missing": sorted(missing, key=repr)[:3], "extra": sorted(extra, key=repr)[:3]}
    return f"{missing.total()} missing, {extra.total()} extra of {expected.total()}: {some}"
