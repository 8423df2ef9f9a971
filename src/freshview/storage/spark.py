"""Storage through Spark: `delta-spark`, for what is large and for what native cannot serve.

Rows are lazy DataFrames. Reading, changes and lookups are plain Spark plans; writing is Delta's own
MERGE and writers. The only file of the storage layer that imports pyspark.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from freshview.algebra.schema import quoted
from freshview.errors import (
    ColumnMissing,
    ConcurrentWrite,
    DuplicateKey,
    HistoryLost,
    SchemaMismatch,
    StaleCommit,
    TableExists,
    TableMissing,
    TooManyRows,
)
from freshview.storage.columns import comparable_columns
from freshview.storage.commit_files import LogCommit, find_commit, identity_of, parsed_commit
from freshview.storage.delta_log import DeltaLogs, Snapshot, files_by_identity
from freshview.storage.features import CHANGE_DATA_FEED, features_of
from freshview.storage.interface import COUNT, Commit, Rows, TableState, check_number
from freshview.storage.native_match import in_type
from freshview.storage.plain_arrow import fitted, nullable_schema, plain_schema, unsliced
from freshview.storage.spark_changes import consolidated
from freshview.storage.spark_scans import constant, unbounded
from freshview.storage.write_errors import spark_writes

_DELETED = "__freshview_deleted"
_KIND = "_change_type"
_APPLICATION = "spark.databricks.delta.write.txnAppId"
_NUMBER = "spark.databricks.delta.write.txnVersion"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_WRITING = threading.Lock()
"""Transaction and metadata are settings of a session that several may share: one write at a time."""


class SparkStorage:
    """The Spark implementation of `Storage`, on a session that is already running."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._logs = DeltaLogs(spark)

    def exists(self, path: str) -> bool:
        """See `Storage.exists`."""
        return self._logs.newest(path) is not None

    def latest(self, path: str) -> int:
        """See `Storage.latest`."""
        return self._newest(path).version

    def state(self, path: str, version: int | None = None) -> TableState:
        """See `Storage.state`. Counting from the statistics is a small Spark job."""
        snapshot = self._newest(path) if version is None else self._at(path, version)
        files = DataFrame(snapshot.jvm.allFiles().toDF(), self._spark)
        held = f.get_json_object("stats", "$.numRecords").cast("long")
        gone = f.coalesce(f.col("deletionVector.cardinality"), f.lit(0))
        known, total, rows, size = files.select(
            f.count(held), f.count(f.lit(1)), f.sum(held - gone), f.sum("size")
        ).collect()[0]
        return replace(
            self._outline(path, snapshot),
            rows=None if known < total else int(rows or 0),
            files=int(total),
            bytes=int(size or 0),
        )

    def _outline(self, path: str, snapshot: Snapshot) -> TableState:
        """What needs no Spark job: everything but the counts."""
        metadata = snapshot.metadata
        schema_json, partitions = metadata.schemaString(), snapshot.partition_columns()
        configuration = snapshot.configuration()
        return TableState(
            path,
            snapshot.version,
            metadata.id(),
            schema_json,
            plain_schema(to_arrow_schema(StructType.fromJson(_json(schema_json)))),
            None,
            0,
            0,
            partitions,
            features_of(schema_json, configuration, partitions, snapshot.listed_features()),
            configuration,
        )

    def read(self, path: str, version: int, columns: Sequence[str] | None = None) -> DataFrame:
        """See `Storage.read`. Lazy: a vacuumed file is noticed when the plan runs."""
        rows = self._rows(path, version)
        return rows if columns is None else rows.select(self._picked(path, rows, columns))

    def read_files(
        self, state: TableState, files: Sequence[str], columns: Sequence[str] | None = None
    ) -> DataFrame:
        """All rows of a version whose files hold them as they stand (`plain_files.py`)."""
        fields = StructType.fromJson(_json(state.schema_json)).fields
        # What Delta notes at a column, such as how it is generated, is nothing that a scan does.
        schema = StructType([StructField(field.name, field.dataType) for field in fields])
        try:
            rows = unbounded(self._spark.read.schema(schema).parquet(*files))
        except AnalysisException:  # a file has gone meanwhile: Delta knows how to say so
            return self.read(state.path, state.version, columns)
        return rows if columns is None else rows.select(self._picked(state.path, rows, columns))

    def changes(
        self, path: str, after: int, upto: int, columns: Sequence[str] | None = None
    ) -> DataFrame:
        """See `Storage.changes`. From the change feed where there is one, else from the files."""
        if after > upto:
            backwards = self.changes(path, upto, after, columns)
            return backwards.withColumn(COUNT, -f.col(COUNT))
        snapshots = self._at(path, after), self._at(path, upto)
        old, new = (self._outline(path, snapshot) for snapshot in snapshots)
        names = [column.name for column in comparable_columns(old, new, columns)]
        if after == upto:
            return self._feed_like(self._rows(path, upto).where(f.lit(False)), names, 1)
        if CHANGE_DATA_FEED in old.features & new.features:
            feed = self._feed(path, after + 1, upto, names)
            if feed is not None:
                return feed
        return self._changed_files(path, *snapshots, names)

    def lookup(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        keys: pa.Array,
        limit: int | None = None,
    ) -> DataFrame:
        """See `Storage.lookup`. With a limit the answer is fetched and becomes a local relation."""
        rows = self._rows(path, version)
        picked = self._picked(path, rows, [*columns, key])[:-1]
        kind = next(field for field in rows.schema.fields if field.name == key)
        arrow = plain_schema(to_arrow_schema(StructType([kind]))).field(0).type
        try:
            values = in_type(keys.drop_null(), arrow) if len(keys) else pa.nulls(0, arrow)
        except ValueError as problem:
            raise SchemaMismatch(path=path, reason=str(problem)) from problem
        if not pa.types.is_nested(arrow):
            # Fewer keys to ship; Arrow cannot compare nested ones, and the semijoin need not.
            values = values.unique()
        if keys.null_count:
            values = pa.concat_arrays([values, pa.nulls(1, arrow)])
        wanted = self._local(
            pa.table([values], names=["__key"]), StructType().add("__key", kind.dataType)
        )
        same = rows[quoted(key)].eqNullSafe(wanted["__key"])
        found = rows.join(f.broadcast(wanted), same, "left_semi").select(picked)
        return self._limited(path, found, limit)

    def between(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        key: str,
        lows: pa.Array,
        highs: pa.Array,
        limit: int | None = None,
    ) -> DataFrame:
        """See `Storage.between`. The ends are constants, so that Delta passes over files by them."""
        rows = self._rows(path, version)
        picked = self._picked(path, rows, [*columns, key])[:-1]
        value, kind = rows[quoted(key)], rows.schema[key].dataType.simpleString()
        inside = f.lit(False)
        for low, high in zip(lows, highs, strict=True):
            inside = inside | value.between(constant(low, kind), constant(high, kind))
        return self._limited(path, rows.where(inside).select(picked), limit)

    def _limited(self, path: str, found: DataFrame, limit: int | None) -> DataFrame:
        """The rows, fetched if there may not be more than so many of them."""
        if limit is None:
            return found
        fetched = found.limit(limit + 1).toArrow()
        if fetched.num_rows > limit:
            raise TooManyRows(path=path, limit=limit)
        return self._local(fetched, found.schema)

    def create(
        self,
        path: str,
        rows_or_schema: Rows | pa.Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        commit: Commit | None = None,
    ) -> int:
        """See `Storage.create`."""
        if self.exists(path):
            raise TableExists(path=path)
        if isinstance(rows_or_schema, pa.Schema):
            rows = self._frame(nullable_schema(rows_or_schema).empty_table())
        else:
            rows = self._frame(rows_or_schema)
        writer = rows.write.format("delta").mode("error").partitionBy(*partition_by)
        settings = {"delta.enableDeletionVectors": "false", **(properties or {})}
        writer = writer.options(**settings)
        return self._committed(path, commit, lambda: writer.save(path))

    def overwrite(
        self, path: str, rows: Rows, commit: Commit | None, *, new_schema: bool = False
    ) -> int:
        """See `Storage.overwrite`."""
        if not new_schema:
            return self._insert(path, rows, "overwrite", commit)
        writer = self._frame(rows).write.format("delta").mode("overwrite")
        writer = writer.option("overwriteSchema", "true")
        return self._committed(path, commit, lambda: writer.save(path))

    def append(self, path: str, rows: Rows | None, commit: Commit | None) -> int:
        """See `Storage.append`."""
        return self._insert(path, rows, "append", commit)

    def _insert(self, path: str, rows: Rows | None, mode: str, commit: Commit | None) -> int:
        schema = self._schema(path)
        given = self._frame(_empty(schema) if rows is None else rows, schema, path)
        writer = given.write.format("delta").mode(mode).option("partitionOverwriteMode", "static")
        return self._committed(path, commit, lambda: writer.save(path))

    def apply(
        self,
        path: str,
        key: Sequence[str],
        upserts: Rows,
        deletes: Rows,
        commit: Commit | None,
    ) -> int:
        """See `Storage.apply`. One MERGE; keys are checked first, so the source is kept for it."""
        schema = self._schema(path)
        source = self._merge_source(path, schema, key, upserts, deletes).persist()
        try:
            self._check_unique(path, key, source)
            same = f.lit(True)
            for name in key:
                escaped = quoted(name)
                same = same & f.col(f"t.{escaped}").eqNullSafe(f.col(f"s.{escaped}"))
            values: dict[str, Any] = {
                quoted(name): f.col(f"s.{quoted(name)}") for name in schema.names
            }
            deleted = f.col(f"s.{_DELETED}")
            merge = DeltaTable.forPath(self._spark, path).alias("t").merge(source.alias("s"), same)
            merge = merge.whenMatchedDelete(deleted).whenMatchedUpdate(set=values)
            merge = merge.whenNotMatchedInsert(~deleted, values=values)
            return self._committed(path, commit, merge.execute)
        finally:
            source.unpersist()

    def number(self, path: str, application: str) -> int | None:
        """See `Storage.number`."""
        return self._newest(path).transaction(application)

    def identity(self, path: str, version: int) -> str:
        """See `Storage.identity`."""
        try:
            return identity_of(self._logs.commit_lines(path, version))
        except FileNotFoundError:
            return ""

    def last_commit(
        self, path: str, application: str, number: int | None = None
    ) -> tuple[int, Commit] | None:
        """See `Storage.last_commit`."""
        snapshot = self._newest(path)
        last = snapshot.transaction(application)
        if last is None or last < (number or 0):
            return None
        wanted = last if number is None else number
        return find_commit(path, partial(self._commit, path), snapshot.version, application, wanted)

    def _commit(self, path: str, version: int) -> LogCommit:
        return parsed_commit(version, self._logs.commit_lines(path, version))

    def _committed(self, path: str, commit: Commit | None, write: Callable[[], Any]) -> int:
        """Write with a commit's transaction and metadata, and be sure that it was written.

        Spark skips a transaction number it has seen without a word, so the number is compared
        before, and afterwards the commit is looked for by a mark that only this write carries.
        """
        with _WRITING:
            newest = self._logs.newest(path)
            before = -1 if newest is None else newest.version
            if commit is not None and newest is not None:
                check_number(path, commit, newest.transaction(commit.application))
            mark = uuid.uuid4().hex
            settings = {_TIMESTAMPS: "TIMESTAMP_MICROS"}
            if commit is not None:
                settings[_APPLICATION] = commit.application
                settings[_NUMBER] = str(commit.number)
                settings[_USER_METADATA] = commit.user_metadata(mark)
            with self._settings(settings), _failed_writes(path):
                write()
            after = self._newest(path)
            if commit is None:
                return after.version
            for version in range(after.version, before, -1):
                if mark in (self._commit(path, version).user_metadata or ""):
                    return version
            raise StaleCommit(
                path=path,
                application=commit.application,
                expected=commit.number,
                found=after.transaction(commit.application),
            )

    @contextmanager
    def _settings(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Session settings for the time of a block, and afterwards as they were."""
        held = {name: self._spark.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                self._spark.conf.set(name, value)
            yield
        finally:
            for name, before in held.items():
                if before is None:
                    self._spark.conf.unset(name)
                else:
                    self._spark.conf.set(name, before)

    def _newest(self, path: str) -> Snapshot:
        snapshot = self._logs.newest(path)
        if snapshot is None:
            raise TableMissing(path=path, reason="it has no Delta log")
        return snapshot

    def _at(self, path: str, version: int) -> Snapshot:
        newest = self._newest(path)
        if newest.version == version:
            return newest
        try:
            return self._logs.at(path, version)
        except Py4JJavaError as problem:
            raise _lost(path, version, problem) from problem

    def _rows(self, path: str, version: int) -> DataFrame:
        reader = self._spark.read.format("delta").option("versionAsOf", version)
        self._newest(path)
        try:
            return unbounded(reader.load(path))
        except (PySparkException, Py4JJavaError) as problem:
            raise _lost(path, version, problem) from problem

    def _picked(self, path: str, rows: DataFrame, columns: Sequence[str]) -> list[Any]:
        for name in columns:
            if name not in rows.columns:
                held = ", ".join(rows.columns)
                raise ColumnMissing(path=path, column=name, columns=held)
        return [rows[quoted(name)] for name in columns]

    def _feed(self, path: str, first: int, last: int, names: Sequence[str]) -> DataFrame | None:
        """The change feed of a range, None when it was not on all the time."""
        reader = self._spark.read.format("delta").option("readChangeFeed", "true")
        reader = reader.option("startingVersion", first).option("endingVersion", last)
        try:
            feed = reader.load(path)
            sign = f.when(f.col(_KIND).isin("insert", "update_postimage"), 1).otherwise(-1)
            found = self._feed_like(feed, names, sign)
            # Gaps in the feed are found when the scan is planned, which is before it runs.
            found._jdf.queryExecution().executedPlan()  # noqa: SLF001 - its only way
        except (PySparkException, Py4JJavaError):
            return None
        return found

    def _feed_like(self, rows: DataFrame, names: Sequence[str], sign: Any) -> DataFrame:
        count = (f.lit(sign) if isinstance(sign, int) else sign).cast("long").alias(COUNT)
        rows = unbounded(rows)
        return rows.select(*[rows[quoted(name)] for name in names], count)

    def _changed_files(
        self, path: str, old: Snapshot, new: Snapshot, names: Sequence[str]
    ) -> DataFrame:
        """Rows of the files that one version has and the other has not, added up."""
        before, after = files_by_identity(old), files_by_identity(new)
        sides = []
        for snapshot, held, other, sign in ((new, after, before, 1), (old, before, after, -1)):
            files = [file for identity, file in held.items() if identity not in other]
            rows = DataFrame(self._logs.rows_of(path, snapshot, files), self._spark)
            sides.append(self._feed_like(rows, names, sign))
        return consolidated(sides[0].unionByName(sides[1]))

    def clone(self, path: str, target: str) -> None:
        """See `Wide.clone`."""
        with _failed_writes(target):
            self._spark.sql(
                f"CREATE TABLE delta.{quoted(target)} SHALLOW CLONE delta.{quoted(path)}"
            )

    def _schema(self, path: str) -> StructType:
        return StructType.fromJson(_json(self._newest(path).metadata.schemaString()))

    def _frame(self, rows: Rows, schema: StructType | None = None, path: str = "") -> DataFrame:
        """Rows as a DataFrame, in the columns of a schema when there is one."""
        if isinstance(rows, pa.Table):
            if schema is None:
                plain = rows.cast(nullable_schema(rows.schema))
                return self._local(plain, from_arrow_schema(plain.schema, True))
            try:
                return self._local(fitted(rows, plain_schema(to_arrow_schema(schema))), schema)
            except ValueError as problem:
                raise SchemaMismatch(path=path, reason=str(problem)) from problem
        if schema is None:
            return rows
        if set(rows.columns) != set(schema.names):
            reason = f"the rows have {rows.columns}, the table {schema.names}"
            raise SchemaMismatch(path=path, reason=reason)
        return rows.select([rows[quoted(name)] for name in schema.names])

    def _local(self, table: pa.Table, schema: StructType) -> DataFrame:
        """A small Arrow table as a DataFrame.

        The schema is given: an inferred one reads zone-less timestamps in the session's zone.
        """
        plain = unsliced(table.cast(plain_schema(table.schema)))
        return self._spark.createDataFrame(plain, schema)

    def _merge_source(
        self, path: str, schema: StructType, key: Sequence[str], upserts: Rows, deletes: Rows
    ) -> DataFrame:
        keys = StructType([schema[name] for name in key])
        setting = self._frame(upserts, schema, path).withColumn(_DELETED, f.lit(False))
        if isinstance(deletes, pa.Table):
            held = deletes.select(list(key)) if key else deletes
        else:
            held = deletes.select([deletes[quoted(name)] for name in key]) if key else deletes
        removing = self._frame(held, keys, path) if key else self._frame(held)
        missing = [
            removing[quoted(field.name)]
            if field.name in key
            else f.lit(None).cast(field.dataType).alias(field.name)
            for field in schema.fields
        ]
        return setting.unionByName(removing.select(*missing, f.lit(True).alias(_DELETED)))

    def _check_unique(self, path: str, key: Sequence[str], source: DataFrame) -> None:
        total = source.count()
        distinct = source.select([quoted(name) for name in key]).distinct().count() if key else 1
        if total > distinct:
            raise DuplicateKey(path=path, key=", ".join(key), count=total - distinct)


@contextmanager
def _failed_writes(path: str) -> Iterator[None]:
    """Turn Delta's conflicts, and what the system refuses, into ours."""
    try:
        with spark_writes(path):
            yield
    except (PySparkException, Py4JJavaError) as problem:
        java = getattr(problem, "java_exception", None)
        name = java.getClass().getName() if java is not None else type(problem).__module__
        # By its class alone: the text of another error may quote a row that says anything.
        if name.startswith(("io.delta.exceptions", "delta.exceptions")):
            raise ConcurrentWrite(path=path, reason=str(problem).split("\n")[0]) from problem
        raise


def _lost(path: str, version: int, problem: Exception) -> HistoryLost:
    reason = f"version {version} cannot be opened: {str(problem).splitlines()[0]}"
    return HistoryLost(path=path, after=version, upto=version, reason=reason)


def _json(text: str) -> Any:
    return json.loads(text)


def _empty(schema: StructType) -> pa.Table:
    return plain_schema(to_arrow_schema(schema)).empty_table()
