"""Which rows of the tables a derived expression can meet, and by which keys they are found.

A derived expression has leaves whose rows are at hand (deltas, temporaries) and scans of tables.
Going down from the top, each node is asked only for rows that matter: those that join, or that belong
to a touched group. Such a demand is a bound, "only rows whose attribute is among the values of these
columns", and where a bound reaches a scan, its rows are looked up by that key, once the columns are
known: those of the deltas first, then those of rows looked up before, outwards.

What is found is a superset of what matters, and complete for every row that does: an expression
evaluated over it gives the right rows, since each bound is taken from a join, a semijoin or a
selection of the expression itself, which drops whatever else came along. So a lookup never decides a
value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from freshview.algebra.clock import is_clock
from freshview.algebra.relations import Changes, Given, Relation, Scan
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import children, with_children
from freshview.planner.bounds import Bound, Demand, Origin, Range, demands, nothing_demanded

Leaf = Scan | Changes | Given


@dataclass(frozen=True, slots=True)
class Probe:
    """Rows of a leaf whose ``key`` is among the values of an origin.

    ``null_safe`` says that a null key finds the rows with a null, as ``<=>`` does. Where a null is
    among the values of an origin in ``without_null``, the probe must not be used: it would miss
    the padded rows of an outer join.
    """

    key: Attribute
    origin: Origin
    null_safe: bool
    without_null: frozenset[Origin] = frozenset()


Probes = tuple[Probe, ...]


@dataclass(frozen=True, slots=True)
class LookUp:
    """One leaf and the ways to find its rows; without any the leaf is read as a whole.

    All rows that matter are found by any one of the probes, and by any one of the ranges. While one
    of ``needs`` is empty, no row of the leaf matters.
    """

    leaf: Scan
    probes: Probes
    needs: frozenset[Changes | Given] = frozenset()
    ranges: tuple[Range, ...] = ()


def probe_text(leaf: Scan, probe: Probe) -> str:
    """The lookup as text, such as ``orders.o_orderkey ∈ Δlineitem.l_orderkey``."""
    origins = " ∪ ".join(f"{_name(held)}.{a.name}" for held, a in probe.origin.columns)
    return f"{leaf.table}.{probe.key.name} ∈ {origins}"


def range_text(leaf: Scan, held: Range) -> str:
    """The lookup as text, such as ``orders.day between clock1.c2 and clock1.c3``."""
    limits = (f"{held.leaf.name}.{a.name} and {held.leaf.name}.{b.name}" for a, b in held.limits)
    return f"{leaf.table}.{held.attribute.name} between " + ", or ".join(limits)


def _name(leaf: Leaf) -> str:
    match leaf:
        case Changes(table, _):
            return f"Δ{table}"
        case Given(name, _):
            return name
        case Scan(table, _):
            return table


class LookupPlanner:
    """Assigns lookups to the scans of one refresh, step by step.

    Two scans of one table in one state that are found by the same keys are one leaf, read once, in
    whatever steps they occur. ``stored`` names the view's own table, which is read by itself.
    """

    def __init__(self, stored: str) -> None:
        self._stored = stored
        self._known: dict[tuple[object, ...], Scan] = {}
        self._numbers = 0

    def step(self, relation: Relation) -> tuple[Relation, tuple[LookUp, ...]]:
        """The expression with its scans numbered, and all lookups it needs, in an order that works."""
        numbered = self._numbered(relation)
        demanded = dict(demands(numbered, nothing_demanded()))
        merged: dict[Scan, Scan] = {}
        found: dict[Scan, LookUp] = {}
        for lookup in _outwards(demanded, self._stored):
            probes = tuple(replace(p, origin=_moved(p.origin, merged)) for p in lookup.probes)
            probes = tuple(
                replace(p, without_null=frozenset(_moved(o, merged) for o in p.without_null))
                for p in probes
            )
            scan = lookup.leaf
            key = (scan.table, scan.attributes, scan.state, probes, lookup.needs, lookup.ranges)
            leaf = self._known.setdefault(key, scan)
            merged[scan] = leaf
            found[leaf] = replace(lookup, leaf=leaf, probes=probes)
        return _with_leaves(numbered, merged), tuple(found.values())

    def _numbered(self, node: Relation) -> Relation:
        if isinstance(node, Scan):
            if node.table == self._stored:
                return node
            self._numbers += 1
            return replace(node, term=self._numbers)
        return with_children(node, tuple(self._numbered(child) for child in children(node)))


def _outwards(demanded: dict[Leaf, Demand], stored: str) -> Iterator[LookUp]:
    """The scans in an order in which each can be probed by what is known, others last.

    Clocks are known from the start.
    """
    leaves = list(demanded)
    waiting = _Waiting(leaves, [demanded[leaf].bounds for leaf in leaves])
    for place, leaf in enumerate(leaves):
        if not isinstance(leaf, Scan) or leaf.table == stored:
            waiting.learn(place)
        elif is_clock(leaf.table) or demanded[leaf].ranges:
            waiting.is_ready(place)
    while (following := waiting.next()) is not None:
        leaf = leaves[following]
        assert isinstance(leaf, Scan)
        yield LookUp(leaf, waiting.probes(following), demanded[leaf].needs, demanded[leaf].ranges)
        waiting.learn(following)


class _Waiting:
    """Leaves by their places, the bounds of each, and how many leaves each bound still waits for."""

    def __init__(self, leaves: Sequence[Leaf], bounds: Sequence[tuple[Bound, ...]]) -> None:
        self._bounds = bounds
        self._known: set[int] = set()
        self._ready: list[int] = []
        self._first = 0
        self._missing: list[list[int]] = [[] for _ in leaves]
        self._waiting_for: list[list[tuple[int, int]]] = [[] for _ in leaves]
        places = {leaf: place for place, leaf in enumerate(leaves)}
        read: dict[int, frozenset[int]] = {}
        for place, asked in enumerate(bounds):
            for number, bound in enumerate(asked):
                origins = (bound.origin, *bound.without_null)
                for origin in origins:
                    if id(origin) not in read:
                        read[id(origin)] = frozenset(places[held] for held in origin.leaves)
                needed = frozenset[int]().union(*(read[id(origin)] for origin in origins))
                self._missing[place].append(len(needed))
                for other in needed:
                    self._waiting_for[other].append((place, number))

    def learn(self, place: int) -> None:
        """The rows of a leaf are at hand, so that keys can be taken from them."""
        self._known.add(place)
        for waiting, number in self._waiting_for[place]:
            self._missing[waiting][number] -= 1
            if not self._missing[waiting][number] and self._bounds[waiting][number].origin.columns:
                self.is_ready(waiting)

    def is_ready(self, place: int) -> None:
        heappush(self._ready, place)

    def next(self) -> int | None:
        """The first leaf that is ready, else the first one that is not known; None if all are."""
        while self._ready:
            place = heappop(self._ready)
            if place not in self._known:
                return place
        while self._first in self._known:
            self._first += 1
        return self._first if self._first < len(self._bounds) else None

    def probes(self, place: int) -> Probes:
        """The bounds whose values are at hand, each once, as ways to find rows."""
        usable = (
            Probe(b.attribute, b.origin, b.null_safe, b.without_null)
            for b, missing in zip(self._bounds[place], self._missing[place], strict=True)
            if b.origin.columns and not missing
        )
        return tuple(dict.fromkeys(usable))


def _moved(origin: Origin, merged: dict[Scan, Scan]) -> Origin:
    columns = tuple(
        (merged.get(leaf, leaf) if isinstance(leaf, Scan) else leaf, a)
        for leaf, a in origin.columns
    )
    return replace(origin, columns=columns)


def _with_leaves(node: Relation, merged: dict[Scan, Scan]) -> Relation:
    if isinstance(node, Scan):
        return merged.get(node, node)
    return with_children(node, tuple(_with_leaves(child, merged) for child in children(node)))
