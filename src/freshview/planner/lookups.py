"""Which rows of the other operands a delta can meet, and by which keys they are found.

A term of a delta is an SPJ expression with one changed leaf. Every other leaf is needed only where
it joins: its rows are looked up by a key whose values are known already, first those of the delta,
then those of rows looked up before, outwards. What is found is a superset of what joins; Spark
evaluates the term over it, so a lookup never decides a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from freshview.algebra.expressions import Call, Expression, conjuncts, equality
from freshview.algebra.relations import Changes, Join, Project, Relation, Scan, Select, Values
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import children, scans, transform_up, walk, with_children


@dataclass(frozen=True, slots=True)
class Probe:
    """Rows of a leaf whose ``key`` is among the values of ``source``, an attribute known before.

    ``null_safe`` says that a null key finds the rows with a null, as ``<=>`` does.
    """

    key: Attribute
    source: Attribute
    source_table: str
    null_safe: bool


Probes = tuple[Probe, ...]
Classes = dict[Attribute, frozenset[Attribute]]


def probe_text(leaf: Scan, probe: Probe) -> str:
    """The lookup as text, such as ``orders.o_orderkey ∈ Δlineitem.l_orderkey``."""
    return f"{leaf.table}.{probe.key.name} ∈ {probe.source_table}.{probe.source.name}"


@dataclass(frozen=True, slots=True)
class LookUp:
    """One leaf and the ways to find its rows; without a probe the leaf is read as a whole."""

    leaf: Scan
    probes: tuple[Probe, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A changed leaf and the lookups outwards from it, in order."""

    number: int
    delta: Changes
    lookups: tuple[LookUp, ...]


def separate(change: Relation) -> tuple[Relation, tuple[Term, ...]]:
    """The change expression with the leaves of its terms kept apart, and its terms."""
    terms: list[Term] = []

    def visit(node: Relation) -> Relation:
        changed = [leaf for leaf in walk(node) if isinstance(leaf, Changes)]
        if not changed:
            return node
        if len(changed) == 1 and is_spj(node):
            number = len(terms) + 1
            numbered = _numbered(node, number)
            terms.append(Term(number, changed[0], tuple(_outwards(numbered, changed[0]))))
            return numbered
        return with_children(node, tuple(visit(child) for child in children(node)))

    return visit(change), tuple(terms)


def is_spj(relation: Relation) -> bool:
    """Whether only selections, projections and joins occur, so that conditions hold for every row."""
    spj = Project | Select | Join | Scan | Changes | Values
    return all(isinstance(node, spj) for node in walk(relation))


def _numbered(term: Relation, number: int) -> Relation:
    return transform_up(
        term, lambda node: replace(node, term=number) if isinstance(node, Scan) else node
    )


def _outwards(term: Relation, delta: Changes) -> Iterator[LookUp]:
    """The leaves in an order in which each can be probed by what is known, others last."""
    classes, strict = _equal_attributes(term)
    known = dict.fromkeys(delta.columns, f"Δ{delta.table}")
    waiting = list(scans(term))
    while waiting:
        found = next(
            ((leaf, p) for leaf in waiting if (p := _probes(leaf, known, classes, strict))), None
        )
        if found is None:
            yield from (LookUp(leaf, ()) for leaf in waiting)
            return
        leaf, probes = found
        yield LookUp(leaf, probes)
        waiting.remove(leaf)
        known.update(dict.fromkeys(leaf.attributes, leaf.table))


def _probes(
    leaf: Scan, known: dict[Attribute, str], classes: Classes, strict: set[Attribute]
) -> Probes:
    return tuple(
        Probe(attribute, source, known[source], null_safe=not classes[attribute] & strict)
        for attribute in leaf.attributes
        for source in sorted(classes.get(attribute, frozenset()) & known.keys(), key=_by_id)
    )


def _by_id(attribute: Attribute) -> int:
    return attribute.id


def _equal_attributes(term: Relation) -> tuple[Classes, set[Attribute]]:
    """For each attribute, those that equal it in every row of the term; and those never null.

    Only conditions of inner joins and selections count, which hold for every row. One ``=`` in a
    class keeps nulls out of all of it; a class of ``<=>`` alone has null among its keys.
    """
    classes: Classes = {}
    strict: set[Attribute] = set()
    for condition in _conditions(term):
        pair = equality(condition)
        if pair is None:
            continue
        merged = frozenset[Attribute]().union(*(classes.get(a, frozenset({a})) for a in pair))
        classes.update(dict.fromkeys(merged, merged))
        if isinstance(condition, Call) and condition.operation == "=":
            strict.update(pair)
    return classes, strict


def _conditions(term: Relation) -> Iterator[Expression]:
    for node in walk(term):
        match node:
            case Join(_, _, on):
                yield from conjuncts(on)
            case Select(_, predicate):
                yield from conjuncts(predicate)
            case _:
                pass
