"""A function that defines a view again: the same view, or another one."""

from __future__ import annotations

from collections.abc import Callable

from freshview.errors import DefinitionChanged
from freshview.planner.strategy import Strategy
from freshview.runtime.catalog import Policy, ViewEntry
from freshview.runtime.commit import Consumed
from freshview.runtime.parts import Parts
from freshview.runtime.recompute_reasons import WITHOUT_STATE, reason_for_full

ConsumedOf = Callable[[ViewEntry], Consumed]


def check_same(
    parts: Parts, consumed_of: ConsumedOf, entry: ViewEntry, strategy: Strategy, function: str
) -> None:
    """Raise DefinitionChanged if what a function defines is another view than the stored one."""
    columns = tuple(a.name for a in strategy.visible)
    reason = None
    if entry.sql is not None:
        reason = "the stored view is defined by SQL text"
    elif (columns, strategy.sources) != (entry.columns, entry.sources):
        reason = f"it reads {strategy.sources} and has the columns {columns}"
    elif _computes_another(parts, consumed_of, entry, strategy):
        reason = "it computes something else from the same tables"
    if reason is not None:
        raise DefinitionChanged(name=entry.name, function=function, reason=reason)


def _computes_another(
    parts: Parts, consumed_of: ConsumedOf, entry: ViewEntry, strategy: Strategy
) -> bool:
    """Whether nothing but another function explains that a strategy is not the view's."""
    try:
        consumed = consumed_of(entry)
        now = {name: parts.sources.pinned(name) for name in entry.sources}
    except WITHOUT_STATE:
        return False  # the next refresh computes the view anew
    reason = reason_for_full(parts, entry, Policy.AUTO, strategy, consumed, now)
    return reason is not None and reason.code == DefinitionChanged.code
