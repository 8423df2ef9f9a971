"""What a refresh does to a view's backing table, and what it hands to the views above."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that Spark's users know)

from freshview.algebra.schema import EXTENT_COUNT_NAME, quoted
from freshview.change_table.refresh_operator import KEEP_NAME, WAS_NAME, old_name
from freshview.change_table.row_layout import OLD_COUNT_NAME
from freshview.counting.refresh import CHANGE_NAME
from freshview.planner.strategy import Strategy
from freshview.storage.consolidate import consolidated
from freshview.storage.interface import COUNT, Rows, picked


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rows to set, keys to delete, and the view's delta in its visible columns.

    ``only_new`` says that nothing is deleted and that no row to be set is stored already.
    """

    upserts: Rows
    deletes: Rows
    delta: Rows
    only_new: bool = False


def outcome(strategy: Strategy, touched: Rows) -> Outcome:
    """Split the evaluated refresh operator into what is set, deleted and handed on."""
    stored = [a.name for a in strategy.stored]
    key = [a.name for a in strategy.key]
    visible = [a.name for a in strategy.visible]
    if isinstance(touched, pa.Table):
        if strategy.is_counted:
            return _counted(touched, stored, key, visible)
        return _grouped(touched, stored, key, visible, strategy.has_copies)
    if strategy.is_counted:
        return _counted_by_spark(touched, stored, key, visible)
    return _grouped_by_spark(touched, stored, key, visible, strategy.has_copies)


def _counted(touched: pa.Table, stored: list[str], key: list[str], visible: list[str]) -> Outcome:
    gone = pc.equal(touched[EXTENT_COUNT_NAME], 0)
    delta = touched.select([*visible, CHANGE_NAME]).rename_columns([*visible, COUNT])
    new = pc.equal(touched[EXTENT_COUNT_NAME], touched[CHANGE_NAME])
    return Outcome(
        touched.filter(pc.invert(gone)).select(stored),
        touched.filter(gone).select(key),
        delta,
        touched.num_rows == 0 or pc.all(new).as_py(),
    )


def _grouped(
    touched: pa.Table, stored: list[str], key: list[str], visible: list[str], with_copies: bool
) -> Outcome:
    keep, was = touched[KEEP_NAME], touched[WAS_NAME]
    kept, gone = touched.filter(keep), touched.filter(was)
    before = gone.select([old_name(i) for i in range(len(visible))]).rename_columns(visible)
    counts = [pa.array([1] * rows.num_rows, pa.int64()) for rows in (kept, before)]
    if with_copies:
        counts = [kept[EXTENT_COUNT_NAME], gone[OLD_COUNT_NAME]]
    after = kept.select(visible).append_column(pa.field(COUNT, pa.int64()), counts[0])
    less = before.append_column(pa.field(COUNT, pa.int64()), pc.negate_checked(counts[1]))
    delta = pa.concat_tables([after, less.cast(after.schema)])
    deletes = touched.filter(pc.and_(was, pc.invert(keep))).select(key)
    return Outcome(kept.select(stored), deletes, consolidated(delta), gone.num_rows == 0)


def _counted_by_spark(
    touched: DataFrame, stored: list[str], key: list[str], visible: list[str]
) -> Outcome:
    gone = F.col(EXTENT_COUNT_NAME) == 0
    delta = touched.select(*map(quoted, visible), F.col(CHANGE_NAME).alias(COUNT))
    return Outcome(
        picked(touched.where(~gone), stored),
        picked(touched.where(gone), key),
        delta,
    )


def _grouped_by_spark(
    touched: DataFrame, stored: list[str], key: list[str], visible: list[str], with_copies: bool
) -> Outcome:
    keep, was = F.col(KEEP_NAME), F.col(WAS_NAME)
    one = F.lit(1).cast("bigint")
    more = F.col(EXTENT_COUNT_NAME) if with_copies else one
    less = -F.col(OLD_COUNT_NAME) if with_copies else -one
    new = touched.where(keep).select(*map(quoted, visible), more.alias(COUNT))
    renamed = [F.col(old_name(i)).alias(column) for i, column in enumerate(visible)]
    old = touched.where(was).select(*renamed, less.alias(COUNT))
    deletes = picked(touched.where(was & ~keep), key)
    delta = new.unionAll(old).where(F.col(COUNT) != 0)
    return Outcome(picked(touched.where(keep), stored), deletes, delta)
