"""The graph of views on views: the order of a refresh and what a refresh of some views takes in."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import TopologicalSorter

from freshview.runtime.catalog import Catalog, ViewEntry


def refresh_order(catalog: Catalog, wanted: Iterable[str] | None = None) -> tuple[ViewEntry, ...]:
    """The wanted views and every view they read, each after what it reads; all views if None."""
    views = {view.name: view for view in catalog.views()}
    needed = set(views) if wanted is None else _with_sources(wanted, views)
    graph = {name: set(views[name].sources) & needed for name in sorted(needed)}
    return tuple(views[name] for name in TopologicalSorter(graph).static_order())


def base_tables(catalog: Catalog, views: Iterable[ViewEntry]) -> tuple[str, ...]:
    """The tables at the bottom of these views, each once."""
    names = {view.name for view in catalog.views()}
    return tuple(dict.fromkeys(s for view in views for s in view.sources if s not in names))


def _with_sources(wanted: Iterable[str], views: dict[str, ViewEntry]) -> set[str]:
    needed: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in views and name not in needed:
            needed.add(name)
            waiting.extend(views[name].sources)
    return needed
