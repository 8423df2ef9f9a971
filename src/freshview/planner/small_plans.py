"""Small plans: Spark's operators over a few rows in the driver, with nothing but evaluation left.

A refresh after a few changed rows evaluates one plan over local relations only, and Spark's fixed
costs are then all there is. Four of them are paid once per plan here and not once per refresh:

- lowering, analysis, optimisation and physical planning: the physical plan is kept;
- exchanges: every leaf is one partition, so each exchange is replaced by "all rows in one partition";
- building and cleaning closures: the plan's RDD is kept too, and a run puts new rows into its leaves;
- a job: the one partition is computed in the calling thread, under a task context of its own.

The operators, their memory management and every expression are Spark's. Expressions are interpreted,
because generating code for thirty projections takes longer than evaluating them over a few rows. A
plan that needs more than this (a broadcast, a Python worker) runs as an ordinary Spark job.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from freshview.algebra.relations import Relation
from freshview.algebra.schema import Attribute
from freshview.frontend.catalyst import definition_session
from freshview.frontend.scala import (
    CATALYST,
    JavaObject,
    Scala,
    items,
    java_session,
    scala_of,
)
from freshview.planner.lower import Prepared, as_dataframe, column_names
from freshview.planner.lower_expressions import ExpressionLowering
from freshview.planner.lower_relations import Occurrence, PlanLowering, TableLeaf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTION = "org.apache.spark.sql.execution."

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # nothing to adapt: one partition, known to be small
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a broadcast is a job of its own
    "spark.sql.codegen.wholeStage": "false",  # compiling costs more than these rows
    "spark.sql.defaultSizeInBytes": "1000",  # what the planner believes of each leaf
    "spark.sql.exchange.reuse": "false",  # exchanges are replaced below
    "spark.sql.execution.arrow.localRelationThreshold": "2g",  # imported rows stay in the driver
    "spark.sql.execution.arrow.useLargeVarTypes": "false",  # the layout the import below writes
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.unionOutputPartitioning": "false",  # a union has one partition per child
}
"""The session of small plans. None of these changes what a query means."""

COMPUTED_HERE = frozenset(
    {"Project", "Filter", "Union", "Coalesce", "Expand", "Generate", "Sort"}
    | {"Window", "WindowGroupLimit"}
    | {"ShuffledHashJoin", "SortMergeJoin", "CartesianProduct"}
    | {"HashAggregate", "ObjectHashAggregate", "SortAggregate"}
    | {"LocalLimit", "GlobalLimit", "TakeOrderedAndProject", "CollectLimit"}
    | {"Scan ExistingRDD", "LocalTableScan", "Scan OneRowRelation"}
)
"""Physical operators that only iterate over their input and so need no job."""

INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Evaluate expressions as they are; without this Spark generates code for each projection."""

COMPILED_FROM_ROWS = 20_000
"""From here on generated code is worth the 10 to 20 ms that generating it takes."""

COMPILED_IMPORT_FROM_ROWS = 2_000
"""The same for the one projection that an import needs."""

ROWS_LEFT_MAX = 1_000
"""A plan may hold on to so many rows until its next run; more are let go at once."""

BY_FILE_FROM_BYTES = 32_768
"""Above this size rows go to the JVM by a file: py4j encodes bytes as text."""

MEMORY_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - own file names
"""Where rows are exchanged by file: a folder in memory, or the usual one for temporary files."""

LENGTH_BYTES = 4
"""Spark writes the length of a batch before it."""

_task_numbers = itertools.count(2**62)
_running: dict[int, JavaObject] = {}
"""The contexts of tasks that run now, by number."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time of one run went, in milliseconds."""

    import_ms: float
    evaluate_ms: float


@dataclass(frozen=True, slots=True)
class Bound:
    """How much may come out of a run: its rows are held in this process."""

    rows: int
    bytes: int


UNBOUND = Bound(2**31 - 2, 2**62)
"""As much as Spark can bring at all."""


class TooLarge(Exception):
    """A run has more rows than its bound."""


def cancel_running() -> None:
    """Have every run end with an error at its next row; to be called from another thread."""
    for context in tuple(_running.values()):
        context.markInterrupted("cancelled")


class SmallPlans:
    """Prepares small plans for one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._driver = _Driver(spark)

    def prepare(self, relation: Relation) -> SmallPlan:
        """The plan of a relation, to be kept for as many runs as there are."""
        return SmallPlan(self._driver, relation)

    def run(self, relation: Relation, tables: Mapping[TableLeaf, pa.Table]) -> pa.Table:
        """Evaluate a relation over the rows of its leaves, once."""
        return self.prepare(relation).run(tables)


class _Driver:
    """What all small plans share: the session in the JVM, Arrow in and out, and tasks."""

    def __init__(self, spark: SparkSession) -> None:
        self.session = _session(spark, SETTINGS)
        self.scala: Scala = scala_of(spark)
        self.zone = str(self.session.conf.get("spark.sql.session.timeZone"))
        self.arrow = self.scala.singleton(EXECUTION + "arrow.ArrowConverters")
        self._sessions = self.scala.type("org.apache.spark.sql.classic.SparkSession")
        self._contexts = self.scala.singleton("org.apache.spark.TaskContext")
        environment = self.scala.type("org.apache.spark.SparkEnv").get()
        self._memory = environment.memoryManager()
        self._blocks = environment.blockManager()
        self._metrics = environment.metricsSystem()
        self._streams = self.scala.type("java.nio.channels.Channels")
        self._python = self.scala.singleton("org.apache.spark.api.python.PythonRDD")
        self._no_resources = self.scala.map([])
        interpreting = _session(spark, {**SETTINGS, **INTERPRETED})
        self._modes = {True: self._mode(self.session), False: self._mode(interpreting)}

    def _mode(self, session: SparkSession) -> tuple[JavaObject, JavaObject]:
        """A session and its settings in the form in which a task carries them."""
        properties = self.scala.type("java.util.Properties")()
        for name, value in session.conf.getAll.items():
            properties.setProperty(name, value)
        return java_session(session), properties

    @contextmanager
    def active(self, compiled: bool) -> Iterator[None]:
        """Make one of the sessions the active one: Spark's code reads its settings, here."""
        before = self._sessions.getActiveSession()
        self._sessions.setActiveSession(self._modes[compiled][0])
        try:
            yield
        finally:
            if before.isDefined():
                self._sessions.setActiveSession(before.get())
            else:
                self._sessions.clearActiveSession()

    @contextmanager
    def task(self, compiled: bool) -> Iterator[JavaObject]:
        """A task context for this thread, with memory of its own that is given back at the end."""
        number = next(_task_numbers)
        memory = self.scala.new("org.apache.spark.memory.TaskMemoryManager", self._memory, number)
        metrics = self.scala.new("org.apache.spark.executor.TaskMetrics")
        context = self.scala.new(
            "org.apache.spark.TaskContextImpl",
            *(0, 0, 0, number, 0, 1, memory, self._modes[compiled][1]),
            *(self._metrics, metrics, 1, self._no_resources),
        )
        # What a task needs memory for may push stored blocks out, which asks for the task by its number.
        self._blocks.registerTask(number)
        self._contexts.setTaskContext(context)
        _running[number] = context
        try:
            yield context
        finally:
            del _running[number]
            context.markTaskCompleted(self.scala.none)
            memory.cleanUpAllAllocatedMemory()
            self._memory.releaseAllExecutionMemoryForTask(number)
            self._blocks.releaseAllLocksForTask(number)
            self._contexts.unset()

    def empty(self, types: JavaObject) -> pa.Table:
        """No rows of a StructType, in the Arrow types that Spark gives and takes for it."""
        stream = self.arrow.createEmptyArrowBatch(types, self.zone, False, False)
        return pa.ipc.open_stream(stream).read_all()

    def imported(self, table: pa.Table, types_json: str) -> JavaObject:
        """A table of exactly Spark's Arrow types as a local relation of Spark's."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        with self._channel(sink.getvalue()) as channel:
            batches = self.arrow.getBatchesFromStream(channel)
            return self.arrow.toDataFrame(batches, types_json, self._modes[True][0])

    @contextmanager
    def _channel(self, stream: pa.Buffer) -> Iterator[JavaObject]:
        """The bytes where the JVM can read them."""
        if stream.size < BY_FILE_FROM_BYTES:
            source = self.scala.new("java.io.ByteArrayInputStream", stream.to_pybytes())
            yield self._streams.newChannel(source)
            return
        with tempfile.NamedTemporaryFile(dir=MEMORY_FOLDER, prefix="freshview-") as file:
            file.write(stream)
            file.flush()
            source = self.scala.new("java.io.FileInputStream", file.name)
            try:
                yield source.getChannel()
            finally:
                source.close()

    def table(self, rows: JavaObject, types: JavaObject, bound: Bound) -> pa.Table | None:
        """The rows of an iterator, or None if there are none. TooLarge if they do not fit.

        They are one batch, which Spark ends at the bound.

        They come by a file, never as the value of a call: py4j answers in pieces of 8 kB, and from
        the second piece on the two ends of the socket wait 40 ms for each other.
        """
        batches = self.arrow.toBatchWithSchemaIterator(
            rows, types, max(bound.rows, 1), max(bound.bytes, 1), self.zone, False, False
        )
        if not batches.hasNext():
            return None
        with tempfile.NamedTemporaryFile(dir=MEMORY_FOLDER, prefix="freshview-") as file:
            stream = self.scala.new("java.io.FileOutputStream", file.name)
            data = self.scala.new("java.io.DataOutputStream", stream)
            self._python.writeIteratorToStream(batches.take(1), data)
            data.close()
            if batches.hasNext():
                raise TooLarge
            # Copied, not mapped: behind the length nothing is aligned, and Arrow complains of that.
            file.seek(LENGTH_BYTES)
            return pa.ipc.open_stream(file.read()).read_all()


class SmallPlan:
    """A physical plan of one partition, kept ready; only the rows of its leaves change."""

    def __init__(self, driver: _Driver, relation: Relation) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self.columns: dict[Attribute, str] = column_names(relation.attributes)
        with driver.active(compiled=True):
            expressions = ExpressionLowering(driver.session)
            lowering = PlanLowering(driver.session, expressions, _hash_joins(driver.scala))
            planned = lowering.query(relation, self.columns).executedPlan()
            planned = _without_exchanges(driver.scala, planned)
            self.runs_in_driver = _only_iterates(planned)
            plan, scans = _with_local_scans(driver.scala, planned, lowering.occurrences)
            self._rdd = _one_partition(driver.scala, plan) if self.runs_in_driver else None
            self._partition = None if self._rdd is None else self._rdd.partitions()[0]
            self._sorts = [node for node in _nodes(plan) if node.nodeName() == "Sort"]
            self._leaves = [
                _Leaf(driver, o.leaf, scans[o.rows.id()], expressions) for o in lowering.occurrences
            ]
        self._types = plan.schema()
        self._empty = driver.empty(self._types)
        self._prepared = None if self.runs_in_driver else Prepared(driver.session, relation)
        self.timings = Timings(0.0, 0.0)

    @property
    def leaves(self) -> tuple[TableLeaf, ...]:
        """The leaves that a run must be given."""
        return tuple(dict.fromkeys(leaf.relation for leaf in self._leaves))

    @property
    def schema(self) -> pa.Schema:
        """The columns that a run yields."""
        return self._empty.schema

    def warm(self) -> None:
        """Run once over no rows, so that the first refresh finds everything loaded."""
        self.run({leaf.relation: leaf.schema.empty_table() for leaf in self._leaves})

    def run(self, tables: Mapping[TableLeaf, pa.Table], bound: Bound = UNBOUND) -> pa.Table:
        """Evaluate over these rows, whose columns have the names of the leaf's attributes.

        Raises TooLarge when there are more than the bound allows.
        """
        rows = sum(table.num_rows for table in tables.values())
        with self._lock, self._driver.active(compiled=rows >= COMPILED_FROM_ROWS):
            started = time.perf_counter()
            imported = {
                leaf.relation: leaf.imported(tables[leaf.relation]) for leaf in self._leaves
            }
            evaluating = time.perf_counter()
            if self._prepared is None:
                result = self._in_driver(imported, rows, bound)
            else:
                result = self._as_query(self._prepared, imported, bound)
            if result.num_rows > bound.rows:
                raise TooLarge
            ended = time.perf_counter()
            self.timings = Timings(1000 * (evaluating - started), 1000 * (ended - evaluating))
        return result

    def _in_driver(
        self, imported: Mapping[TableLeaf, JavaObject], rows: int, bound: Bound
    ) -> pa.Table:
        """Compute the one partition in this thread, as an executor would in a task."""
        assert self._rdd is not None
        try:
            for leaf in self._leaves:
                leaf.put(imported[leaf.relation])
            with self._driver.task(rows >= COMPILED_FROM_ROWS) as task:
                found = self._rdd.iterator(self._partition, task)
                result = self._driver.table(found, self._types, bound)
        finally:
            for sort in self._sorts:  # else each holds on to a page of memory, tens of megabytes
                getattr(sort, "rowSorter_$eq")(None)
            if rows > ROWS_LEFT_MAX:
                for leaf in self._leaves:
                    leaf.clear()
        return self._empty if result is None else result

    def _as_query(
        self, prepared: Prepared, imported: Mapping[TableLeaf, JavaObject], bound: Bound
    ) -> pa.Table:
        """Run as any query of Spark."""
        session = self._driver.session
        leaves = {leaf: as_dataframe(session, found) for leaf, found in imported.items()}
        found = prepared.dataframe(leaves).limit(bound.rows + 1)
        return found.toArrow().cast(self.schema)


class _Leaf:
    """One leaf of a small plan: the partition whose rows are replaced at each run."""

    def __init__(
        self,
        driver: _Driver,
        relation: TableLeaf,
        scans: list[JavaObject],
        expressions: ExpressionLowering,
    ) -> None:
        types = driver.scala.type("org.apache.spark.sql.types.StructType")()
        for attribute in relation.attributes:
            types = types.add(attribute.name, expressions.type(attribute.type), True)
        self.relation = relation
        self.schema: pa.Schema = driver.empty(types).schema
        self._driver = driver
        self._types_json = str(types.json())
        partitions = [_rows_behind(scan).partitions()[0] for scan in scans]
        self._setters = [getattr(partition, "values_$eq") for partition in partitions]
        self._nothing = driver.scala.seq([])

    def imported(self, table: pa.Table) -> JavaObject:
        """The table as a local relation, in exactly the Arrow types that Spark reads it as."""
        exact = table.select(self.schema.names)
        if self.schema.names:  # a cast of no columns forgets how many rows there are
            exact = exact.cast(self.schema)
        if table.num_rows < COMPILED_IMPORT_FROM_ROWS:
            return self._driver.imported(exact, self._types_json)
        with self._driver.active(compiled=True):
            return self._driver.imported(exact, self._types_json)

    def put(self, imported: JavaObject) -> None:
        """Make these rows the leaf's."""
        rows = imported.logicalPlan().data()
        for put in self._setters:
            put(rows)

    def clear(self) -> None:
        """Let go of the rows."""
        for put in self._setters:
            put(self._nothing)


def _hash_joins(scala: Scala) -> JavaObject:
    """The hint to join by a hash table of the right side, which needs no sorting."""
    hash_join = scala.singleton(CATALYST + "plans.logical.SHUFFLE_HASH")
    right = scala.node("HintInfo", scala.some(hash_join))
    return scala.node("JoinHint", scala.none, scala.some(right))


def _without_exchanges(scala: Scala, plan: JavaObject) -> JavaObject:
    """The physical plan with each exchange into one partition replaced by taking all rows there."""
    found: list[JavaObject] = []
    for node in _nodes(plan):
        if node.nodeName() == "Exchange":
            assert node.outputPartitioning().numPartitions() == 1, node.toString()
            found.append(node)
    if not found:
        return plan
    coalesce = scala.type(EXECUTION + "CoalesceExec")
    return plan.transformDown(scala.map((node, coalesce(1, node.child())) for node in found))


def _with_local_scans(
    scala: Scala, plan: JavaObject, occurrences: Sequence[Occurrence]
) -> tuple[JavaObject, dict[int, list[JavaObject]]]:
    """The plan with local scans as leaves, which pass their rows on as they are; scans by RDD.

    A local scan without any row would have no partition, so it starts with one row of nulls.
    """
    scans: dict[int, list[JavaObject]] = {o.rows.id(): [] for o in occurrences}
    replaced = []
    for node in _nodes(plan):
        if node.nodeName() == "Scan ExistingRDD" and node.rdd().id() in scans:
            width = node.output().size()
            row = scala.expression("GenericInternalRow", width)
            scan = scala.new(
                EXECUTION + "LocalTableScanExec", node.output(), scala.seq([row]), scala.none
            )
            scans[node.rdd().id()].append(scan)
            replaced.append((node, scan))
    return plan.transformDown(scala.map(replaced)) if replaced else plan, scans


def _one_partition(scala: Scala, plan: JavaObject) -> JavaObject:
    """The plan's rows as an RDD of one partition."""
    rdd = plan.execute()
    if rdd.getNumPartitions() == 1:
        return rdd
    return scala.new(EXECUTION + "CoalesceExec", 1, plan).execute()


def _rows_behind(scan: JavaObject) -> JavaObject:
    """The RDD whose partition holds the rows of a local scan."""
    return scan.execute().dependencies().head().rdd()


def _session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A new session that understands queries as the given one does."""
    session = definition_session(spark, {})
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def _only_iterates(plan: JavaObject) -> bool:
    return all(node.nodeName() in COMPUTED_HERE for node in _nodes(plan))


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in items(plan.children()):
        yield from _nodes(child)
