"""Native and Spark see the same tables: histories written by both, read by both.

Each history is a list of steps on one table with one set of features. After it, every version read
natively equals Spark's, and the changes between every pair of versions, from each storage, equal
the difference of Spark's snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions

from freshview.errors import NativeRefused, StaleCommit
from freshview.storage.choose import Tables
from freshview.storage.interface import COUNT, Commit
from freshview.storage.native import NativeStorage
from freshview.storage.spark import SparkStorage

from .samples import arrow, bag, difference

pytestmark = pytest.mark.spark

FEED = "'delta.enableChangeDataFeed'='true'"
VECTORS = "'delta.enableDeletionVectors'='true'"
NO_VECTORS = "'delta.enableDeletionVectors'='false'"
COLUMNS = "k int, g string, v decimal(38,2), f double, a array<string>"
VALUES = (
    "cast(id as int) k, if(id % 4 = 0, null, concat('g/=%:é ', id % 4)) g, "
    "cast(id as decimal(38,2)) / 4 v, if(id % 3 = 0, double('NaN'), -0.0D * id) f, "
    "if(id % 5 = 0, null, array(string(id), null)) a"
)

ENGINE = NativeStorage(engine_above_bytes=0)
"""Native, with the query engine for lookups in tables of any size."""

Step = Callable[["History"], None]


class History:
    """One table and the two libraries that write it."""

    def __init__(self, spark: Any, path: str) -> None:
        self.spark, self.path = spark, path
        self.name = f"delta.`{path}`"
        self.native = NativeStorage()

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=self.name))


def sql(text: str) -> Step:
    return lambda history: history.sql(text)


def insert(first: int, last: int) -> Step:
    return sql(f"insert into {{t}} select {VALUES} from range({first}, {last})")


def native_append(history: History) -> None:
    rows = arrow(history.native.read(history.path, history.native.latest(history.path)))
    history.native.append(history.path, rows.slice(0, 2), None)


def native_apply(history: History) -> None:
    version = history.native.latest(history.path)
    rows = arrow(history.native.read(history.path, version))
    changed = rows.slice(0, 2).set_column(1, "g", pa.array(["natively", None]))
    keys = changed.column("k").to_pylist()
    changed = changed.slice(0, 1) if len(set(keys)) < len(keys) else changed
    history.native.apply(history.path, ["k"], changed, rows.slice(0, 0), None)


MERGE = (
    f"merge into {{t}} t using (select {VALUES} from range(3, 14)) s on t.k <=> s.k "
    "when matched and s.k = 4 then delete when matched then update set g = 'merged' "
    "when not matched then insert *"
)
DELETE = sql("delete from {t} where k in (1, 6)")
UPDATE = sql("update {t} set v = v + 1, g = null where k = 2")
REWRITE = sql("optimize {t}")
OVERWRITE = sql(f"insert overwrite {{t}} select {VALUES} from range(2, 9)")

PLAIN: Sequence[Step] = (
    insert(0, 8), DELETE, UPDATE, sql(MERGE), REWRITE, native_append, native_apply, OVERWRITE,
)  # fmt: skip
READ_ONLY: Sequence[Step] = (insert(0, 8), DELETE, UPDATE, sql(MERGE), REWRITE, OVERWRITE)
RENAMED: Sequence[Step] = (
    insert(0, 8), UPDATE, native_append, sql("alter table {t} rename column v to w"), DELETE,
)  # fmt: skip

RESTORED: Sequence[Step] = (
    insert(0, 8), DELETE, UPDATE, sql("restore {t} to version as of 1"), native_append,
    sql(f"insert into {{t}} replace where k < 4 select {VALUES} from range(1, 4)"),
    sql("delete from {t}"), sql("restore {t} to version as of 3"),
)  # fmt: skip

HISTORIES: dict[str, tuple[str, Sequence[Step]]] = {
    "plain": (f"tblproperties({NO_VECTORS})", PLAIN),
    "feed": (f"tblproperties({FEED},{NO_VECTORS})", PLAIN),
    "vectors": (f"tblproperties({VECTORS})", PLAIN),
    "vectors and feed": (f"tblproperties({VECTORS},{FEED})", PLAIN),
    "partitioned": (f"partitioned by (g) tblproperties({NO_VECTORS})", READ_ONLY),
    "partitioned, vectors and feed": (f"partitioned by (g) tblproperties({VECTORS},{FEED})", PLAIN),
    "restored": (f"tblproperties({VECTORS})", RESTORED),
    "restored, feed": (f"tblproperties({VECTORS},{FEED})", RESTORED),
    "renamed": (f"tblproperties('delta.columnMapping.mode'='name',{FEED},{VECTORS})", RENAMED),
    "clustered": (f"cluster by (k) tblproperties({FEED})", READ_ONLY),
    "tracked rows": (f"tblproperties('delta.enableRowTracking'='true',{VECTORS})", READ_ONLY),
    "v2 checkpoints": (
        f"tblproperties('delta.checkpointPolicy'='v2','delta.checkpointInterval'='2',{VECTORS})",
        PLAIN,
    ),
}  # fmt: skip


QUICK = ("plain", "partitioned, vectors and feed", "renamed")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in HISTORIES],
)
def test_both_see_the_same_history(name: str, spark: Any, tmp_path: Any) -> None:
    create, steps = HISTORIES[name]
    history = History(spark, str(tmp_path / "t"))
    history.sql(f"create table {{t}} ({COLUMNS}) using delta {create}")
    for step in steps:
        step(history)
    check(history)


def check(history: History) -> None:
    """Compare both storages over all versions and all pairs of versions."""
    path, native, spark = history.path, history.native, SparkStorage(history.spark)
    last = native.latest(path)
    assert spark.latest(path) == last
    snapshots = all_versions(spark, path, last)
    for version, snapshot in enumerate(snapshots):
        assert bag(native.read(path, version)) == bag(snapshot), version
        same_lookups(native, path, version, snapshot)
    tables = Tables(native, lambda: spark)
    for version in (last - 2, last):
        same_state(native, spark, path, version)
        assert bag(tables.scan(path, version)) == bag(snapshots[version]), version
    schema = snapshots[-1].schema
    for after in range(last + 1):
        for upto in range(last + 1):
            if snapshots[after].schema == schema == snapshots[upto].schema:
                wanted = difference(snapshots[upto], snapshots[after])
                assert bag(native.changes(path, after, upto)) == wanted, (after, upto)
    for after, upto in ((0, last), (last - 1, 1)):
        if snapshots[after].schema == schema == snapshots[upto].schema:
            wanted = difference(snapshots[upto], snapshots[after])
            assert bag(spark.changes(path, after, upto)) == wanted, (after, upto)


def all_versions(spark: SparkStorage, path: str, last: int) -> list[pa.Table]:
    """Spark's snapshots of all versions, read in one job where their schema is the same."""
    frames = [spark.read(path, version) for version in range(last + 1)]
    found: dict[int, pa.Table] = {}
    for columns in dict.fromkeys(tuple(frame.columns) for frame in frames):
        alike = [v for v, frame in enumerate(frames) if tuple(frame.columns) == columns]
        marked = [frames[v].withColumn("__version", functions.lit(v)) for v in alike]
        rows = arrow(reduce(lambda one, two: one.union(two), marked))
        for v in alike:
            mine = rows.filter(pa.compute.equal(rows.column("__version"), v))
            found[v] = mine.drop_columns(["__version"])
    return [found[v] for v in range(last + 1)]


def same_state(native: NativeStorage, spark: SparkStorage, path: str, version: int) -> None:
    one, two = native.state(path, version), spark.state(path, version)
    assert one.arrow_schema == two.arrow_schema
    for fact in ("version", "table_id", "files", "bytes", "rows", "partition_columns", "features"):
        assert getattr(one, fact) == getattr(two, fact), fact


def same_lookups(native: NativeStorage, path: str, version: int, snapshot: pa.Table) -> None:
    for key, values in (
        ("k", [2, 5, 77]),
        ("k", [2, None]),
        ("g", ["g/=%:é 2", None]),
        ("f", [float("nan")]),
    ):
        keys = pa.array(values, snapshot.schema.field(key).type)
        wanted = [
            row
            for row in snapshot.to_pylist()
            if row[key] in values or (key == "f" and repr(row[key]) == "nan")
        ]
        rows = pa.Table.from_pylist(wanted, snapshot.schema)
        for storage in (native, ENGINE):
            found = storage.lookup(path, version, snapshot.column_names, key, keys)
            assert bag(found) == bag(rows), (version, key)


def test_int96_timestamps_are_read_exactly_and_not_rewritten(spark: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "t")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        spark.sql(
            "select id, timestamp'1970-01-01 00:00:00Z' + make_dt_interval(0, 0, 0, id) at from "
            "values (0), (-62135596800), (253402300799), (-12219292801), (-1) as s(id)"
        ).write.format("delta").save(path)
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    native, theirs = NativeStorage(), SparkStorage(spark)
    wanted = arrow(theirs.read(path, 0))
    assert min(wanted.column("at").to_pylist()).year == 1
    assert bag(native.read(path, 0)) == bag(wanted)
    oldest = wanted.filter(pa.compute.equal(wanted.column("id"), -62135596800))
    assert bag(
        native.lookup(path, 0, ["id", "at"], "at", oldest.column("at").combine_chunks())
    ) == bag(oldest)
    with pytest.raises(NativeRefused) as caught:
        native.apply(path, ["id"], wanted.slice(0, 1), wanted.slice(0, 0), None)
    assert caught.value.parameters["reason"] == "NATIVE_NO_INT96_WRITE"
    native.append(path, wanted, None)
    for storage in (native, theirs):
        assert bag(storage.read(path, 1)) == bag(pa.concat_tables([wanted, wanted]))


def test_a_table_made_by_either_is_read_by_the_other(spark: Any, tmp_path: Any) -> None:
    native, theirs = NativeStorage(), SparkStorage(spark)
    rows = pa.table({"k": [1, 2, None], "v": ["a", None, "c"]})
    for maker, reader in ((native, theirs), (theirs, native)):
        path = str(tmp_path / maker.name)
        maker.create(path, rows, partition_by=["v"])
        reader.append(path, rows.slice(1), None)
        maker.apply(path, ["k"], rows.slice(0, 1), rows.slice(2), None)
        assert bag(reader.read(path, 2)) == bag(maker.read(path, 2))
        assert bag(reader.changes(path, 0, 2)) == bag(maker.changes(path, 0, 2))
        assert COUNT in arrow(reader.changes(path, 0, 2)).column_names


def test_large_deletion_vectors(spark: Any, tmp_path: Any) -> None:
    history = History(spark, str(tmp_path / "t"))
    history.sql(f"create table {{t}} (k bigint) using delta tblproperties({VECTORS})")
    history.sql("insert into {t} select /*+ coalesce(1) */ id from range(0, 200000, 1, 1)")
    history.sql("delete from {t} where k % 3 = 0")
    history.sql("delete from {t} where k between 70000 and 150000 or k % 1000 = 1")
    native = history.native
    found = native.changes(history.path, 2, 3)
    gone = [k for k in range(200000) if k % 3 and (70000 <= k <= 150000 or k % 1000 == 1)]
    assert sorted(found.column("k").to_pylist()) == gone
    assert set(found.column(COUNT).to_pylist()) == {-1}
    measured = native.measure_changes(history.path, 2, 3)
    assert (measured.files, measured.rows) == (1, len(gone))
    assert native.state(history.path).rows == 200000 - 66667 - len(gone)
    assert native.lookup(history.path, 3, ["k"], "k", pa.array([2, 3, 80000])).to_pylist() == [
        {"k": 2}
    ]


def test_what_spark_alone_serves(spark: Any, tmp_path: Any) -> None:
    """Padding, variants and widened types: native refuses, and the chooser asks Spark."""
    tables = Tables(NativeStorage(), lambda: SparkStorage(spark))
    for name, columns, values, reason in (
        ("char", "c char(4)", "'a'", "NATIVE_NO_CHAR_PADDING"),
        ("variant", "c variant", "parse_json('[1]')", "NATIVE_NO_VARIANT"),
    ):
        history = History(spark, str(tmp_path / name))
        history.sql(f"create table {{t}} ({columns}) using delta")
        history.sql(f"insert into {{t}} select {values}")
        with pytest.raises(NativeRefused) as caught:
            history.native.read(history.path, 1)
        assert caught.value.parameters["reason"] == reason
        for rows, served in (tables.read(history.path, 1), tables.changes(history.path, 0, 1)):
            assert (served.by, served.reason) == ("spark", reason)
            assert rows.count() == 1
    padded = tables.read(str(tmp_path / "char"), 1)[0].collect()[0]["c"]
    assert padded == "a   "


def test_both_write_commits_that_the_other_reads(spark: Any, tmp_path: Any) -> None:
    path, app = str(tmp_path / "t"), "freshview:é"
    native, theirs = NativeStorage(), SparkStorage(spark)
    rows = pa.table({"k": [1, 2], "v": ["a", "b"]})
    native.create(path, rows, commit=Commit(app, 1, {"n": 1}))
    assert theirs.last_commit(path, app) == (0, Commit(app, 1, {"n": 1}))
    theirs.apply(path, ["k"], rows.slice(0, 1), rows.slice(1), Commit(app, 2, {"n": 2}))
    assert native.last_commit(path, app) == (1, Commit(app, 2, {"n": 2}))
    with pytest.raises(StaleCommit):
        theirs.append(path, rows, Commit(app, 2))
    with pytest.raises(StaleCommit):
        native.append(path, rows, Commit(app, 2))
    native.append(path, None, Commit(app, 3))
    assert [theirs.identity(path, n) for n in range(3)] == [
        native.identity(path, n) for n in range(3)
    ]
    assert (theirs.number(path, app), native.number(path, app)) == (3, 3)
    for setting in ("write.txnAppId", "write.txnVersion", "commitInfo.userMetadata"):
        assert spark.conf.get(f"spark.databricks.delta.{setting}", None) is None


OTHERS = {
    "identity": ("k bigint generated by default as identity, g string", "'x'", ""),
    "column default": (
        "k int, g string default 'd'",
        "'x'",
        "tblproperties('delta.feature.allowColumnDefaults'='supported')",
    ),
    "in-commit timestamps": (
        "k int, g string",
        "'x'",
        "tblproperties('delta.enableInCommitTimestamps'='true')",
    ),
    "generated": ("k int, g string, u string generated always as (upper(g))", "'x'", ""),
    "varchar": ("k int, g varchar(9)", "'x'", ""),
    "partition int": ("k int, g string, p int", "'x', if(id = 1, null, -id)", "partitioned by (p)"),
    "partition date": (
        "k int, g string, p date",
        "'x', date'1969-12-30' + int(id)",
        "partitioned by (p)",
    ),
    "partition decimal": (
        "k int, g string, p decimal(12,2)",
        "'x', cast(-1.10 * id as decimal(12,2))",
        "partitioned by (p)",
    ),
    "partition double": (
        "k int, g string, p double",
        "'x', if(id = 1, double('NaN'), id / 3)",
        "partitioned by (p)",
    ),
    "partition ntz": (
        "k int, g string, p timestamp_ntz",
        "'x', timestamp_ntz'2024-03-31 02:30:00.000001'",
        "partitioned by (p)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_features_are_read_natively(name: str, spark: Any, tmp_path: Any) -> None:
    columns, values, more = OTHERS[name]
    history = History(spark, str(tmp_path / "t"))
    history.sql(f"create table {{t}} ({columns}) using delta {more}")
    named = "k, g, p" if "partition" in name else "k, g"
    history.sql(f"insert into {{t}} ({named}) select int(id), {values} from range(4)")
    history.sql("update {t} set g = 'y' where k = 2")
    theirs = SparkStorage(spark)
    for version in (1, 2):
        assert bag(history.native.read(history.path, version)) == bag(
            theirs.read(history.path, version)
        )
    wanted = difference(theirs.read(history.path, 2), theirs.read(history.path, 1))
    assert bag(history.native.changes(history.path, 1, 2)) == wanted
    if "partition" not in name or name == "partition decimal":
        with pytest.raises(NativeRefused):
            history.native.append(history.path, None, None)


@pytest.mark.slow
def test_nested_names_are_mapped(spark: Any, tmp_path: Any) -> None:
    history = History(spark, str(tmp_path / "t"))
    history.sql(
        "create table {t} (k int, `S x` struct<a: int, b: array<struct<c: string>>>, "
        "m map<string, struct<d: date>>) using delta "
        "tblproperties('delta.columnMapping.mode'='name','delta.enableDeletionVectors'='true')"
    )
    values = (
        "named_struct('a', int(id), 'b', array(named_struct('c', string(id)), null)), "
        "map('x', named_struct('d', date'2024-01-01'))"
    )
    history.sql(f"insert into {{t}} select int(id), {values} from range(5)")
    history.sql("alter table {t} rename column `S x`.a to z")
    history.sql("alter table {t} add column `S x`.e string")
    history.sql("delete from {t} where k = 3")
    theirs, last = SparkStorage(spark), history.native.latest(history.path)
    assert bag(history.native.read(history.path, last)) == bag(theirs.read(history.path, last))
    gone = history.native.changes(history.path, last - 1, last)
    assert sorted(gone.column("k").to_pylist()) == [3]
    assert bag(gone) == difference(
        theirs.read(history.path, last), theirs.read(history.path, last - 1)
    )


@pytest.mark.slow
def test_files_in_the_old_calendar_are_left_to_spark(spark: Any, tmp_path: Any) -> None:
    path, setting = str(tmp_path / "t"), "spark.sql.parquet.datetimeRebaseModeInWrite"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "LEGACY")
    try:
        spark.sql("select 1 k, date'1000-01-01' d").write.format("delta").save(path)
    finally:
        spark.conf.set(setting, before)
    native, tables = NativeStorage(), Tables(NativeStorage(), lambda: SparkStorage(spark))
    with pytest.raises(NativeRefused):
        native.read(path, 0)
    for storage in (native, ENGINE):
        with pytest.raises(NativeRefused):
            storage.lookup(path, 0, ["d"], "k", pa.array([1], pa.int32()))
    rows, served = tables.read(path, 0)
    assert served.by == "spark"
    assert arrow(rows).column("d").to_pylist()[0].year == 1000
