"""A checker apart from the engine: every committed version of every view against plain Spark.

It knows the files of a warehouse and none of freshview's code. A view's definition is run by Spark
over the versions that a commit names, read by Spark from the files that the log lists or by Delta's
time travel, and compared with what that commit left in the view's table, as bags and both ways, with
its hidden columns and the types of all. Then the bookkeeping: the catalog (`catalog_states.py`), the
commits of each view (`commit_check.py`), the epochs (`epoch_check.py`) and the transactions
(`transaction_check.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)
from pyspark.sql.types import StructField, StructType

from soak.bags import SignedBag, differing, likely, shown
from soak.commit_check import CommitCheck
from soak.delta_history import LogEntry
from soak.epoch_check import EpochCheck
from soak.findings import COLUMNS, HIDDEN, LOST, WRONG, Finding, Verdict
from soak.transaction_check import TransactionCheck
from soak.warehouse_history import WarehouseHistory

_COUNT = "__count"
_FILE = "__file"
_AT_ONCE = 8
_SETTINGS = {
    # For many tiny queries: compiling them and planning them while they run costs more than it gains.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}

Case = TypeVar("Case")
Sources = Mapping[str, tuple[int, str]]
Hidden = Mapping[str, Mapping[str, str]]
"""For each aggregate view its hidden columns, as SQL beside the columns of its definition."""


class Checker:
    """Checks the history of a warehouse whose refreshers have stopped."""

    def __init__(
        self,
        root: Path,
        spark: SparkSession,
        progress: Callable[[str], object] = lambda _: None,
        hidden: Hidden | None = None,
    ) -> None:
        self.progress, self.hidden = progress, hidden or {}
        self.spark = spark.newSession()
        for name, value in _SETTINGS.items():
            self.spark.conf.set(name, value)
        self.warehouse = WarehouseHistory(root)
        self.entries = self.warehouse.entries
        self.transactions = TransactionCheck(self.warehouse)
        self.commits = CommitCheck(self.warehouse, self.transactions)
        self.epochs = EpochCheck(self.warehouse, self.transactions)
        self._rows: dict[tuple[str, int], DataFrame] = {}
        self._helds: dict[tuple[str, int], DataFrame] = {}
        self._files: dict[str, pa.Table] = {}
        self._wanted: dict[tuple[str, ...], dict[str, str]] = {}

    def run(self, *, settled: bool = False, expected: Collection[str] = ()) -> Verdict:
        """Check every version of every view and every epoch.

        ``settled``: everything was refreshed after the last write, and must show it. ``expected``:
        the views that must be there, because they were made and not dropped.
        """
        verdict = Verdict()
        verdict.findings += self.warehouse.catalog.check(expected)
        for view in self.warehouse.views:
            commits = self.warehouse.history(view)
            if not commits:
                verdict.findings.append(Finding(LOST, view, "has no table"))
                continue
            verdict.findings += self.commits.commits(view)
            verdict.findings += self.commits.fences(view)
            verdict.findings += self._contents(view, commits)
            verdict.views.append(view)
            verdict.versions += len(commits)
            verdict.gone += sum(
                c.sources is not None and not self.warehouse.is_left(c.sources) for c in commits
            )
            if view not in self.hidden and self._is_hidden(view, commits[-1]):
                verdict.unstated.append(view)
            self.progress(f"{view}: {len(commits)} versions")
        verdict.findings += self.epochs.check()
        verdict.epochs = len(self.epochs.epochs)
        verdict.findings += self.transactions.parts(settled)
        if settled:
            verdict.findings += self.commits.stale()
            verdict.findings += self.epochs.unrecorded()
        return verdict

    def _is_hidden(self, view: str, commit: LogEntry) -> bool:
        """Whether a view's table has hidden columns other than the count of each row."""
        known = {*self.entries[view]["columns"], _COUNT}
        return any(name not in known for name in _types(commit.schema))

    def _contents(self, view: str, commits: Sequence[LogEntry]) -> Iterator[Finding]:
        """Each version against the definition over the sources it names.

        One that names none and claims to change nothing must be as the one before.
        """
        named = [c for c in commits if c.sources is not None and self.warehouse.is_left(c.sources)]
        stored = _quoted(self._columns(view))
        for pairs in _in_groups(list(zip([None, *named[:-1]], named, strict=True))):
            fitting, cases = [], []
            for before, commit in pairs:
                expected = self.stored(view, _named(commit))
                misfit = self._misfit(view, expected, commit)
                if misfit:
                    yield Finding(COLUMNS, f"{view}@{commit.version}", misfit)
                    continue
                fitting.append((before, commit))
                cases.append((expected, self.held(view, commit.version).select(stored)))
            for number, bag in differing(cases).items():
                yield self._difference(view, *fitting[number], bag)
        quiet = [c for c in commits if c.sources is None and not c.changes_data and c.version]
        for commit in quiet:
            if _types(commit.schema) != _types(commits[commit.version - 1].schema):
                yield Finding(COLUMNS, f"{view}@{commit.version}", "changed without saying so")
        same = [c for c in quiet if _types(c.schema) == _types(commits[c.version - 1].schema)]
        for group in _in_groups(same):
            cases = [(self.held(view, c.version - 1), self.held(view, c.version)) for c in group]
            for number in differing(cases):
                where = f"{view}@{group[number].version}"
                yield Finding(WRONG, where, "changed without saying so")

    def _misfit(self, view: str, expected: DataFrame, commit: LogEntry) -> str:
        """The columns that a version has otherwise than it should, nullability aside."""
        schemas = (
            self.warehouse.history(name)[version].schema
            for name, (version, _) in _named(commit).items()
        )
        key = (view, *schemas)
        if key not in self._wanted:
            kinds = [field.dataType.simpleString() for field in expected.schema]
            self._wanted[key] = dict(zip(self._columns(view), kinds, strict=True))
        wanted, held = self._wanted[key], _types(commit.schema)
        if not self.entries[view]["counted"] and view not in self.hidden:
            held = {name: kind for name, kind in held.items() if name in wanted}
        return ", ".join(
            f"{name} is {held.get(name)}, not {wanted.get(name)}"
            for name in {**wanted, **held}
            if held.get(name) != wanted.get(name)
        )

    def _difference(
        self, view: str, before: LogEntry | None, commit: LogEntry, bag: SignedBag
    ) -> Finding:
        sources = _named(commit)
        where = f"{view}@{commit.version} over {_vector(sources)}"
        expected, actual = self.defined(view, sources), self.rows(view, commit.version)
        visible = differing([(expected, actual)])
        if not visible:
            return Finding(HIDDEN, where, f"what should be stored minus what is: {shown(bag)}")
        kind = WRONG
        if before is not None:
            earlier = self.defined(view, _named(before))
            deltas = differing([(expected, earlier), (actual, earlier)])
            kind = likely(deltas.get(0, {}), deltas.get(1, {}))
        return Finding(kind, where, f"definition minus view is {shown(visible[0])}")

    def defined(self, view: str, sources: Sources, hidden: str = "") -> DataFrame:
        """The view's definition over versions of its sources, by Spark alone.

        ``hidden``: more columns, put before those of the definition.
        """
        entry = self.entries[view]
        for name, value in entry["settings"].items():
            self.spark.conf.set(name, value)
        for name, (version, _) in sources.items():
            known = entry["source_columns"][name]
            rows = self.rows(name, version)
            rows.select([c for c in known if c in rows.columns]).createOrReplaceTempView(name)
        assert not hidden or entry["sql"].startswith("SELECT "), f"{view} is no plain SELECT"
        return self.spark.sql(entry["sql"].replace("SELECT ", f"SELECT {hidden}", 1))

    def stored(self, view: str, sources: Sources) -> DataFrame:
        """What the view's table must hold over versions of its sources, as far as that is known."""
        hidden = self.hidden.get(view, {}).items()
        added = "".join(f"{expression} AS {name}, " for name, expression in hidden)
        rows = self.defined(view, sources, added)
        if self.entries[view]["counted"]:
            few = rows.coalesce(1)  # so that grouping them needs no shuffle
            return few.groupBy(*_quoted(rows.columns)).agg(F.count("*").alias(_COUNT))
        return rows

    def _columns(self, view: str) -> list[str]:
        """The names of what must be stored, in the order of `stored`."""
        entry = self.entries[view]
        return [*self.hidden.get(view, {}), *entry["columns"], *([_COUNT] * entry["counted"])]

    def rows(self, name: str, version: int) -> DataFrame:
        """A table at a version, or what a view's table stands for at a version."""
        if (name, version) not in self._rows:
            held = self.held(name, version)
            entry = self.entries[name]
            if entry["kind"] == "view":
                if _COUNT in held.columns:
                    each = F.explode(F.array_repeat(F.lit(1), F.col(_COUNT).cast("int")))
                    held = held.select("*", each.alias("__copy"))
                held = held.select(_quoted(entry["columns"]))
            self._rows[name, version] = held
        return self._rows[name, version]

    def held(self, name: str, version: int) -> DataFrame:
        """What a table holds at a version."""
        if (name, version) not in self._helds:
            self._helds[name, version] = self._read(name, version)
        return self._helds[name, version]

    def _read(self, name: str, version: int) -> DataFrame:
        """What a table holds at a version.

        Delta's time travel takes a second for each. Where the log says which files make up a version
        and these hold its rows as they stand, all of them are read at once, by Spark, and told apart
        by the name of their file.
        """
        commits, path = self.warehouse.history(name), self.warehouse.path(name)
        commit, newest = commits[version], commits[-1]
        if not _is_read_with(newest, commit):
            reader = self.spark.read.format("delta").option("versionAsOf", version)
            held = reader.load(str(path))
            return self.spark.createDataFrame(held.toArrow(), held.schema)
        if name not in self._files:
            schema = StructType.fromJson(json.loads(newest.schema))
            files = frozenset().union(*(c.files for c in commits if _is_read_with(newest, c)))
            places = [str(path / file) for file in sorted(files)]
            read = self.spark.read.schema(_nullable(schema)).parquet(*places)
            self._files[name] = read.select(
                "*", F.col("_metadata.file_name").alias(_FILE)
            ).toArrow()
        rows = self._files[name]
        mine = pa.array([Path(file).name for file in commit.files], pa.string())
        schema = _nullable(StructType.fromJson(json.loads(commit.schema)))
        kept = rows.filter(pc.is_in(rows[_FILE].cast(pa.string()), mine)).select(schema.names)
        return self.spark.createDataFrame(kept, schema)


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(field.name, field.dataType) for field in schema])


def _is_read_with(newest: LogEntry, commit: LogEntry) -> bool:
    """Whether the files of a version hold its rows as they stand, in columns that are still there."""
    return commit.plain and _types(commit.schema).items() <= _types(newest.schema).items()


@lru_cache
def _types(schema: str) -> dict[str, str]:
    """The type of each column, from Spark's JSON; whether it may be null is left out."""
    fields = StructType.fromJson(json.loads(schema))
    return {field.name: field.dataType.simpleString() for field in fields}


def _quoted(columns: Sequence[str]) -> list[str]:
    return [f"`{name}`" for name in columns]


def _in_groups(cases: list[Case]) -> Iterator[list[Case]]:
    for start in range(0, len(cases), _AT_ONCE):
        yield cases[start : start + _AT_ONCE]


def _named(commit: LogEntry) -> Sources:
    assert commit.sources is not None
    return commit.sources


def _vector(sources: Sources) -> str:
    return ", ".join(f"{name} {version}" for name, (version, _) in sources.items())
