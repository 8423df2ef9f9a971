"""Proving a view right: its content against the definition, evaluated at the consumed versions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from freshview.algebra.clock import is_clock
from freshview.algebra.relations import Scan
from freshview.algebra.schema import quoted
from freshview.delta.exactness import has_own_values
from freshview.errors import HistoryLost
from freshview.planner.strategy import Strategy, Technique
from freshview.rewrite.read_clock import fix_clock
from freshview.runtime.catalog import ViewEntry
from freshview.runtime.clock import clocks_of
from freshview.runtime.commit import Consumed, SourceVersion, definition_of
from freshview.runtime.lease import Lease
from freshview.runtime.parts import Parts
from freshview.runtime.recompute import clock_row, evaluated, stored_rows
from freshview.storage.interface import picked

MISSING, EXTRA = "missing", "extra"
_BUCKETS = 10_000
_COPIES = "__copies"
_SIDES = {MISSING: f"{_COPIES} > 0", EXTRA: f"{_COPIES} < 0"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Rows that the view lacks and rows it has too many, as bags, at the versions it names."""

    view: str
    missing: int
    extra: int
    sampled: float | None
    versions: Mapping[str, int]
    ms: float
    examples: tuple[str, ...] = ()
    repaired: int = 0

    @property
    def ok(self) -> bool:
        return self.missing == 0 and self.extra == 0


def by_algebra(parts: Parts, strategy: Strategy, consumed: Consumed) -> DataFrame | None:
    """The view's rows by our algebra, if Spark's own evaluation has no one value to compare with.

    Its sums of doubles and its averages of integers are rounded on the way, and other functions follow
    the order in which rows happen to come (``planner/row_order.py``). None for all other views: they
    are compared with what Spark makes of the definition itself.
    """
    if not has_own_values(strategy.relation):
        return None

    clocks = {name: consumed.sources[name].version for name in clocks_of(consumed.sources)}

    def read(leaf: Scan) -> DataFrame:
        version = consumed.sources[leaf.table].version
        if is_clock(leaf.table):
            return clock_row(parts, leaf, version)
        held = parts.sources.read(leaf.table, version)
        return picked(held, [a.name for a in leaf.attributes])

    return evaluated(parts, fix_clock(strategy.relation, clocks), strategy.visible, read)


def compare(
    entry: ViewEntry,
    strategy: Strategy,
    consumed: Consumed,
    expected: DataFrame,
    actual: DataFrame,
    sample: float | None,
) -> CheckResult:
    """Expected ∸ actual and actual ∸ expected, whole or for a sample of the groups."""
    started = time.perf_counter()
    if sample is not None:
        chosen = _sampled(strategy, expected, sample)
        expected, actual = expected.where(chosen), actual.where(chosen)
    differing = _differing(_comparable(expected), _comparable(actual))
    counts = differing.agg(_copies(MISSING), _copies(EXTRA)).first()
    assert counts is not None
    missing, extra = int(counts[0]), int(counts[1])
    # Evaluated again for the examples: keeping the rows would cost the checks that find nothing.
    examples = [
        f"{kind} {_shown(row)}"
        for kind, found in ((MISSING, missing), (EXTRA, extra))
        for row in (differing.where(_SIDES[kind]).limit(3).collect() if found else ())
    ]
    versions = {name: source.version for name, source in consumed.sources.items()}
    ms = (time.perf_counter() - started) * 1000
    return CheckResult(entry.name, missing, extra, sample, versions, ms, tuple(examples))


def _differing(expected: DataFrame, actual: DataFrame) -> DataFrame:
    """The rows that one bag has more often than the other, with expected minus actual as count.

    Positive counts are ``expected EXCEPT ALL actual``, negative ones ``actual EXCEPT ALL expected``:
    Spark itself evaluates EXCEPT ALL as this union and sum, here once for both ways.
    """
    one, minus_one = (F.lit(sign).cast("long").alias(_COPIES) for sign in (1, -1))
    both = expected.select("*", one).unionAll(actual.select("*", minus_one))
    columns = [quoted(name) for name in expected.columns]
    total = F.sum(_COPIES).alias(_COPIES)
    return both.groupBy(*columns).agg(total).where(F.col(_COPIES) != 0)


def _copies(kind: str) -> Column:
    number = F.when(F.expr(_SIDES[kind]), F.abs(F.col(_COPIES))).otherwise(0)
    return F.coalesce(F.sum(number), F.lit(0)).alias(kind)


def _shown(row: Row) -> dict[str, object]:
    values = row.asDict()
    del values[_COPIES]
    return values


def check_readable(parts: Parts, consumed: Consumed) -> None:
    """What a view was computed from has to be there yet. Raises HistoryLost."""
    for name, source in consumed.sources.items():
        if not parts.sources.pinned(name, source.version).is_same(source):
            reason = "the table there is not the one the view was computed from"
            path, version = parts.sources.path(name), source.version
            raise HistoryLost(path=path, after=version, upto=version, reason=reason)


def repair(
    parts: Parts,
    entry: ViewEntry,
    strategy: Strategy,
    consumed: Consumed,
    held: Lease,
) -> int:
    """Set the stored rows that differ from a recompute, by key; returns how many keys differed.

    Hidden columns are compared too: a wrong count behind a right value would go wrong later.
    """
    assert strategy.technique is not Technique.FULL
    vector: Mapping[str, SourceVersion] = consumed.sources
    path = parts.catalog.path(entry)
    columns = [a.name for a in strategy.stored]
    key = [a.name for a in strategy.key]
    right = stored_rows(parts, strategy, vector)
    stored = parts.tables.spark.read(path, consumed.version, columns)
    upserts = right.exceptAll(stored).persist()
    wrong = stored.exceptAll(right)
    same_key = reduce(
        Column.__and__,
        [F.col(f"w.{quoted(name)}").eqNullSafe(F.col(f"r.{quoted(name)}")) for name in key],
    )
    unknown = wrong.alias("w").join(right.alias("r"), same_key, "left_anti")
    deletes = picked(unknown, key).persist()
    try:
        count = upserts.count() + deletes.count()
        check_readable(parts, consumed)
        if count:
            held.check()
            consumed = replace(consumed, definition=definition_of(entry, strategy))
            commit = consumed.next(entry, vector, "repair", held.fence)
            parts.tables.spark.apply(path, key, upserts, deletes, commit)
        return count
    finally:
        upserts.unpersist()
        deletes.unpersist()


def _sampled(strategy: Strategy, rows: DataFrame, fraction: float) -> Column:
    """A predicate that takes or leaves whole groups, the same on both sides."""
    visible = [a.name for a in strategy.visible]
    shown = [a.name for a in strategy.key if a.name in visible]
    columns = shown if len(shown) == len(strategy.key) and shown else visible
    hashable = [_ordered(F.col(quoted(c)), rows.schema[c].dataType) for c in columns]
    bucket = F.pmod(F.xxhash64(*hashable), F.lit(_BUCKETS))
    return bucket < F.lit(round(fraction * _BUCKETS))


def _comparable(rows: DataFrame) -> DataFrame:
    """The rows with maps as sorted entries and variants as type and text, which can be grouped."""
    return rows.select(
        *[_ordered(F.col(quoted(f.name)), f.dataType).alias(f.name) for f in rows.schema.fields]
    )


def _ordered(value: Column, kind: DataType) -> Column:
    if not _has_no_order(kind):
        return value
    if isinstance(kind, VariantType):
        known = F.struct(F.schema_of_variant(value), F.to_json(value))
    elif isinstance(kind, ArrayType):
        known = F.transform(value, lambda one: _ordered(one, kind.elementType))
    elif isinstance(kind, MapType):
        known = F.array_sort(
            F.transform(
                F.map_entries(value),
                lambda entry: F.struct(
                    _ordered(entry["key"], kind.keyType), _ordered(entry["value"], kind.valueType)
                ),
            )
        )
    else:
        assert isinstance(kind, StructType)
        known = F.struct(*[_ordered(value[f.name], f.dataType) for f in kind.fields])
    return F.when(value.isNotNull(), known)


def _has_no_order(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_no_order(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_no_order(kind.elementType)
    return isinstance(kind, MapType | VariantType)
