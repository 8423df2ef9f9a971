"""The lineage of rows of a view: from the top down, operator by operator, to its tables.

Rows are known at each node, beginning with those of the view that have the given keys. Each rule says
which rows of the operands they come from. Where these must be looked for in an operand, that is a step
of its own, evaluated once; what is below goes on from its rows alone.

[CW00] is Y. Cui, J. Widom, J. L. Wiener, Tracing the Lineage of View Data in a Warehousing Environment,
ACM TODS 25(2), 2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from freshview.algebra.expressions import all_same
from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Previous,
    Project,
    Recursion,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    Window,
    renaming,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import numbering, scans
from freshview.lineage import carried_rows, sought_rows
from freshview.lineage.asked import Absent, Asked, Found
from freshview.lineage.carry import carried
from freshview.lineage.identity import shown_groups


@dataclass(frozen=True, slots=True)
class Step:
    """Rows to be evaluated before those that follow, and the leaf by which these read them."""

    relation: Relation
    leaf: Given


@dataclass(frozen=True, slots=True)
class Contribution:
    """The rows of one occurrence of a table, in the columns that the view reads."""

    scan: Scan
    rows: Relation


@dataclass(frozen=True, slots=True)
class Repeated:
    """Rows of a recursion. Which rows they come from is found level by level (``levels.py``)."""

    node: Recursion
    rows: Relation


@dataclass(frozen=True, slots=True)
class Earlier:
    """Rows of a recursion whose rows are known, in the place where its own step reads them."""

    leaf: Given
    rows: Relation


@dataclass(frozen=True, slots=True)
class Trace:
    """The lineage of a view's rows as expressions over its tables and ``keys``, in order of evaluation."""

    keys: Given | None
    steps: tuple[Step, ...]
    contributions: tuple[Contribution, ...]
    absences: tuple[Absent, ...]
    recursions: tuple[Repeated, ...]
    earlier: tuple[Earlier, ...]
    new: Numbering
    """Hands out attributes that no expression here has."""


def trace(view: Relation, columns: tuple[Attribute, ...]) -> Trace:
    """The lineage of the rows of a view whose values in ``columns`` are among those of the leaf ``keys``.

    Without columns, of all its rows. Where the columns are the groups of an aggregate on top, they
    must be of rows of the view: then its groups are known, and it need not be evaluated itself.
    """
    new = numbering(view)
    tracing = _Tracing(new)
    keys = None
    if columns:
        keys = Given("keys", tuple(new.attribute(a.name, a.type) for a in columns))
    grouped = shown_groups(view)
    if grouped is not None and grouped[1] == columns:
        top = carried(grouped[0], new)
        known = keys or Values((), ((),))
        tracing.down(top, Project(known, renaming(grouped[0].group, known.attributes)))
    else:
        whole = carried(view, new)
        found = whole
        if keys is not None:
            found = Semijoin(whole, keys, all_same(columns, keys.attributes))
        tracing.down(whole, tracing.known(found))
    return Trace(
        keys,
        tuple(tracing.steps),
        tuple(tracing.contributions),
        tuple(tracing.absences),
        tuple(tracing.recursions),
        tuple(tracing.earlier),
        new,
    )


@dataclass(slots=True)
class _Tracing:
    """What has been found on the way down."""

    new: Numbering
    steps: list[Step] = field(default_factory=list)
    contributions: list[Contribution] = field(default_factory=list)
    absences: list[Absent] = field(default_factory=list)
    recursions: list[Repeated] = field(default_factory=list)
    earlier: list[Earlier] = field(default_factory=list)

    def known(self, rows: Relation) -> Relation:
        """The rows as a leaf that an earlier step has evaluated; as they are, if they read no table."""
        if not scans(rows):
            return rows
        number = len(self.steps) + 1
        held = tuple(
            self.new.attribute(f"s{number}_{place}", a.type)
            for place, a in enumerate(rows.attributes)
        )
        leaf = Given(f"step {number}", held)
        self.steps.append(Step(Project(rows, renaming(held, rows.attributes)), leaf))
        return Project(leaf, renaming(rows.attributes, held))

    def down(self, node: Relation, rows: Relation) -> None:
        """Follow rows of a node to the tables below it."""
        match node:
            case Scan():
                self.contributions.append(Contribution(node, rows))
            case Given():
                self.earlier.append(Earlier(node, rows))
            case Recursion():
                self.recursions.append(Repeated(node, rows))
            case _:
                self._operands(node, rows)

    def _operands(self, node: Relation, rows: Relation) -> None:
        asked: dict[int, tuple[Relation, list[Relation]]] = {}
        for found in _rule(node, rows, self.new):
            match found:
                case Asked(operand, some):
                    asked.setdefault(id(operand), (operand, []))[1].append(some)
                case Absent():
                    self.absences.append(found)
        for operand, parts in asked.values():
            whole = parts[0] if len(parts) == 1 else Union(tuple(parts), operand.attributes)
            self.down(operand, self.known(whole))


def _rule(node: Relation, rows: Relation, new: Numbering) -> Iterator[Found]:
    match node:
        case Select() | Repeat() | Sort() | Limit():
            return carried_rows.row_itself(node, rows)
        case Project():
            return carried_rows.projection(node, rows)
        case Join():
            return carried_rows.join(node, rows)
        case OuterJoin():
            return carried_rows.outer_join(node, rows, new)
        case Union():
            return carried_rows.union(node, rows)
        case Expand():
            return carried_rows.expansion(node, rows)
        case Generate():
            return carried_rows.generation(node, rows)
        case Semijoin():
            return sought_rows.semijoin(node, rows, new)
        case MarkJoin():
            return sought_rows.mark_join(node, rows, new)
        case Intersection():
            return sought_rows.intersection(node, rows, new)
        case Difference():
            return sought_rows.difference(node, rows, new)
        case Aggregate():
            return sought_rows.aggregation(node, rows, new)
        case Window():
            return sought_rows.window(node, rows, new)
        case Values():
            return iter(())
        case Scan() | Changes() | Given() | Previous() | Recursion():
            raise AssertionError(f"{type(node).__name__} is not inside a view's definition")
        case _:
            assert_never(node)
