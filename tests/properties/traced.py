"""Lineage run by the oracle, and its definition once more, operator by operator in plain Python.

The definition works on the view as it was written and compares rows by value; the rules work on an
expression that carries rows along. They share nothing but the oracle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from freshview.algebra.evaluate import Bag, Database, Row, Table, evaluate, function, functions
from freshview.algebra.expressions import Column
from freshview.algebra.relations import (
    Aggregate,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Leaf,
    Limit,
    MarkJoin,
    OuterJoin,
    Project,
    Relation,
    Scan,
    Select,
    Semijoin,
    Union,
    Window,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import scans
from freshview.lineage.emptiness import is_empty_over_nothing
from freshview.lineage.trace import Trace, trace
from freshview.planner.lookups import LookupPlanner
from tests.properties.generators import Dice
from tests.properties.planned import Fetched

State = Mapping[str, Table]
Occurrences = dict[Scan, set[Row]]


@dataclass(frozen=True)
class Traced:
    """The rows of each occurrence of a table, and whether rows are there for want of a partner."""

    rows: Occurrences
    unmet: bool


def traced(view: Relation, columns: tuple[Attribute, ...], keys: set[Row], state: State) -> Traced:
    """What the rules find, each step evaluated by the oracle."""
    found = trace(view, columns)
    given: dict[str, Bag] = {}
    if found.keys is not None:
        given[found.keys.name] = Counter(keys)
    database = Database(state, given=given)
    for step in found.steps:
        given[step.leaf.name] = evaluate(step.relation, database)
    return _contributions(found, view, database)


def looked_up(
    view: Relation, columns: tuple[Attribute, ...], keys: set[Row], state: State, dice: Dice
) -> Traced:
    """The same over nothing but the rows that the planner's lookups find, by ways that the dice pick."""
    found = trace(view, columns)
    fetched = Fetched(state)
    if found.keys is not None:
        fetched.held[found.keys] = Counter(keys)
    planner = LookupPlanner(stored="")
    for step in found.steps:
        relation, lookups = planner.step(step.relation)
        for lookup in lookups:
            if lookup.leaf not in fetched.held:
                fetched.fetch(lookup, dice)
        fetched.held[step.leaf] = evaluate(relation, fetched)
    return _contributions(found, view, fetched)


def _contributions(found: Trace, view: Relation, database: Database) -> Traced:
    rows: Occurrences = {scan: set() for scan in scans(view)}
    rows |= {one.scan: set(evaluate(one.rows, database)) for one in found.contributions}
    return Traced(rows, any(evaluate(one.rows, database) for one in found.absences))


def asked(view: Relation, columns: tuple[Attribute, ...], keys: set[Row], state: State) -> Bag:
    """The rows of the view that have the keys."""
    places = [view.attributes.index(column) for column in columns]
    rows = evaluate(view, Database(state))
    return Counter(
        {r: n for r, n in rows.items() if not places or tuple(r[p] for p in places) in keys}
    )


def defined(view: Relation, rows: set[Row], state: State) -> Traced:
    """The lineage of rows of a view by its definition."""
    database = Database(state)
    found: Occurrences = {scan: set() for scan in scans(view)}
    unmet: list[Row] = []

    def down(node: Relation, wanted: set[Row]) -> None:
        if isinstance(node, Scan):
            found[node] = wanted
            return
        for operand, some in _operands(node, wanted, database, unmet):
            down(operand, some)

    down(view, rows)
    return Traced(found, bool(unmet))


def _operands(
    node: Relation, wanted: set[Row], database: Database, unmet: list[Row]
) -> Iterator[tuple[Relation, set[Row]]]:
    match node:
        case Select(child) | Limit(child):
            yield child, wanted
        case Window(child, _, partition):
            keys = functions(partition, child.attributes)
            width = len(child.attributes)
            kept = {tuple(key(row[:width]) for key in keys) for row in wanted}
            rows = evaluate(child, database)
            yield child, {row for row in rows if tuple(key(row) for key in keys) in kept}
        case Generate(child):
            yield child, {row[: len(child.attributes)] for row in wanted}
        case Expand(child, projections):
            sets = [functions(projection, child.attributes) for projection in projections]
            rows = evaluate(child, database)
            yield (
                child,
                {row for row in rows for one in sets if tuple(f(row) for f in one) in wanted},
            )
        case Project(child, outputs):
            columns = functions((o.expression for o in outputs), child.attributes)
            rows = evaluate(child, database)
            yield child, {row for row in rows if tuple(f(row) for f in columns) in wanted}
        case Aggregate(child, group, _):
            keys = functions(map(Column, group), child.attributes)
            groups = {row[: len(group)] for row in wanted}
            rows = evaluate(child, database)
            yield child, {row for row in rows if tuple(key(row) for key in keys) in groups}
        case Union(operands, _):
            for operand in operands:
                yield operand, {row for row in evaluate(operand, database) if row in wanted}
        case Intersection(left, right, _):
            yield left, wanted
            yield right, wanted
        case Difference(left, right, all):
            others = set(evaluate(right, database))
            unmet += [] if all else wanted
            yield left, wanted
            if wanted and not is_empty_over_nothing(right):
                yield right, others
            else:
                yield right, others & wanted if all else set()
        case Join() | OuterJoin() | Semijoin() | MarkJoin():
            yield from _sides(node, wanted, database, unmet)
        case _:
            raise AssertionError(node)


def _sides(
    node: Join | OuterJoin | Semijoin | MarkJoin,
    wanted: set[Row],
    database: Database,
    unmet: list[Row],
) -> Iterator[tuple[Relation, set[Row]]]:
    """The pairs that meet, one by one, and the rows of a side that meet nothing."""
    holds: Any = lambda _: True  # noqa: E731 (one of two, by the node)
    if node.on is not None:
        holds = function(node.on, node.left.attributes + node.right.attributes)
    lefts, rights = evaluate(node.left, database), evaluate(node.right, database)
    pairs = [(x, y) for x in lefts for y in rights if holds(x + y) is True]
    met_left, met_right = {x for x, _ in pairs}, {y for _, y in pairs}
    left: set[Row] = set()
    right: set[Row] = set()
    unmet_left: set[Row] = set()
    unmet_right: set[Row] = set()
    match node:
        case Join() | OuterJoin():
            for x, y in pairs:
                if x + y in wanted:
                    left.add(x)
                    right.add(y)
            if isinstance(node, OuterJoin) and node.keeps_left:
                padding = (None,) * len(node.right.attributes)
                unmet_left = {x for x in lefts if x not in met_left and x + padding in wanted}
            if isinstance(node, OuterJoin) and node.keeps_right:
                padding = (None,) * len(node.left.attributes)
                unmet_right = {y for y in rights if y not in met_right and padding + y in wanted}
        case Semijoin(anti=anti):
            left = set(wanted)
            unmet_left = set(wanted) if anti else set()
            right = set() if anti else {y for x, y in pairs if x in wanted}
        case MarkJoin():
            left = {row[:-1] for row in wanted}
            unmet_left = {row[:-1] for row in wanted if not row[-1]}
            right = {y for x, y in pairs if (*x, True) in wanted}
    unmet += [*unmet_left, *unmet_right]
    if unmet_left and not is_empty_over_nothing(node.right):
        right = set(rights)
    if unmet_right and not is_empty_over_nothing(node.left):
        left = set(lefts)
    yield node.left, left | unmet_left
    yield node.right, right | unmet_right


@dataclass(frozen=True)
class Restricted(Database):
    """Tables of which each occurrence has only some of its rows, with all their copies."""

    only: Occurrences = field(default_factory=dict)

    def leaf(self, leaf: Leaf) -> Bag:
        rows = Database.leaf(self, leaf)
        if isinstance(leaf, Given) or leaf not in self.only:
            return rows
        return Counter({row: n for row, n in rows.items() if row in self.only[leaf]})
