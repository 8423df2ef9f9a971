"""A checker apart from the engine: every committed version of every view against plain Spark.

It knows the files of a warehouse and none of freshview's code. A view's definition is run by Spark
over the versions that a commit names, read by Spark from the files that the log lists or by Delta's
time travel, and compared with what that commit left in the view's table, as bags and both ways. Then
the bookkeeping: numbers rise one by one, no data changes without named versions, the versions that one
view and one epoch rest on agree and hold whole transactions, each part of which was written once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)
from pyspark.sql.types import StructField, StructType

from soak.delta_history import LogEntry, history

WRONG = "wrong"
LOST = "lost"
TWICE = "twice"
UNNAMED = "without versions"
MIXED = "mixed versions"
BACKWARDS = "back in time"
HALF = "half a transaction"
STALE = "not the newest"
KINDS = (WRONG, LOST, TWICE, UNNAMED, MIXED, BACKWARDS, HALF, STALE)

_COUNT = "__count"
_SIGN = "__sign"
_CASE = "__case"
_FILE = "__file"
_AT_ONCE = 8
_SETTINGS = {
    # For many tiny queries: compiling them and planning them while they run costs more than it gains.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}

Case = TypeVar("Case")
SignedBag = dict[tuple[object, ...], int]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be."""

    kind: str
    where: str
    what: str


@dataclass(slots=True)
class Verdict:
    """What was looked at, and what was found."""

    versions: int = 0
    epochs: int = 0
    findings: list[Finding] = field(default_factory=list)

    def count(self, kind: str) -> int:
        return sum(finding.kind == kind for finding in self.findings)

    def __str__(self) -> str:
        counts = ", ".join(f"{kind} {self.count(kind)}" for kind in KINDS)
        lines = [f"{self.versions} view versions and {self.epochs} epochs checked: {counts}"]
        lines += [f"  {f.kind}: {f.where}: {f.what}" for f in self.findings[:20]]
        return "\n".join(lines)


class Checker:
    """Checks the history of a warehouse whose refreshers have stopped."""

    def __init__(
        self, root: Path, spark: SparkSession, progress: Callable[[str], object] = lambda _: None
    ) -> None:
        self.root, self.progress = root, progress
        self.spark = spark.newSession()
        for name, value in _SETTINGS.items():
            self.spark.conf.set(name, value)
        newest = max((root / "_freshview" / "catalog").glob("*.json"))
        entries = json.loads(newest.read_text())["entries"]
        self.entries: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in entries}
        self._histories: dict[str, list[LogEntry]] = {}
        self._rows: dict[tuple[str, int], DataFrame] = {}
        self._files: dict[str, pa.Table] = {}

    @cached_property
    def views(self) -> list[str]:
        return [name for name, entry in self.entries.items() if entry["kind"] == "view"]

    def run(self, *, settled: bool = False) -> Verdict:
        """Check every version of every view and every epoch.

        ``settled``: everything was refreshed after the last write, and must show it.
        """
        verdict = Verdict()
        for view in self.views:
            commits = self.history(view)
            verdict.findings += self._bookkeeping(view, commits)
            verdict.findings += self._contents(view, commits)
            verdict.versions += len(commits)
            self.progress(f"{view}: {len(commits)} versions")
        epochs = sorted((self.root / "_freshview" / "epochs").glob("*.json"))
        verdict.findings += self._epochs(epochs)
        verdict.epochs = len(epochs)
        verdict.findings += self._parts(settled)
        if settled:
            verdict.findings += self._stale()
            verdict.findings += self._unrecorded(epochs)
        return verdict

    def path(self, name: str) -> Path:
        return self.root / self.entries[name]["path"]

    def history(self, name: str) -> list[LogEntry]:
        if name not in self._histories:
            self._histories[name] = history(self.path(name))
        return self._histories[name]

    # Contents

    def _contents(self, view: str, commits: Sequence[LogEntry]) -> Iterator[Finding]:
        """Each version against the definition over the sources it names.

        One that names none and claims to change nothing must be as the one before.
        """
        named = [commit for commit in commits if commit.sources is not None]
        for pairs in _in_groups(list(zip([None, *named[:-1]], named, strict=True))):
            cases = [(self.defined(view, c.sources), self.rows(view, c.version)) for _, c in pairs]
            for number, differing in _differing(cases).items():
                yield self._difference(view, *pairs[number], differing)
        quiet = [c for c in commits if c.sources is None and not c.changes_data and c.version]
        for group in _in_groups(quiet):
            cases = [(self.rows(view, c.version - 1), self.rows(view, c.version)) for c in group]
            for number in _differing(cases):
                where = f"{view}@{group[number].version}"
                yield Finding(WRONG, where, "changed without saying so")

    def _difference(
        self, view: str, before: LogEntry | None, commit: LogEntry, differing: SignedBag
    ) -> Finding:
        kind, sources = WRONG, _named(commit)
        if before is not None:
            earlier = self.defined(view, _named(before))
            expected, actual = self.defined(view, sources), self.rows(view, commit.version)
            deltas = _differing([(expected, earlier), (actual, earlier)])
            kind = _likely(deltas.get(0, {}), deltas.get(1, {}))
        shown = "; ".join(f"{copies:+d} × {row}" for row, copies in list(differing.items())[:3])
        where = f"{view}@{commit.version} over {_vector(sources)}"
        return Finding(kind, where, f"definition minus view is {shown}")

    def defined(self, view: str, sources: Mapping[str, tuple[int, str]] | None) -> DataFrame:
        """The view's definition over versions of its sources, by Spark alone."""
        entry = self.entries[view]
        for name, value in entry["settings"].items():
            self.spark.conf.set(name, value)
        for name, (version, _) in (sources or {}).items():
            known = entry["source_columns"][name]
            rows = self.rows(name, version)
            rows.select([c for c in rows.columns if c in known]).createOrReplaceTempView(name)
        return self.spark.sql(entry["sql"])

    def rows(self, name: str, version: int) -> DataFrame:
        """A table at a version, or what a view's table stands for at a version."""
        if (name, version) not in self._rows:
            held = self._held(name, version)
            entry = self.entries[name]
            if entry["kind"] == "view":
                if _COUNT in held.columns:
                    each = F.explode(F.sequence(F.lit(1), F.col(_COUNT).cast("int")))
                    held = held.select("*", each.alias("__copy"))
                held = held.select(entry["columns"])
            self._rows[name, version] = held
        return self._rows[name, version]

    def _held(self, name: str, version: int) -> DataFrame:
        """What a table holds at a version.

        Delta's time travel takes a second for each. Where the log says which files make up a version
        and these hold its rows as they stand, all of them are read at once, by Spark, and told apart
        by the name of their file.
        """
        commit, newest = self.history(name)[version], self.history(name)[-1]
        if not commit.plain or not _extends(newest.schema, commit.schema):
            reader = self.spark.read.format("delta").option("versionAsOf", version)
            held = reader.load(str(self.path(name)))
            return self.spark.createDataFrame(held.toArrow(), held.schema)
        if name not in self._files:
            schema = StructType.fromJson(json.loads(newest.schema))
            files = frozenset().union(*(each.files for each in self.history(name)))
            places = [str(self.path(name) / file) for file in sorted(files)]
            read = self.spark.read.schema(_nullable(schema)).parquet(*places)
            self._files[name] = read.select(
                "*", F.col("_metadata.file_name").alias(_FILE)
            ).toArrow()
        rows = self._files[name]
        mine = pa.array([Path(file).name for file in commit.files], pa.string())
        schema = _nullable(StructType.fromJson(json.loads(commit.schema)))
        kept = rows.filter(pc.is_in(rows[_FILE].cast(pa.string()), mine)).select(schema.names)
        return self.spark.createDataFrame(kept, schema)

    # Bookkeeping

    def _bookkeeping(self, view: str, commits: Sequence[LogEntry]) -> Iterator[Finding]:
        last_number, last_sources = 0, {}
        for commit in commits:
            where = f"{view}@{commit.version}"
            if commit.sources is None or commit.number is None:
                if commit.changes_data or commit.named is not None:
                    yield Finding(UNNAMED, where, "rows changed, and no versions are named")
                continue
            yield from self._names(view, where, commit.sources)
            if commit.number != last_number + 1:
                kind = TWICE if commit.number <= last_number else LOST
                yield Finding(kind, where, f"commit {commit.number} follows {last_number}")
            last_number = commit.number
            for name, (version, table) in commit.sources.items():
                before = last_sources.get(name)
                if before is not None and before[1] == table and before[0] > version:
                    yield Finding(BACKWARDS, where, f"{name} {before[0]} → {version}")
            last_sources = commit.sources
            base = self.base(view, commit.version)
            yield from self._agreement(where, base)
            yield from self._halves(where, base)

    def _names(
        self, view: str, where: str, sources: Mapping[str, tuple[int, str]]
    ) -> Iterator[Finding]:
        """A commit names a version of each source, and of the table that has this version."""
        if sources.keys() != set(self.entries[view]["sources"]):
            yield Finding(UNNAMED, where, f"it names versions of {sorted(sources)} only")
        for name, (version, table) in sources.items():
            held = self.history(name)
            if version >= len(held) or held[version].table != table:
                yield Finding(UNNAMED, where, f"{name} {version} is not of the table {table}")

    def _stale(self) -> Iterator[Finding]:
        """Views that do not rest on the newest version of a table in which data changed."""
        for view in self.views:
            for table, versions in self.base(view, len(self.history(view)) - 1).items():
                newest = max(c.version for c in self.history(table) if c.changes_data)
                if min(version for version, _ in versions) < newest:
                    yield Finding(STALE, view, f"rests on {table} {versions}, which has {newest}")

    def _unrecorded(self, epochs: Sequence[Path]) -> Iterator[Finding]:
        """Views whose newest version is in no epoch."""
        last: dict[str, Mapping[str, Any]] = {}
        for file in epochs:
            last |= json.loads(file.read_text())["views"]
        for view in self.views:
            newest = [commit for commit in self.history(view) if commit.sources is not None][-1]
            held = last.get(view, {"version": -1, "table": ""})
            if held["version"] < newest.version or held["table"] != newest.table:
                yield Finding(STALE, view, f"has {newest.version}, and the last epoch {held}")

    def _parts(self, settled: bool) -> Iterator[Finding]:
        """Each part of a transaction is written once, and in the end all of them are."""
        written = Counter(
            (mark["transaction"], mark["of"], name, mark["part"]) for name, _, mark in self._marks()
        )
        parts: Counter[tuple[str, int]] = Counter()
        for (identity, of, name, part), times in written.items():
            parts[identity, of] += 1
            if times > 1:
                yield Finding(TWICE, f"{name}, {identity}", f"{part} is there {times} times")
        for (identity, of), there in parts.items():
            if settled and there < of:
                yield Finding(HALF, identity, f"{there} of its {of} parts are there")

    def _marks(self) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
        """The commits of transactions of freshview's: table, version, and what they say of them."""
        for name, entry in self.entries.items():
            for commit in self.history(name) if entry["kind"] == "table" else ():
                mark = {} if commit.named is None else commit.named.get("metadata", {})
                if "transaction" in mark:
                    yield name, commit.version, mark

    @cached_property
    def transactions(self) -> dict[str, dict[str, int]]:
        """Each transaction of freshview's, with the version of each table that has all of it."""
        found: dict[str, dict[str, int]] = {}
        for name, version, mark in self._marks():
            found.setdefault(mark["transaction"], {})[name] = version
        return found

    def _halves(self, where: str, base: Mapping[str, set[tuple[int, str]]]) -> Iterator[Finding]:
        """Transactions that some of these versions have and others have not."""
        versions = {name: min(version for version, _ in found) for name, found in base.items()}
        for identity, parts in self.transactions.items():
            has = {versions[name] >= part for name, part in parts.items() if name in versions}
            if len(has) > 1:
                yield Finding(HALF, where, f"{identity} over {sorted(parts)} at {versions}")

    def base(self, name: str, version: int) -> dict[str, set[tuple[int, str]]]:
        """The base versions that a version of a table or view rests on, by every way down."""
        commits = self.history(name)
        if self.entries[name]["kind"] == "table":
            return {name: {(version, commits[version].table)}}
        found: dict[str, set[tuple[int, str]]] = {}
        sources = next(s for c in reversed(commits[: version + 1]) if (s := c.sources) is not None)
        for source, (at, table) in sources.items():
            below = {source: {(at, table)}}
            if self.entries[source]["kind"] == "view":
                below = self.base(source, at)
            for base, versions in below.items():
                found.setdefault(base, set()).update(versions)
        return found

    def _agreement(self, where: str, base: Mapping[str, set[tuple[int, str]]]) -> Iterator[Finding]:
        for name, versions in base.items():
            if len(versions) > 1:
                yield Finding(MIXED, where, f"{name} at {sorted(v for v, _ in versions)}")

    def _epochs(self, files: Sequence[Path]) -> Iterator[Finding]:
        """The views of an epoch rest on its tables and on no other versions of them."""
        last: dict[str, int] = {}
        for file in files:
            epoch, where = json.loads(file.read_text()), f"epoch {int(file.stem)}"
            found = {
                name: {(held["version"], held["table"])} for name, held in epoch["tables"].items()
            }
            for name, held in epoch["tables"].items():
                if held["version"] < last.get(name, 0):
                    yield Finding(BACKWARDS, where, f"{name} {last[name]} → {held['version']}")
                last[name] = held["version"]
            for view, held in epoch["views"].items():
                if view not in self.entries or held["table"] != self.history(view)[-1].table:
                    continue  # the view was dropped or replaced since
                if held["version"] >= len(self.history(view)):
                    yield Finding(UNNAMED, where, f"{view} has no version {held['version']}")
                    continue
                if held["version"] < last.get(view, 0):
                    yield Finding(BACKWARDS, where, f"{view} {last[view]} → {held['version']}")
                last[view] = held["version"]
                for name, versions in self.base(view, held["version"]).items():
                    found.setdefault(name, set()).update(versions)
            yield from self._agreement(where, found)
            yield from self._halves(where, found)


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(field.name, field.dataType) for field in schema])


def _extends(newest: str, schema: str) -> bool:
    """Whether a schema has every column of an earlier one, with the same type."""
    types = {field["name"]: field["type"] for field in json.loads(newest)["fields"]}
    return all(types.get(field["name"]) == field["type"] for field in json.loads(schema)["fields"])


def _in_groups(cases: list[Case]) -> Iterator[list[Case]]:
    for start in range(0, len(cases), _AT_ONCE):
        yield cases[start : start + _AT_ONCE]


def _named(commit: LogEntry) -> dict[str, tuple[int, str]]:
    assert commit.sources is not None
    return commit.sources


def _vector(sources: Mapping[str, tuple[int, str]]) -> str:
    return ", ".join(f"{name} {version}" for name, (version, _) in sources.items())


def _differing(cases: Sequence[tuple[DataFrame, DataFrame]]) -> dict[int, SignedBag]:
    """For each case that differs: the copies that the first has more than the second, by row."""
    sides = [
        side.select("*", F.lit(sign).alias(_SIGN), F.lit(number).alias(_CASE))
        for number, (expected, actual) in enumerate(cases)
        for side, sign in ((expected, 1), (actual, -1))
    ]
    rows = reduce(DataFrame.unionAll, sides)
    columns = [F.col(f"`{name}`") for name in rows.columns if name != _SIGN]
    found = rows.groupBy(*columns).agg(F.sum(_SIGN).alias(_SIGN)).where(f"{_SIGN} <> 0")
    differing: dict[int, SignedBag] = {}
    for row in found.collect():
        *values, number, copies = tuple(row)
        differing.setdefault(number, {})[tuple(values)] = copies
    return differing


def _likely(wanted: SignedBag, made: SignedBag) -> str:
    """Whether a wrong delta looks as if it were dropped or applied twice."""
    twice = {name: 2 * value for name, value in _weight(wanted).items()}
    if not any(_weight(made).values()):
        return LOST
    return TWICE if _weight(made) == twice else WRONG


def _weight(delta: SignedBag) -> dict[object, float]:
    """The rows and the sum of each numeric column that a signed bag adds."""
    total: Counter[object] = Counter()
    for row, copies in delta.items():
        total["rows"] += copies
        for place, value in enumerate(row):
            if isinstance(value, int | float | Decimal):
                total[place] += float(value) * copies
    return {name: round(value, 6) for name, value in total.items()}
