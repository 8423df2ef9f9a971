"""Every technique × operator pair of the dispatch table on Spark and Delta, with three views at least.

All views are made once, over the same tables, and refreshed after the same batches. After each batch
every view must be what Spark evaluates its definition to over the tables as they are, as a bag.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from freshview.algebra.relations import Aggregate, OuterJoin, Relation
from freshview.algebra.schema import EXTENT_COUNT_NAME
from freshview.algebra.traverse import children, walk
from freshview.change_table.extent import AggregatePart, Part, is_structured
from freshview.errors import FreshviewError
from freshview.planner.dispatch import TABLE, TECHNIQUES, Rule, operator_of
from freshview.planner.strategy import Strategy, Technique
from freshview.planner.techniques import strategy
from freshview.runtime.named_tables import session_with
from freshview.runtime.report import ADVANCED, INCREMENTAL
from freshview.runtime.table_changes import TableChanges
from freshview.runtime.warehouse import Warehouse, open_warehouse
from freshview.storage.native import NativeStorage
from tests.integration.pair_views import VIEWS
from tests.integration.random_views import KEYS, SCHEMAS, Row, random_row, random_rows

pytestmark = pytest.mark.spark

CASES_MIN = 3
PAIRS = [
    (operator, technique)
    for operator, row in TABLE.items()
    for technique in TECHNIQUES
    if isinstance(row[technique], Rule)
]
TEXTS = tuple(VIEWS)
SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
"""Settings with which Spark evaluates a definition over a few rows quickly."""
OTHER_KEYS = (("r", "id", 20), ("s", "h", 1))
"""Tables of which rows get other keys, those with more than this in a column of the key."""

Bag = Counter[tuple[object, ...]]
Tables = Mapping[str, pa.Table]


def change_tables_meet(kept: Strategy) -> set[str | None]:
    """The operators at which change tables of a view start, and those above that they pass.

    Below the first aggregate or outer join there are deltas only; above a singularity point too.
    """
    met: set[str | None] = {"scan"}
    if kept.aggregate is not None:
        met.add(operator_of(kept.aggregate))
    made = kept.row_layout or kept.composition
    if made is None:
        return met
    extent = made.extent
    parts = iter(extent.parts)
    top = kept.relation if kept.aggregate is None else kept.aggregate.child
    _visit(top, parts, {id(p) for p in extent.parts if extent.singularity(p) is None}, met)
    assert next(parts, None) is None
    return met


def _visit(
    node: Relation, parts: Iterator[Part], alive: set[int], met: set[str | None]
) -> tuple[bool, bool]:
    """Whether a part below a node reaches the top of the view, and whether as a change table here."""
    if isinstance(node, Aggregate) or not is_structured(node):
        part = next(parts)
        reaches = id(part) in alive
        as_change_table = reaches and isinstance(part, AggregatePart)
    else:
        below = [_visit(child, parts, alive, met) for child in children(node)]
        reaches = any(one for one, _ in below)
        as_change_table = any(one for _, one in below) or (isinstance(node, OuterJoin) and reaches)
    if as_change_table:
        met.add(operator_of(node))
    return reaches, as_change_table


def operators_met(kept: Strategy, technique: Technique) -> set[str | None]:
    """The operators for which a view that is kept by a technique uses the rule of the pair."""
    match technique:
        case Technique.GROUP_RECOMPUTE:
            top = kept.aggregate if kept.top is None else kept.top.limit
            assert top is not None
            return {operator_of(top)}
        case Technique.CHANGE_TABLE:
            return change_tables_meet(kept)
        case _:
            return {operator_of(node) for node in walk(kept.relation)}


@dataclass(frozen=True, slots=True)
class Case:
    """A text kept by a technique."""

    text: str
    technique: Technique

    @property
    def wanted(self) -> str:
        return self.technique.name.lower()

    @property
    def name(self) -> str:
        return f"v{TEXTS.index(self.text)}_{self.wanted}"


CASES = [Case(text, technique) for text, techniques in VIEWS.items() for technique in techniques]


@pytest.fixture(scope="module")
def planned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Strategy]:
    """How each case is kept, from its definition alone."""
    warehouse = open_warehouse(tmp_path_factory.mktemp("planned"), spark)
    for name, schema in SCHEMAS.items():
        warehouse.create_table(name, schema)
    relations = {text: warehouse._definitions.from_sql("v", text).relation for text in TEXTS}
    return {case: strategy(case.name, relations[case.text], case.technique) for case in CASES}


def cases_of(operator: str, technique: Technique, planned: Mapping[Case, Strategy]) -> list[Case]:
    return [
        case
        for case, kept in planned.items()
        if case.technique is technique and operator in operators_met(kept, technique)
    ]


def test_every_view_can_be_kept_by_what_it_is_asked_for(planned: dict[Case, Strategy]) -> None:
    for case, kept in planned.items():
        assert kept.reason is None, (case, kept.reason)
        counted_groups = case.technique is Technique.COUNTING and kept.aggregate is not None
        shown = Technique.CHANGE_TABLE if counted_groups else case.technique
        assert kept.technique is shown, case


@pytest.mark.parametrize(("operator", "technique"), PAIRS)
def test_every_pair_with_a_rule_has_three_views(
    operator: str, technique: Technique, planned: dict[Case, Strategy]
) -> None:
    assert len(cases_of(operator, technique, planned)) >= CASES_MIN


@dataclass(frozen=True, slots=True)
class Step:
    """The tables after a batch, what the definitions are over them, and what the views are."""

    tables: Tables
    expected: Mapping[str, Bag]
    found: Mapping[Case, Bag]


@dataclass(frozen=True, slots=True)
class Run:
    """All views as they are made, and after each batch; and the log of their refreshes."""

    steps: tuple[Step, ...]
    log: Mapping[str, list[Row]]


def distinct_keys(name: str, rows: pa.Table) -> list[Row]:
    return list({repr(key): key for key in rows.select(KEYS[name]).to_pylist()}.values())


def mixed(name: str, rows: pa.Table, dice: random.Random) -> TableChanges:
    """Inserts, a row of nulls and a duplicate among them, updates of two keys, a delete of one."""
    keys = distinct_keys(name, rows)
    dice.shuffle(keys)
    inserted = [random_row(name, dice) for _ in range(4)]
    inserted += [dict.fromkeys(SCHEMAS[name].names), dice.choice(rows.to_pylist())]
    updated = [random_row(name, dice) | key for key in keys[1:3]]
    return TableChanges(insert=inserted, update=updated, delete=keys[:1], key=KEYS[name])


def emptied(name: str, rows: pa.Table) -> TableChanges:
    return TableChanges(delete=distinct_keys(name, rows), key=KEYS[name])


def contents(warehouse: Warehouse) -> Tables:
    return {name: warehouse.table(name).toArrow() for name in SCHEMAS}


def other_keys(warehouse: Warehouse) -> None:
    """Updates of key columns by another writer."""
    for name, key, highest in OTHER_KEYS:
        table = DeltaTable(warehouse.root / "tables" / name)
        table.update({key: f"{key} + 1", "k": "k - 1"}, predicate=f"{key} > {highest}")


def change(warehouse: Warehouse, number: int, dice: random.Random) -> None:
    """All tables in one transaction: mixed, after keys have changed; then s is emptied; then all."""
    if number == 1:
        other_keys(warehouse)
    gone = {1: (), 2: ("s",), 3: tuple(SCHEMAS)}[number]
    warehouse.apply(
        {
            name: emptied(name, rows) if name in gone else mixed(name, rows, dice)
            for name, rows in contents(warehouse).items()
        }
    )


def definitions(spark: SparkSession, tables: Tables) -> dict[str, Bag]:
    """What Spark evaluates each text to."""
    frames = {name: spark.createDataFrame(rows).coalesce(1) for name, rows in tables.items()}
    session = session_with(spark, frames, SMALL)
    return {text: Counter(map(tuple, session.sql(text).collect())) for text in TEXTS}


def stored(warehouse: Warehouse, view: str) -> Bag:
    """The visible rows of a view, each as often as its count says."""
    entry = warehouse.catalog.view(view)
    path = warehouse.catalog.path(entry)
    storage = NativeStorage()
    bag: Bag = Counter()
    for row in storage.read(path, storage.latest(path)).to_pylist():
        bag[tuple(row[column] for column in entry.columns)] += row.get(EXTENT_COUNT_NAME, 1)
    return bag


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A view that cannot be refreshed is in the log, and stops no other one."""
    dice = random.Random(8)
    warehouse = open_warehouse(tmp_path_factory.mktemp("pairs"), spark)
    for name in SCHEMAS:
        warehouse.create_table(name, random_rows(name, dice, 16))
    for case in CASES:
        warehouse.create_view(case.name, case.text, policy="STRICT", technique=case.wanted)
    steps = []
    for number in range(4):
        if number > 0:
            change(warehouse, number, dice)
            with suppress(FreshviewError):
                warehouse.refresh()
        tables = contents(warehouse)
        found = {case: stored(warehouse, case.name) for case in CASES}
        steps.append(Step(tables, definitions(spark, tables), found))
    log: dict[str, list[Row]] = {case.name: [] for case in CASES}
    for row in warehouse.parts.log.read().sort_by("time").to_pylist():
        log[row["view"]].append(row)
    return Run(tuple(steps), log)


@pytest.mark.parametrize(("operator", "technique"), PAIRS)
def test_every_pair_with_a_rule_gives_the_recompute(
    operator: str, technique: Technique, planned: dict[Case, Strategy], run: Run
) -> None:
    for case in cases_of(operator, technique, planned):
        _, *refreshes = run.log[case.name]
        modes = [row["mode"] for row in refreshes]
        assert set(modes) <= {INCREMENTAL, ADVANCED}, (case, refreshes)
        assert modes.count(INCREMENTAL) >= 2, case
        assert {row["technique"] for row in refreshes} == {planned[case].technique.value}
        for number, step in enumerate(run.steps):
            found, expected = step.found[case], step.expected[case.text]
            assert found == expected, (case, number, found - expected, expected - found)


def test_the_batches_have_the_edges(run: Run) -> None:
    made, first, second, last = (
        {name: Counter(map(repr, rows.to_pylist())) for name, rows in step.tables.items()}
        for step in run.steps
    )
    for before, after in pairwise((made, first, second, last)):
        assert sum(before[name] != after[name] for name in SCHEMAS) >= 2
    assert all(made[name] and first[name] for name in SCHEMAS)
    assert [name for name in SCHEMAS if not second[name]] == ["s"]
    assert not any(last.values())
    for name, schema in SCHEMAS.items():
        nulls = repr(dict.fromkeys(schema.names))
        assert first[name][nulls] > made[name][nulls]
        assert max(first[name].values()) > 1
        assert all(column.null_count for column in run.steps[0].tables[name].columns)
    for name, key, highest in OTHER_KEYS:
        assert pc.max(run.steps[0].tables[name][key]).as_py() > highest
