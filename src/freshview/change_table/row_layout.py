"""How the rows of an extent are stored, and what of them a refresh sets and deletes."""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    all_same,
    coalesce,
    conjunction,
    either,
    integer,
    null,
    same,
)
from freshview.algebra.relations import (
    OuterJoin,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    State,
    keep,
)
from freshview.algebra.schema import EXTENT_COUNT_NAME, Attribute, Numbering
from freshview.change_table.extent import AggregatePart, Extent, Pad, PlainPart
from freshview.change_table.refresh_operator import KEEP_NAME, WAS_NAME, old_name

OLD_COUNT_NAME = "__old_count"


@dataclass(frozen=True, slots=True)
class RowLayout:
    """One stored row per row of the extent, with the number of copies that it stands for.

    ``stored`` has one attribute per attribute of the frame: the visible column that shows it, or a
    hidden one. ``padded`` has one per outer join that keeps a side: the key of the kept side where
    the row is padded, else null, so that padded rows can be looked up by themselves.
    """

    extent: Extent
    stored: tuple[Attribute, ...]
    padded: tuple[Attribute, ...]
    count: Attribute

    @property
    def columns(self) -> tuple[Attribute, ...]:
        """The attributes of the extent's rows."""
        return self.extent.frame.attributes

    @property
    def visible(self) -> tuple[Output, ...]:
        return self.extent.values

    @property
    def key(self) -> tuple[Attribute, ...]:
        held = dict(zip(self.columns, self.stored, strict=True))
        return tuple(held[a] for a in self.extent.key)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Every stored column: visible ones, hidden ones, the count."""
        return tuple(output.attribute for output in self._outputs())

    def rows(self, rows: Relation) -> Relation:
        """Rows of the extent as they are stored."""
        return Project(rows, self._outputs())

    def _outputs(self) -> tuple[Output, ...]:
        shown = {output.attribute for output in self.visible}
        pairs = zip(self.columns, self.stored, strict=True)
        hidden = tuple(Output(s, Column(a)) for a, s in pairs if s not in shown)
        alone = tuple(
            Output(a, either(pad.is_padded, Column(pad.by), null(a.type)))
            for a, pad in zip(self.padded, self.extent.pads, strict=True)
        )
        return (*self.visible, *hidden, *alone, Output(self.count, self._copies()))

    def alone(self, pad: Pad) -> Attribute:
        """The stored column that finds the padded rows of an outer join."""
        return self.padded[self.extent.pads.index(pad)]

    def _copies(self) -> Expression:
        """The product of the copies of a row's plain parts; a part that it has not counts as one."""
        whole: Expression = integer(1)
        for part in self.extent.parts:
            if isinstance(part, PlainPart):
                copies = coalesce(Column(part.copies), integer(1))
                whole = Call("*", (whole, copies), "bigint")
        return whole

    def leaf(self, table: str, new: Numbering) -> Scan:
        """The stored view as a leaf."""
        return Scan(table, tuple(new.attribute(a.name, a.type) for a in self.attributes), State.PRE)

    def held(self, leaf: Scan) -> Relation:
        """The stored rows as rows of the extent."""
        before = dict(zip(self.attributes, leaf.attributes, strict=True))
        pairs = zip(self.columns, self.stored, strict=True)
        return Project(leaf, tuple(Output(a, Column(before[s])) for a, s in pairs))

    def changed(self, leaf: Scan, after: Relation, new: Numbering) -> Relation:
        """What was stored beside what is to be, by key: the rows to set, to delete and to hand on.

        Rows that stay as they are, states included, are left out. Yields the stored columns as they are to be; ``__keep``; ``__was``; and the visible columns
        and the count as they were.
        """
        before = dict(zip(self.attributes, leaf.attributes, strict=True))
        kept = new.attribute("kept", "boolean")
        now = Project(self.rows(after), (*map(keep, self.attributes), Output(kept, TRUE)))
        on = all_same((before[a] for a in self.key), self.key)
        joined = OuterJoin(leaf, now, on, True, True)
        stays = Call("is not null", (Column(kept),), "boolean")
        was = Call("is not null", (Column(before[self.count]),), "boolean")
        keys = frozenset(self.key)
        states = [a for a in self.stored if a not in keys]
        idle = conjunction((was, stays, *(same(Column(before[a]), Column(a)) for a in states)))
        assert idle is not None
        changed = Select(joined, Call("not", (idle,), "boolean"))
        values = tuple(
            either(stays, Column(a), Column(before[a])) if a in keys else Column(a)
            for a in self.attributes
        )
        named = zip(self.attributes, values, strict=True)
        return Project(
            changed,
            (
                *(Output(a, value) for a, value in named),
                Output(new.attribute(KEEP_NAME, "boolean"), stays),
                Output(new.attribute(WAS_NAME, "boolean"), was),
                *(
                    Output(
                        new.attribute(old_name(place), o.attribute.type),
                        Column(before[o.attribute]),
                    )
                    for place, o in enumerate(self.visible)
                ),
                Output(new.attribute(OLD_COUNT_NAME, "bigint"), Column(before[self.count])),
            ),
        )


def row_layout(extent: Extent, new: Numbering) -> RowLayout:
    """The layout of an extent's rows: keys that no visible column shows are stored hidden."""
    shown = {
        output.expression.attribute: output.attribute
        for output in reversed(extent.values)
        if isinstance(output.expression, Column)
    }
    names = _names(extent)
    stored = tuple(shown.get(a) or new.attribute(names[a], a.type) for a in extent.frame.attributes)
    padded = tuple(
        new.attribute(f"__padded{place}", pad.by.type)
        for place, pad in enumerate(extent.pads, start=1)
    )
    count = new.attribute(EXTENT_COUNT_NAME, "bigint", nullable=False)
    return RowLayout(extent, stored, padded, count)


def _names(extent: Extent) -> dict[Attribute, str]:
    """A name for each attribute of the frame that is stored hidden."""
    names: dict[Attribute, str] = {}
    for place, mark in enumerate(extent.marks, start=1):
        names[mark] = f"__mark{place}"
    for number, part in enumerate(extent.parts, start=1):
        for place, a in enumerate(part.key, start=1):
            names[a] = f"__key{number}_{place}"
        for a in part.states:
            bare = a.name.removeprefix("__") if isinstance(part, AggregatePart) else "copies"
            names[a] = f"__part{number}_{bare}"
    return names
