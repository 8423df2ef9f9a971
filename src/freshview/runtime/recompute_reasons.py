"""The reasons to recompute a view that can be told before any change is read."""

from __future__ import annotations

from collections.abc import Mapping

from freshview.algebra.clock import is_clock
from freshview.algebra.schema import quoted
from freshview.errors import (
    DefinitionChanged,
    DefinitionUnavailable,
    HistoryLost,
    NotFresh,
    SettingsDiffer,
    TableMissing,
)
from freshview.planner.strategy import Strategy, Technique
from freshview.reasons import Reason
from freshview.runtime.catalog import Policy, ViewEntry
from freshview.runtime.commit import Consumed, SourceVersion, definition_of
from freshview.runtime.parts import Parts
from freshview.runtime.schema_changes import changed_schema

WITHOUT_STATE = (NotFresh, HistoryLost, TableMissing)
"""What keeps a view's own last commit from being read, so that the view is computed anew."""

_ONCE = "refresh it once with --full: then it is incremental again"


def reason_for_full(
    parts: Parts,
    entry: ViewEntry,
    policy: Policy,
    strategy: Strategy,
    consumed: Consumed,
    vector: Mapping[str, SourceVersion],
) -> Reason | None:
    """Why no delta would do, None if one will.

    A recompute was asked for, or a source is another table than the one the view was computed from,
    or has other columns, or the function of the view is another one, or its technique.
    """
    if policy is Policy.FULL:
        return Reason(
            "POLICY_FULL",
            "the refresh",
            "a full recompute was asked for",
            f"refresh without --full, and {set_policy(entry.name, Policy.AUTO)}",
        )
    for name, source in vector.items():
        if is_clock(name):
            continue  # it may go back, and that is a change like any other
        before = consumed.sources.get(name)
        if before is None or not _follows(parts, name, before, source):
            return Reason(
                "SOURCE_REPLACED",
                name,
                "the table at its place is not the one the view was computed from",
                _ONCE,
            )
    reason = changed_schema(parts.sources, strategy, consumed.sources, vector)
    if reason is None and consumed.definition not in ("", definition_of(entry, strategy)):
        return Reason(
            DefinitionChanged.code,
            entry.name,
            "its function defines something else than when the view was computed",
            _ONCE,
        )
    if reason is None and not _is_stored_so(parts, entry, strategy, consumed):
        return Reason(
            "STORED_OTHERWISE",
            entry.name,
            "it is to be kept by another technique than the one it was stored for",
            _ONCE,
        )
    return reason


def set_policy(view: str, policy: Policy) -> str:
    """The statement that gives a view another policy."""
    return f"ALTER MATERIALIZED VIEW {quoted(view)} SET POLICY {policy.value}"


def _is_stored_so(parts: Parts, entry: ViewEntry, strategy: Strategy, consumed: Consumed) -> bool:
    """Whether the backing table has the columns that the technique needs, and they mean the same."""
    if consumed.layout not in ("", strategy.layout_name):
        return False
    held = parts.tables.state(parts.catalog.path(entry), consumed.version).arrow_schema.names
    return set(held) == {attribute.name for attribute in strategy.stored}


def _follows(parts: Parts, name: str, before: SourceVersion, now: SourceVersion) -> bool:
    """Whether a state of a table is part of the history that led to a later one."""
    if before.table_id != now.table_id or before.version > now.version:
        return False
    known = parts.sources.identity(name, before.version)
    return before.is_same(SourceVersion(before.version, now.table_id, known))


def is_redefined(parts: Parts, entry: ViewEntry, consumed: Consumed) -> bool:
    """Whether a view that has consumed everything has another function than when it did."""
    if not consumed.definition:
        return False
    try:
        return consumed.definition != definition_of(entry, parts.strategy(entry, consumed.sources))
    except (DefinitionUnavailable, SettingsDiffer):
        return False  # this process cannot tell, and without changes it does not have to


def is_repaired_whole(
    parts: Parts, entry: ViewEntry, strategy: Strategy, consumed: Consumed
) -> bool:
    """Whether what is stored cannot be set right row by row, only computed anew."""
    return (
        strategy.technique is Technique.FULL
        or is_redefined(parts, entry, consumed)
        or not _is_stored_so(parts, entry, strategy, consumed)
    )
