"""TPC queries as views under STRICT, refreshed after batches and compared with their recompute.

The recompute is Spark's evaluation of the query's text over the tables as they are. Both bags are
compared whole, duplicates included, which is EXCEPT ALL being empty both ways, and so are the types.
Where a query averages integers or takes a deviation, Spark's own result depends on the order of the
rows: there the text is evaluated with exact functions in their place, and how far Spark's own result
is from the exact one is noted beside the view's.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from freshview.errors import FreshviewError
from freshview.runtime.explanation import Explanation
from freshview.runtime.named_tables import session_with
from freshview.runtime.report import FAILED, FULL
from freshview.runtime.warehouse import Warehouse, open_warehouse
from tests.tpc.changes import KEYS, Batches, Key
from tests.tpc.database import DOUBLES, SETTINGS, Database
from tests.tpc.exact import exactly, register_exact
from tests.tpc.relaxed import RELAXED

Row = tuple[object, ...]
Bag = Counter[Row]

TOLERANCE = 1e-12
"""How far a deviation may be from the exact one, relatively: its formula rounds, in Spark's way. All other
values are equal to the last bit."""
AIMED_AFTER = 2
"""After so many batches the next ones aim at the base rows of views that none has changed."""


@dataclass(frozen=True)
class Query:
    """A query as the text of a view, and as published or loosened."""

    kind: str
    number: int
    loosened: bool
    text: str
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"q{self.number}{'_loosened' if self.loosened else ''}"

    @property
    def as_view(self) -> str:
        """The text with a name for each column that Delta takes and that comes once."""
        return f"SELECT * FROM ({self.text}) AS q({', '.join(self.columns)})"


@dataclass
class Kept:
    """What became of one view in all batches."""

    query: Query
    technique: str
    rows: list[int] = field(default_factory=list)
    batches: int = 0
    modes: list[str] = field(default_factory=list)
    effects: int = 0
    """After how many batches the view was another one than before."""
    differences: list[str] = field(default_factory=list)
    own_error: float = 0.0
    """The largest relative error of a double in the view."""
    spark_error: float = 0.0
    """The same of Spark's evaluation of the text."""
    has_doubles: bool = False


def published_and_loosened(family: str, numbers: Iterable[int]) -> list[tuple[int, bool]]:
    """Queries as published, and those that select nothing from a tiny database loosened as well."""
    return [
        (number, loosened)
        for number in numbers
        for loosened in (False, True)
        if not loosened or (family, number) in RELAXED
    ]


def failures(kept: Kept) -> list[str]:
    """What is wrong with a view: a difference, a recompute, or no batch that it noticed."""
    found = list(kept.differences)
    if FULL in kept.modes:
        found.append("recomputed in full")
    if len(kept.modes) != kept.batches:
        found.append(f"refreshed {len(kept.modes)} times in {kept.batches} batches")
    if not kept.effects and must_change(kept.query):
        found.append("no batch changed it")
    return found


def must_change(query: Query) -> bool:
    """Whether changes have to reach a view: not of a query that is also there loosened."""
    family = query.kind.removesuffix(DOUBLES)
    return query.loosened or (family, query.number) not in RELAXED


def queries(database: Database, numbers: Iterable[tuple[int, bool]]) -> list[Query]:
    """Queries by their number, as published or loosened."""
    found = []
    for number, loosened in numbers:
        text = database.query(number) if loosened else database.strict_query(number)
        columns = unique_names(database.session.sql(text).columns)
        found.append(Query(database.kind, number, loosened, text, columns))
    return found


def unique_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Names without what Delta refuses, each once."""
    taken: Counter[str] = Counter()
    names = []
    for column in columns:
        name = re.sub(r"\W+", "_", column.lower()).strip("_")
        taken[name] += 1
        names.append(name if taken[name] == 1 else f"{name}_{taken[name]}")
    return tuple(names)


class Keeping:
    """A warehouse with one view per query, and the batches that change its tables."""

    def __init__(
        self,
        database: Database,
        chosen: Sequence[Query],
        folder: Path,
        spark: SparkSession,
        seed: int,
    ) -> None:
        self.kind = database.kind
        self._family = database.family
        self.spark = spark
        self.warehouse = open_warehouse(folder, spark)
        tables = {name: rows.toArrow() for name, rows in database.tables.items()}
        for name, rows in tables.items():
            self.warehouse.create_table(name, rows)
        self.batches = Batches(database.family, tables, seed)
        self.kept: dict[str, Kept] = {}
        self._last: dict[str, Bag] = {}
        for query in chosen:
            report = self.warehouse.create_view(query.name, query.as_view, policy="STRICT")
            self.kept[query.name] = Kept(query, report[query.name].technique)
        self.compare("created")

    def step(self, number: int) -> None:
        """One batch over all tables, one refresh of all views, and every view compared."""
        aimed = self._aimed() if number > AIMED_AFTER else {}
        self.warehouse.apply(self.batches.next(aimed))
        # A view that fails has its error in the log; the others go on.
        with suppress(FreshviewError):
            self.warehouse.refresh()
        for kept in self.kept.values():
            kept.batches += 1
        self.compare(f"batch {number}")

    def _aimed(self) -> dict[str, set[Key]]:
        """Of each view that no batch has changed, a row of every table that it comes from."""
        found: dict[str, set[Key]] = defaultdict(set)
        for name, kept in self.kept.items():
            if kept.effects or not kept.rows[-1] or not must_change(kept.query):
                continue
            for source in self.warehouse.why(name).tables:
                row = source.rows.first()
                if row is not None:
                    key = KEYS[self._family][source.table]
                    found[source.table].add(tuple(row[column] for column in key))
        return found

    def read_log(self) -> None:
        """Note how each view was refreshed after its creation, and what failed."""
        for entry in self.warehouse.parts.log.read().sort_by("time").to_pylist():
            kept = self.kept[entry["view"]]
            if entry["mode"] == FAILED:
                kept.differences.append(f"failed: {entry['reason']}: {entry['why']}")
            elif entry["reason"] != "CREATED":
                kept.modes.append(entry["mode"])

    def explain(self) -> None:
        """Note each view whose EXPLAIN speaks of a full recompute without a reason and what to do."""
        for name, kept in self.kept.items():
            for policy in ("STRICT", "AUTO", "FULL"):
                self.warehouse.set_policy(name, policy)
                explanation = self.warehouse.explain(name)
                is_full = speaks_of_full(explanation)
                if is_full and not is_explained(explanation):
                    kept.differences.append(f"explain says full, and not why: {explanation}")
                if is_full != (policy == "FULL") and policy != "AUTO":
                    kept.differences.append(f"explain under {policy}: {explanation}")
            self.warehouse.set_policy(name, "STRICT")

    def compare(self, when: str) -> None:
        session = recomputing(self.spark, self.warehouse, self._read())
        for name, kept in self.kept.items():
            try:
                self._compare(name, kept, session, when)
            except Exception as problem:
                kept.differences.append(f"{when}: {type(problem).__name__}: {str(problem)[:300]}")

    def _read(self) -> set[str]:
        return {t for name in self.kept for t in self.warehouse.catalog.view(name).sources}

    def _compare(self, name: str, kept: Kept, session: SparkSession, when: str) -> None:
        view = self.warehouse.read(name)
        plain = session.sql(kept.query.text)
        found = bag(view)
        if types(view) != types(plain):
            kept.differences.append(f"{when}: types {types(view)} for {types(plain)}")
        exact_text = exactly(self.kind, kept.query.text)
        expected = bag(plain if exact_text is None else session.sql(exact_text))
        if exact_text is not None:
            kept.has_doubles = True
            kept.own_error = max(kept.own_error, distance(found, expected))
            kept.spark_error = max(kept.spark_error, distance(bag(plain), expected))
        if not equal(found, expected, TOLERANCE if "stddev" in kept.query.text.lower() else 0.0):
            missing, extra = expected - found, found - expected
            told = f"{missing.total()} missing, {extra.total()} extra: {sample(missing)}, {sample(extra)}"
            kept.differences.append(f"{when}: {told}")
        kept.effects += found != self._last.get(name, found)
        kept.rows.append(found.total())
        self._last[name] = found


def speaks_of_full(explanation: Explanation) -> bool:
    said = (explanation.technique, *explanation.stages)
    return any("full recompute" in line or "in full" in line for line in said)


def is_explained(explanation: Explanation) -> bool:
    """Whether it has a reason with its code, and a rewrite of the query or a statement that helps."""
    reason = explanation.reason
    if reason is None:
        return False
    return explanation.suggestion is not None or "ALTER MATERIALIZED VIEW" in reason.do


def recomputing(spark: SparkSession, warehouse: Warehouse, names: Iterable[str]) -> SparkSession:
    """A session in which the tables are as they are now, with the exact functions."""
    paths = {name: warehouse.catalog.path(warehouse.catalog.get(name)) for name in names}
    frames = {name: spark.read.format("delta").load(path) for name, path in paths.items()}
    session = session_with(spark, frames, SETTINGS)
    register_exact(session)
    return session


def bag(rows: DataFrame) -> Bag:
    return Counter(tuple(row.values()) for row in _named_apart(rows).toArrow().to_pylist())


def _named_apart(rows: DataFrame) -> DataFrame:
    return rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))


def types(rows: DataFrame) -> list[str]:
    return [f.dataType.simpleString() for f in rows.schema.fields]


def equal(found: Bag, expected: Bag, tolerance: float) -> bool:
    """Equal as bags; a double may be off by the tolerance, and then its row must still have one partner."""
    return found == expected or (
        found.total() == expected.total() and distance(found, expected) <= tolerance
    )


def distance(found: Bag, expected: Bag) -> float:
    """The largest relative difference of two doubles at the same place; ∞ if anything else differs."""
    if found.total() != expected.total():
        return math.inf
    pairs = zip(_sorted(found), _sorted(expected), strict=True)
    return max(
        (_apart(a, b) for one, other in pairs for a, b in zip(one, other, strict=True)), default=0.0
    )


def _apart(a: object, b: object) -> float:
    if a == b:
        return 0.0
    if not (isinstance(a, float) and isinstance(b, float)):
        return math.inf
    if math.isnan(a) or math.isnan(b):
        return 0.0 if math.isnan(a) and math.isnan(b) else math.inf
    return abs(a - b) / abs(b) if b and math.isfinite(a) and math.isfinite(b) else math.inf


def _sorted(rows: Bag) -> list[Row]:
    """By everything but the doubles first, so that rows which differ in their last digits stay side by side."""
    return sorted(
        rows.elements(),
        key=lambda row: (
            [repr(v) for v in row if not isinstance(v, float)],
            [v for v in row if isinstance(v, float)],
        ),
    )


def sample(rows: Mapping[Row, int]) -> str:
    return str(sorted(rows, key=repr)[:2])[:300]
