"""The graph of views on views: the order of a refresh and what a refresh of some views takes in."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import TopologicalSorter

from freshview.errors import ViewCycle, ViewInUse
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


def check_replaceable(catalog: Catalog, name: str, sources: Iterable[str]) -> None:
    """Refuse a new definition of a view that would read itself, or that other views read.

    Asked before anything is computed; the catalog asks for readers again when it is changed.
    """
    views = {view.name: view for view in catalog.views()}
    paths: list[tuple[str, ...]] = [(name, source) for source in sources]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        if path[-1] == name:
            raise ViewCycle(name=name, cycle=" → ".join(path))
        if path[-1] in views and path[-1] not in seen:
            seen.add(path[-1])
            paths.extend((*path, source) for source in views[path[-1]].sources)
    readers = catalog.readers(name)
    if readers:
        raise ViewInUse(name=name, readers=", ".join(readers))


def _with_sources(wanted: Iterable[str], views: dict[str, ViewEntry]) -> set[str]:
    needed: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name in views and name not in needed:
            needed.add(name)
            waiting.extend(views[name].sources)
    return needed
