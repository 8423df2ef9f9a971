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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

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
    known: set[Leaf] = {
        leaf for leaf in demanded if not isinstance(leaf, Scan) or leaf.table == stored
    }
    waiting = [leaf for leaf in demanded if isinstance(leaf, Scan) and leaf not in known]
    while waiting:
        found = [(leaf, _probes(demanded[leaf].bounds, known)) for leaf in waiting]
        leaf, probes = next(
            (
                (leaf, probes)
                for leaf, probes in found
                if is_clock(leaf.table) or probes or demanded[leaf].ranges
            ),
            found[0],
        )
        yield LookUp(leaf, probes, demanded[leaf].needs, demanded[leaf].ranges)
        waiting.remove(leaf)
        known.add(leaf)


def _probes(bounds: Iterable[Bound], known: set[Leaf]) -> Probes:
    """The bounds whose values are at hand, each once, as ways to find rows."""
    usable = (
        Probe(b.attribute, b.origin, b.null_safe, b.without_null)
        for b in bounds
        if b.origin.columns
        and b.origin.leaves <= known
        and all(o.leaves <= known for o in b.without_null)
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
