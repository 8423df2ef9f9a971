"""Row provenance: the base rows that rows of a view come from, at the versions it was computed from.

The rows are evaluated as a refresh evaluates its steps: the planner's bounds lead from the keys to the
rows of the tables that can matter, storage looks these up, and Spark evaluates over them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)
from pyspark.sql.types import StructType

from freshview.algebra.clock import is_clock
from freshview.algebra.expressions import TRUE, Column, is_null
from freshview.algebra.relations import (
    Aggregate,
    Given,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    Values,
    renaming,
)
from freshview.algebra.schema import Attribute, Numbering, quoted
from freshview.errors import (
    DefinitionChanged,
    HistoryLost,
    LineageLost,
    NoSuchRow,
    NotFresh,
    TooManyRows,
)
from freshview.lineage.absence_text import absence_text, compared
from freshview.lineage.asked import Absent, is_comparable
from freshview.lineage.base_rows import base_rows
from freshview.lineage.identity import identifying
from freshview.lineage.levels import Levels, levels
from freshview.lineage.trace import Contribution, Trace, trace
from freshview.planner.lookups import LookUp, LookupPlanner
from freshview.planner.lower_relations import TableLeaf
from freshview.planner.plan import Limits
from freshview.planner.small_plans import Bound
from freshview.runtime.cancellation import check
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.check import check_readable
from freshview.runtime.clock import clock_rows
from freshview.runtime.commit import Consumed, consumed_of
from freshview.runtime.evaluation import frame_of
from freshview.runtime.fetching import rows_that_fit
from freshview.runtime.incremental import row_count
from freshview.runtime.parts import Parts
from freshview.runtime.probing import is_idle, read_by, ways
from freshview.runtime.recompute_reasons import is_redefined
from freshview.runtime.row_keys import key_columns, key_rows
from freshview.runtime.spark_failures import spark_failures
from freshview.storage.interface import Rows, picked

_GONE = "FAILED_READ_FILE"
FEW = 10_000
"""With at most so many rows a key is taken, however many another one would find."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of one occurrence of a table: each distinct one once, with its number as ``__copies``."""

    table: str
    """Its name; of a clock the function, such as ``current_date() in UTC``."""
    version: int
    via: tuple[str, ...]
    """The views between the view that was asked about and the table."""
    rows: DataFrame
    count: int
    """How many rows there are, all copies counted."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The rows of a view that have a key, the base rows they come from, and what is missing for them."""

    view: TableRows
    tables: tuple[TableRows, ...]
    absent: tuple[str, ...]
    """Why rows are padded or pass a NOT EXISTS, such as ``no row of orders has cust = 7``."""
    absent_count: int
    """How many of these there are; ``absent`` has the first ones."""


def why(
    parts: Parts, limits: Limits, entry: ViewEntry, key: Mapping[str, object], limit: int
) -> Provenance:
    """The lineage of the rows of a view that have a key, at the versions of its last refresh.

    Of what is missing at most ``limit`` sentences are made.
    """
    version = parts.sources.latest(entry.name)
    with spark_failures(entry.name):
        tracing = _Tracing(parts, limits, limit)
        found, rows = tracing.rows_with(entry, version, key)
        tracing.view(entry, version, rows, ())
    return Provenance(found, tuple(tracing.tables), tuple(tracing.absent), tracing.absent_count)


@dataclass(slots=True)
class _Tracing:
    """Goes down from a view to base tables, through the definitions of the views between."""

    parts: Parts
    limits: Limits
    limit: int
    tables: list[TableRows] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    absent_count: int = 0

    def rows_with(
        self, entry: ViewEntry, version: int, key: Mapping[str, object]
    ) -> tuple[TableRows, Rows]:
        """The rows of the view that have the key, as they are stored."""
        types = self._types(entry.name, version)
        new = Numbering(0)
        visible = [new.attribute(name, type) for name, type in types.items()]
        columns = key_columns(entry.name, visible, key)
        steps = _Steps(self.parts, self.limits, entry, {entry.name: version})
        given: Relation = Values((), ((),))
        if columns:
            given = Given("key", tuple(new.attribute(a.name, a.type) for a in columns))
            values = tuple(key.values())
            steps.leaves[given] = key_rows(self.parts.spark(), entry.name, columns, values)
        wanted = base_rows(Contribution(Scan(entry.name, columns), given), types, new)
        for column, value in zip(columns, key.values(), strict=True):
            if value is None and not is_comparable(column):
                wanted = Select(wanted, is_null(Column(column)))
        found, rows = self._table_rows(steps, wanted, entry.name, version, ())
        if not found.count:
            text = ", ".join(f"{column} = {_text(value)}" for column, value in key.items())
            raise NoSuchRow(name=entry.name, key=text or "any key", version=version)
        return found, rows

    def view(self, entry: ViewEntry, version: int, rows: Rows, via: tuple[str, ...]) -> None:
        """Trace rows of a view as it was at one of its versions."""
        consumed = _consumed_at(self.parts, entry, version)
        with _versions_there(self.parts, entry, consumed):
            check_readable(self.parts, consumed)
            _check_definition(self.parts, entry, consumed)
            relation = self.parts.strategy(entry, consumed.sources).relation
            found = trace(relation, identifying(relation))
            versions = {name: source.version for name, source in consumed.sources.items()}
            steps = _Steps(self.parts, self.limits, entry, versions)
            self._follow(found, rows, steps, via)

    def _follow(self, found: Trace, rows: Rows, steps: _Steps, via: tuple[str, ...]) -> None:
        """Evaluate a lineage from the rows that it is sought for, and go on in views."""
        steps.begin(found, rows)
        for contribution in found.contributions:
            self._contribution(contribution, found, steps, via)
        for absent in found.absences:
            self._absence(absent, found, steps)
        for repeated in found.recursions:
            below = levels(repeated, found.new)
            self._follow(below.trace, *_all_levels(below, steps), via)

    def _contribution(
        self, found: Contribution, whole: Trace, steps: _Steps, via: tuple[str, ...]
    ) -> None:
        """The rows of a base table; those of a view are traced further."""
        table = found.scan.table
        version = steps.versions[table]
        wanted = base_rows(found, self._types(table, version), whole.new)
        shown, rows = self._table_rows(steps, wanted, table, version, via)
        entry = None if is_clock(table) else self.parts.catalog.get(table)
        if not isinstance(entry, ViewEntry):
            self.tables.append(shown)
        elif shown.count:
            self.view(entry, version, rows, (*via, table))

    def _absence(self, absent: Absent, whole: Trace, steps: _Steps) -> None:
        """A sentence for each row that has no partner, by the columns that decide about it."""
        columns = compared(absent)
        named = tuple(whole.new.attribute(f"v{place}", a.type) for place, a in enumerate(columns))
        there = whole.new.attribute("there", "boolean")
        outputs = (*renaming(named, columns), Output(there, TRUE))
        rows: Relation = Project(absent.rows, outputs)
        if all(map(is_comparable, columns)):
            rows = Aggregate(rows, rows.attributes, ())
        found = steps.evaluated(rows)
        frame = frame_of(self.parts.spark(), rows.attributes, found)
        self.absent_count += row_count(found, None)
        ordered = frame.orderBy(*[a.name for a in rows.attributes if _has_order(a)])
        texts = ordered.select(*[F.col(a.name).cast("string") for a in named])
        for row in texts.take(max(self.limit - len(self.absent), 0)):
            values = dict(zip(columns, row, strict=True))
            self.absent.append(absence_text(absent, values))

    def _table_rows(
        self, steps: _Steps, wanted: Relation, table: str, version: int, via: tuple[str, ...]
    ) -> tuple[TableRows, Rows]:
        rows = steps.evaluated(wanted)
        frame = frame_of(self.parts.spark(), wanted.attributes, rows)
        ordered = [quoted(a.name) for a in wanted.attributes if _has_order(a)]
        return TableRows(table, version, via, frame.orderBy(*ordered), _copies(rows)), rows

    def _types(self, name: str, version: int) -> dict[str, str]:
        """The columns of a table or view with their types."""
        state = self.parts.sources.state(name, version)
        schema = StructType.fromJson(json.loads(state.schema_json))
        entry = None if is_clock(name) else self.parts.catalog.get(name)
        names = entry.columns if isinstance(entry, ViewEntry) else schema.names
        return {column: schema[column].dataType.simpleString() for column in names}


def _all_levels(below: Levels, steps: _Steps) -> tuple[Rows, _Steps]:
    """The sought rows of a recursion with all that they come from, and the steps to follow these."""
    everything = steps.evaluated(below.everything)
    read: dict[TableLeaf, Rows] = dict.fromkeys(below.leaves, everything)
    rows = seen = steps.evaluated(below.first)
    while below.further is not None:
        level = steps.beside(read)
        level.begin(below.trace, rows)
        level.leaves[below.seen] = seen
        rows = level.evaluated(below.further)
        if not row_count(rows, 0):
            break
        seen = level.together(below.seen, seen, rows)
    return seen, steps.beside(read)


class _Steps:
    """The evaluations for one occurrence of a view, over versions of what it reads."""

    def __init__(
        self, parts: Parts, limits: Limits, entry: ViewEntry, versions: Mapping[str, int]
    ) -> None:
        self.versions = versions
        self.leaves: dict[TableLeaf, Rows] = {}
        self._parts = parts
        self._entry = entry
        self._limits = limits
        self._bound = Bound(limits.delta_rows, limits.delta_bytes)
        self._planner = LookupPlanner(stored="")

    def beside(self, leaves: Mapping[TableLeaf, Rows]) -> _Steps:
        """Further steps over the same versions, which know nothing but these rows."""
        other = _Steps(self._parts, self._limits, self._entry, self.versions)
        other.leaves.update(leaves)
        return other

    def begin(self, found: Trace, rows: Rows) -> None:
        """Evaluate the steps of a lineage from the rows that it is sought for."""
        if found.keys is not None:
            self.leaves[found.keys] = picked(rows, [a.name for a in found.keys.attributes])
        for step in found.steps:
            self.leaves[step.leaf] = self.evaluated(step.relation)

    def together(self, leaf: Given, some: Rows, others: Rows) -> Rows:
        """Rows of a leaf and more of them."""
        if isinstance(some, pa.Table) and isinstance(others, pa.Table):
            return pa.concat_tables([some, others.cast(some.schema)])
        spark = self._parts.spark()
        frames = [frame_of(spark, leaf.attributes, rows) for rows in (some, others)]
        return frames[0].unionByName(frames[1])

    def evaluated(self, relation: Relation) -> Rows:
        """The rows of a relation, in the driver when they are few."""
        check()
        planned, lookups = self._planner.step(relation)
        for lookup in lookups:
            if lookup.leaf not in self.leaves:
                self.leaves[lookup.leaf] = self._looked_up(lookup)
        rows = self._parts.evaluator.evaluate(
            self._entry, ("why", planned), planned, read_by(planned, self.leaves), self._bound
        )
        if isinstance(rows, pa.Table):
            return rows
        kept = rows.localCheckpoint()  # kept for as long as somebody holds the rows
        local = rows_that_fit(kept, self._bound.rows, self._bound.bytes)
        return kept if local is None else local

    def _looked_up(self, lookup: LookUp) -> Rows:
        """The rows of a table that can matter, by a key at hand; all of them without one.

        Whole rows are looked for, and some of their columns may have few values. A key that finds
        too much is given up early, and the next one is tried.
        """
        leaf, sources = lookup.leaf, self._parts.sources
        version, columns = self.versions[leaf.table], [a.name for a in leaf.attributes]
        if is_clock(leaf.table):
            return clock_rows(leaf.table, version)
        if is_idle(self.leaves, lookup.needs):
            schema = sources.state(leaf.table, version).arrow_schema
            return pa.schema([schema.field(name) for name in columns]).empty_table()
        found = ways(self.leaves, lookup.probes)
        if not found:
            return sources.scan(leaf.table, version, columns)
        for probe, keys in found if len(found) > 1 else ():
            with suppress(TooManyRows):
                return sources.lookup(leaf.table, version, columns, probe.key.name, keys, FEW)
        probe, keys = found[0]
        return sources.lookup(leaf.table, version, columns, probe.key.name, keys)


def _consumed_at(parts: Parts, entry: ViewEntry, version: int) -> Consumed:
    """What a view had consumed at one of its versions, by the commit that made it."""
    path = parts.catalog.path(entry)
    last = parts.tables.last_commit(path, entry.application)
    while last is not None and last[0] > version:
        last = parts.tables.last_commit(path, entry.application, last[1].number - 1)
    if last is None:
        raise NotFresh(name=entry.name)
    return consumed_of(version, last[1])


def _check_definition(parts: Parts, entry: ViewEntry, consumed: Consumed) -> None:
    """The rows must come from what the view is defined by now. Raises DefinitionChanged."""
    if is_redefined(parts, entry, consumed):
        reason = "its rows were computed by another definition, and the next refresh replaces them"
        raise DefinitionChanged(name=entry.name, function=entry.function, reason=reason)


@contextmanager
def _versions_there(parts: Parts, entry: ViewEntry, consumed: Consumed) -> Iterator[None]:
    """Say which version is gone if one of those that the view was computed from is."""
    try:
        yield
    except HistoryLost as lost:
        path = str(lost.parameters["path"])
        tables = [name for name in consumed.sources if not is_clock(name)]
        table = next((name for name in tables if parts.sources.path(name) == path), path)
        version, reason = lost.parameters["upto"], lost.why
        raise LineageLost(name=entry.name, table=table, version=version, reason=reason) from lost
    except (PySparkException, Py4JJavaError) as error:
        if not _is_file_gone(error):
            raise
        read = {n: str(s.version) for n, s in consumed.sources.items() if not is_clock(n)}
        names, versions = ", ".join(read), ", ".join(read.values())
        reason = "Spark did not find a data file, which was probably vacuumed"
        raise LineageLost(name=entry.name, table=names, version=versions, reason=reason) from error


def _is_file_gone(error: PySparkException | Py4JJavaError) -> bool:
    """Whether Spark failed for want of a file, by the classes of what it raised."""
    if isinstance(error, PySparkException):
        return (error.getCondition() or "").startswith(_GONE)
    cause = error.java_exception
    while cause is not None and cause.getClass().getName() != "java.io.FileNotFoundException":
        cause = cause.getCause()
    return cause is not None


def _copies(rows: Rows) -> int:
    """How many rows there are, all copies counted."""
    if isinstance(rows, pa.Table):
        return int(pc.sum(rows.columns[-1]).as_py() or 0)
    total = rows.agg(F.sum(rows.columns[-1])).first()
    assert total is not None
    return int(total[0] or 0)


def _has_order(attribute: Attribute) -> bool:
    return is_comparable(attribute) and "interval" not in attribute.type


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)
