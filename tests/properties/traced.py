"""Lineage run by the oracle, and its definition once more, operator by operator in plain Python.

The definition works on the view as it was written and compares rows by value; the rules work on an
expression that carries rows along. They share nothing but the oracle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
    Previous,
    Project,
    Recursion,
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
from freshview.lineage.levels import Levels, levels
from freshview.lineage.trace import Trace, trace
from freshview.planner.lookups import LookupPlanner
from tests.properties.planned import Fetched
from tests.properties.random_tables import Dice

State = Mapping[str, Table]
Occurrences = dict[Scan, set[Row]]


@dataclass(frozen=True)
class Traced:
    """The rows of each occurrence of a table, and whether rows are there for want of a partner."""

    rows: Occurrences
    unmet: bool


class _Steps:
    """The evaluations of one lineage: over whole tables, or over what the planner's lookups find."""

    def __init__(self, state: State, dice: Dice | None, known: Mapping[Leaf, Bag]) -> None:
        self._fetched = Fetched(state, held=dict(known))
        self._dice = dice
        self._planner = LookupPlanner(stored="")

    def begin(self, found: Trace, keys: Bag) -> None:
        if found.keys is not None:
            self._fetched.held[found.keys] = keys
        for step in found.steps:
            self._fetched.held[step.leaf] = self.evaluated(step.relation)

    def evaluated(self, relation: Relation) -> Bag:
        if self._dice is None:
            return evaluate(relation, self._fetched)
        planned, lookups = self._planner.step(relation)
        for lookup in lookups:
            if lookup.leaf not in self._fetched.held:
                self._fetched.fetch(lookup, self._dice)
        return evaluate(planned, self._fetched)


def traced(
    view: Relation,
    columns: tuple[Attribute, ...],
    keys: set[Row],
    state: State,
    dice: Dice | None = None,
) -> Traced:
    """What the rules find, evaluated by the oracle.

    With dice it is evaluated over the rows that lookups find and no others, by ways that the dice pick.
    """
    rows: Occurrences = {scan: set() for scan in scans(view)}
    unmet = False

    def follow(found: Trace, keys: Bag, known: Mapping[Leaf, Bag]) -> None:
        nonlocal unmet
        steps = _Steps(state, dice, known)
        steps.begin(found, keys)
        for one in found.contributions:
            rows[one.scan] |= set(steps.evaluated(one.rows))
        unmet = unmet or any(steps.evaluated(one.rows) for one in found.absences)
        for repeated in found.recursions:
            below = levels(repeated, found.new)
            read = dict.fromkeys(below.leaves, steps.evaluated(below.everything))
            first = steps.evaluated(below.first)
            follow(below.trace, all_levels(below, first, read), read)

    def all_levels(below: Levels, rows: Bag, read: Mapping[Leaf, Bag]) -> Bag:
        """The sought rows of a recursion with all that they come from."""
        seen = rows
        while below.further is not None and rows:
            steps = _Steps(state, dice, {**read, below.seen: seen})
            steps.begin(below.trace, rows)
            rows = steps.evaluated(below.further)
            seen = seen + rows
        return seen

    follow(trace(view, columns), Counter(keys), {})
    return Traced(rows, unmet)


def asked(view: Relation, columns: tuple[Attribute, ...], keys: set[Row], state: State) -> Bag:
    """The rows of the view that have the keys."""
    places = [view.attributes.index(column) for column in columns]
    rows = evaluate(view, Database(state))
    return Counter(
        {r: n for r, n in rows.items() if not places or tuple(r[p] for p in places) in keys}
    )


def defined(view: Relation, rows: set[Row], state: State) -> Traced:
    """The lineage of rows of a view by its definition."""
    found: Occurrences = {scan: set() for scan in scans(view)}
    unmet: list[Row] = []

    def down(node: Relation, wanted: set[Row], database: Database) -> set[Row]:
        """Follow rows to the tables; the rows of the level before that they come from, in a step."""
        match node:
            case Scan():
                found[node] |= wanted
                return set()
            case Previous():
                return wanted
            case Recursion():
                return through_levels(node, wanted, database)
        earlier = set()
        for operand, some in _operands(node, wanted, database, unmet):
            earlier |= down(operand, some, database)
        return earlier

    def through_levels(node: Recursion, wanted: set[Row], database: Database) -> set[Row]:
        every = evaluate(node, database)
        inside = replace(database, levels={node.loop: every})
        seen = set(wanted)
        while True:
            step = {row for row in evaluate(node.step, inside) if row in seen}
            further = down(node.step, step, inside)
            if further <= seen:
                break
            seen |= further
        down(node.anchor, {row for row in evaluate(node.anchor, database) if row in seen}, database)
        return set()

    down(view, rows, Database(state))
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
