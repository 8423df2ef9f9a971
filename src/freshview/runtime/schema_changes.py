"""Sources whose columns are no longer what they were when a view was computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from freshview.algebra.clock import is_clock
from freshview.errors import HistoryLost
from freshview.planner.plan import source_columns
from freshview.planner.strategy import Strategy
from freshview.reasons import Reason
from freshview.runtime.commit import SourceVersion
from freshview.runtime.sources import Sources
from freshview.storage.columns import Column, columns_of


def changed_schema(
    sources: Sources,
    strategy: Strategy,
    before: Mapping[str, SourceVersion],
    now: Mapping[str, SourceVersion],
) -> Reason | None:
    """The reason to recompute if a column that the view reads has changed, else None.

    Rows of a column that had another type, or another place in the files, cannot be compared with
    those of today. What is not read may change as it likes.
    """
    for name, source in now.items():
        if is_clock(name):
            continue
        versions = (before[name].version, source.version)
        if versions[0] != versions[1]:
            for column, why in _changed(sources, name, *versions, source_columns(strategy, name)):
                return Reason(
                    "SOURCE_SCHEMA_CHANGED",
                    f"{name}.{column}",
                    f"column {column} of {name} {why}",
                    "refresh the view once in full: then it is incremental again",
                )
    return None


def _changed(
    sources: Sources, name: str, after: int, upto: int, read: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    try:
        old = {c.name: c for c in columns_of(sources.state(name, after), None)}
    except HistoryLost:
        return  # reading the changes will say so
    new = {c.name: c for c in columns_of(sources.state(name, upto), None)}
    for column in read:
        if column not in old:
            yield column, "was added since"
        elif column in new and old[column].definition != new[column].definition:
            yield column, _difference(old[column], new[column])
    if sources.is_counted(name, after) != sources.is_counted(name, upto):
        yield read[0] if read else "*", "is kept in another way since a type has changed"


def _difference(old: Column, new: Column) -> str:
    if old.spark_type != new.spark_type:
        return f"was {_shown(old.spark_type)} and is {_shown(new.spark_type)}"
    if old.padded != new.padded:
        return f"was {old.padded or 'not padded'} and is {new.padded or 'not padded'}"
    if old.physical != new.physical:
        return "is another column of the same name"
    return "came to be a partition" if new.partition else "is no partition any more"


def _shown(kind: Any) -> str:
    return kind if isinstance(kind, str) else "another nested type"
