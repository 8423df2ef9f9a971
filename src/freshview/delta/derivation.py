"""One derivation: which tables changed and how, in which states operands are read, what is shared.

The papers' expressions grow exponentially when written out, because a rule mentions the delta of an
operand several times. A delta that is mentioned more than once becomes a temporary: it is computed
once, consolidated, and every mention reads the same rows ([B07] 4.3.1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from freshview.algebra.relations import (
    Changes,
    Given,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    State,
    keep,
    renaming,
)
from freshview.algebra.schema import COUNT, Attribute, Numbering
from freshview.algebra.traverse import numbering, scans, transform_up
from freshview.delta.states import consolidate


class Kind(Enum):
    """What is known of a table's changes before they are read."""

    ANY = "inserted and deleted"
    INSERTIONS = "inserted only"


@dataclass(frozen=True, slots=True)
class Signed:
    """The delta of an expression: its rows with a signed count, and whether none is negative."""

    relation: Relation
    insertions_only: bool = False


@dataclass(frozen=True, slots=True)
class Temporary:
    """An expression that is computed once, and the leaf by which it is read."""

    leaf: Given
    relation: Relation


class Derivation:
    """What the rules of one derivation share.

    An operand is read before the change or after it. All at once ([B07] 2.3), that is every table
    before the transaction or after it. Leaf by leaf, some occurrences of tables change at a time:
    those to their left have changed already and those to their right have not, in either reading.
    """

    def __init__(
        self,
        view: Relation,
        changed: Collection[str] | Mapping[str, Kind],
        leaves: Collection[Scan] = (),
        new: Numbering | None = None,
    ) -> None:
        kinds = changed if isinstance(changed, Mapping) else dict.fromkeys(changed, Kind.ANY)
        self.changed: Mapping[str, Kind] = kinds
        self.new = new or numbering(view)
        self.temporaries: list[Temporary] = []
        self._places = {scan.attributes: place for place, scan in enumerate(scans(view))}
        self._changing = frozenset(scan.attributes for scan in leaves)
        self._first = min((self._places[a] for a in self._changing), default=0)

    def only(self, leaves: Collection[Scan], view: Relation) -> Derivation:
        """The same derivation, of a view in which only these occurrences change at this time."""
        part = Derivation(view, self.changed, leaves, self.new)
        part.temporaries = self.temporaries
        return part

    def pre(self, relation: Relation) -> Relation:
        """The expression over the tables as they were before the change."""
        return self._at(relation, State.PRE)

    def post(self, relation: Relation) -> Relation:
        """The expression over the tables as they are after the change."""
        return self._at(relation, State.POST)

    def _at(self, relation: Relation, state: State) -> Relation:
        def rule(node: Relation) -> Relation:
            return replace(node, state=self._state(node, state)) if isinstance(node, Scan) else node

        return transform_up(relation, rule)

    def _state(self, scan: Scan, state: State) -> State:
        """Tables that do not change are read in one state only, so that both mentions are one."""
        if scan.table not in self.changed:
            return State.POST
        if not self._changing or scan.attributes in self._changing:
            return state
        return State.POST if self._places[scan.attributes] < self._first else State.PRE

    def scan(self, node: Scan) -> Signed | None:
        """ΔR, if R changed."""
        kind = self.changed.get(node.table)
        if kind is None or (self._changing and node.attributes not in self._changing):
            return None
        return Signed(Changes(node.table, node.attributes), kind is Kind.INSERTIONS)

    def shared(self, delta: Signed, name: str = "δ") -> Signed:
        """The same delta, cheap to be mentioned again: a leaf, or what a leaf becomes by σ and Π."""
        if _is_cheap(delta.relation):
            return delta
        return Signed(self.temporary(consolidate(delta.relation), name), delta.insertions_only)

    def temporary(self, relation: Relation, name: str) -> Relation:
        """The relation as rows computed once, under its own attributes."""
        columns = tuple(
            self.new.attribute(f"c{place}", a.type, a.nullable)
            for place, a in enumerate(relation.attributes)
        )
        leaf = Given(f"{name}{len(self.temporaries) + 1}", columns)
        named = Project(relation, renaming(columns, relation.attributes))
        self.temporaries.append(Temporary(leaf, named))
        return Project(leaf, renaming(relation.attributes, columns))


def renamed(
    relation: Relation, attributes: tuple[Attribute, ...], new: Numbering
) -> tuple[Relation, tuple[Attribute, ...]]:
    """Π of some attributes under new ids, so that the result can meet its own origin in a join."""
    fresh = tuple(new.attribute(a.name, a.type, a.nullable) for a in attributes)
    return Project(relation, renaming(fresh, attributes)), fresh


def with_count(relation: Relation, count: Output) -> Relation:
    """Plain rows with a signed count."""
    kept = tuple(keep(a) for a in relation.attributes if a != COUNT)
    return Project(relation, (*kept, count))


def _is_cheap(relation: Relation) -> bool:
    while isinstance(relation, Select | Project):
        relation = relation.child
    return isinstance(relation, Changes | Given)
