"""ORDER BY … LIMIT on top of a view: the first rows are stored, with some to spare.

A row that is inserted pushes others back, a row that is deleted lets one in. As long as rows to spare
are left, the first ones follow from what is stored and the delta; when they run out, and there are more
behind them, the base is asked again for the first ones and as many to spare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    all_same,
    coalesce,
    conjunction,
    either,
    equal,
    integer,
    same,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    Limit,
    OuterJoin,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    Semijoin,
    State,
    Union,
    Window,
    keep,
    renaming,
)
from freshview.algebra.schema import COUNT, EXTENT_COUNT_NAME, Attribute, Numbering
from freshview.algebra.windows import Frame, Ordering, WindowCall, WindowOutput
from freshview.change_table.refresh_operator import KEEP_NAME, WAS_NAME, old_name
from freshview.change_table.row_layout import OLD_COUNT_NAME
from freshview.delta.derivation import Derivation

HELD_NAME = "__held"
MORE_NAME = "__more"
SPARE_LEAST = 16
SPARE_MOST = 1_000
ROWS_MAX = 2**31 - 1
"""Spark's LIMIT takes no larger number."""


@dataclass(frozen=True, slots=True)
class TopLayout:
    """How the first rows of an order are stored: each distinct row once, with how often it is shown.

    ``stored`` has one attribute per column below the limit, the visible one that shows it or a hidden
    one. ``held`` is the number of a row's copies among those that are stored, ``count`` of those that
    are shown, which may be none; ``more`` says, in every row alike, that others follow behind.
    """

    limit: Limit
    visible: tuple[Output, ...]
    stored: tuple[Attribute, ...]
    held: Attribute
    more: Attribute
    count: Attribute

    @property
    def columns(self) -> tuple[Attribute, ...]:
        return self.limit.attributes

    @property
    def end(self) -> int:
        """The number of rows up to the last one that is shown."""
        assert self.limit.count is not None
        return self.limit.offset + self.limit.count

    @property
    def most(self) -> int:
        """The number of rows that are stored at most."""
        spare = min(max(self.end, SPARE_LEAST), SPARE_MOST)
        return min(self.end + spare, ROWS_MAX - 1)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        shown = tuple(output.attribute for output in self.visible)
        hidden = tuple(a for a in self.stored if a not in shown)
        return (*shown, *hidden, self.held, self.more, self.count)

    def rows(self, child: Relation, new: Numbering) -> Relation:
        """The stored rows, from all rows of the view's order: λ_{most+1} tells whether more follow."""
        first = self.first(child, new)
        more = new.attribute("more", "bigint")
        counted = Project(first, (*map(keep, first.attributes), Output(more, integer(0))))
        return self.placed(counted, first.attributes[-1], more, new)

    def first(self, child: Relation, new: Numbering) -> Relation:
        """Each of the first rows once, with its number of copies."""
        copies = new.attribute("copies", "bigint")
        first = Limit(child, self.most + 1, 0, self.limit.order)
        call = AggregateCall("count", (), "bigint")
        return Aggregate(first, self.columns, (AggregateOutput(copies, call),))

    def placed(
        self, rows: Relation, copies: Attribute, more: Attribute, new: Numbering
    ) -> Relation:
        """Rows with copies in their order: how many are held, how many are shown, whether more follow."""
        upto = new.attribute("upto", "bigint")
        total = new.attribute("total", "bigint")
        before = new.attribute("before", "bigint")
        outputs = (
            WindowOutput(upto, _over("sum", copies, Frame(True, None, 0))),
            WindowOutput(total, _over("sum", copies, Frame(True, None, None))),
            WindowOutput(before, _over("max", more, Frame(True, None, None))),
        )
        ordered = Window(rows, outputs, (), self.limit.order)
        start = Call("-", (Column(upto), Column(copies)), "bigint")
        held = _overlap(start, Column(upto), 0, self.most)
        shown = _overlap(start, Column(upto), self.limit.offset, self.end)
        cut = Call(">", (Column(total), integer(self.most)), "boolean")
        follows = Call("or", (cut, equal(Column(before), integer(1))), "boolean")
        pairs = zip(self.columns, self.stored, strict=True)
        seen = {output.attribute for output in self.visible}
        placed = Project(
            ordered,
            (
                *self.visible,
                *(Output(s, Column(a)) for a, s in pairs if s not in seen),
                Output(self.held, held),
                Output(self.more, follows),
                Output(self.count, shown),
            ),
        )
        return Select(placed, Call(">", (Column(self.held), integer(0)), "boolean"))


def top_layout(limit: Limit, visible: tuple[Output, ...], new: Numbering) -> TopLayout:
    """The layout of a view that shows ``visible`` of the first rows."""
    shown = {
        output.expression.attribute: output.attribute
        for output in reversed(visible)
        if isinstance(output.expression, Column)
    }
    stored = tuple(
        shown.get(a) or new.attribute(f"__key{place}", a.type)
        for place, a in enumerate(limit.attributes, start=1)
    )
    return TopLayout(
        limit,
        visible,
        stored,
        new.attribute(HELD_NAME, "bigint", nullable=False),
        new.attribute(MORE_NAME, "boolean", nullable=False),
        new.attribute(EXTENT_COUNT_NAME, "bigint", nullable=False),
    )


def refreshed_top(
    layout: TopLayout, child: Relation, change: Relation, view: str, derivation: Derivation
) -> tuple[Relation, Scan]:
    """V ⊔ δE for V = λ_{k,o}(E): what is stored and δE in their order, or λ(Eᵖᵒˢᵗ) if they run short.

    H = σ_{n≠0}(π_{A,Σn}(Vₕ ⊎ δE)), without rows of δE behind the last stored one while more follow:
    those are not known to be next. Where H has fewer rows than are shown and more follow, H is
    λ_{most+1}(Eᵖᵒˢᵗ); nothing of Eᵖᵒˢᵗ is read otherwise. The first rows of H by its order are held,
    and the first of these are shown. Of the last row that is held there may be more copies behind it.
    """
    new = derivation.new
    leaf = Scan(view, tuple(new.attribute(a.name, a.type) for a in layout.attributes), State.PRE)
    before = dict(zip(layout.attributes, leaf.attributes, strict=True))
    more = new.attribute("more", "bigint")
    flag = _flag(leaf, before[layout.more], more, new)
    held, copies = _held(layout, leaf, before, change, flag, more, derivation)
    short = derivation.temporary(_shortage(layout, held, copies, flag, more, new), "short")
    stays = Semijoin(held, short, None, anti=True)
    first = layout.first(child, new)
    asked = Semijoin(first, short, None)
    columns = (*layout.columns, copies, more)
    renewed = Project(
        asked,
        (
            *map(keep, layout.columns),
            Output(copies, Column(first.attributes[-1])),
            Output(more, integer(0)),
        ),
    )
    either_way = Union((stays, renewed), columns)
    after = layout.placed(either_way, copies, more, new)
    return _changed(layout, leaf, before, after, new), leaf


def _flag(leaf: Scan, stored: Attribute, more: Attribute, new: Numbering) -> Relation:
    """One row: 1 if more rows follow those that are stored, else 0 or null."""
    number = new.attribute("more", "bigint")
    said = Project(leaf, (Output(number, either(Column(stored), integer(1), integer(0))),))
    call = AggregateCall("max", (Column(number),), "bigint")
    return Aggregate(said, (), (AggregateOutput(more, call),))


def _held(
    layout: TopLayout,
    leaf: Scan,
    before: dict[Attribute, Attribute],
    change: Relation,
    flag: Relation,
    more: Attribute,
    derivation: Derivation,
) -> tuple[Relation, Attribute]:
    """The stored rows with the delta in them, as a temporary: columns, copies, whether more follow."""
    new = derivation.new
    number = new.attribute("copies", "bigint")
    known, gone = (new.attribute(name, "bigint") for name in ("known", "gone"))
    is_less = Call("<", (Column(COUNT), integer(0)), "boolean")
    was = Project(
        leaf,
        (
            *renaming(layout.columns, (before[s] for s in layout.stored)),
            Output(number, Column(before[layout.held])),
            Output(known, integer(1)),
            Output(gone, integer(0)),
        ),
    )
    came = Project(
        change,
        (
            *map(keep, layout.columns),
            Output(number, Column(COUNT)),
            Output(known, integer(0)),
            Output(gone, either(is_less, integer(1), integer(0))),
        ),
    )
    both = Union((was, came), (*layout.columns, number, known, gone))
    copies, stored, less = (new.attribute(n, "bigint") for n in ("copies", "known", "less"))
    net = Aggregate(
        both,
        layout.columns,
        (
            AggregateOutput(copies, AggregateCall("sum", (Column(number),), "bigint")),
            AggregateOutput(stored, AggregateCall("max", (Column(known),), "bigint")),
            AggregateOutput(less, AggregateCall("max", (Column(gone),), "bigint")),
        ),
    )
    behind = new.attribute("behind", "bigint")
    output = WindowOutput(behind, _over("sum", stored, Frame(True, None, 0)))
    backwards = Window(net, (output,), (), tuple(map(_reversed, layout.limit.order)))
    met = Join(backwards, flag)
    is_all = Call("not", (equal(coalesce(Column(more), integer(0)), integer(1)),), "boolean")
    # The last stored row may have copies that are not stored: where some go, it is not counted on.
    both_ways = Call("+", (Column(stored), Column(less)), "bigint")
    least = either(equal(both_ways, integer(2)), integer(1), integer(0))
    is_before = Call(">", (Column(behind), least), "boolean")
    counts = Call("not", (equal(Column(copies), integer(0)),), "boolean")
    within = conjunction((counts, Call("or", (is_all, is_before), "boolean")))
    assert within is not None
    checked = Output(copies, Call("nonnegative", (Column(copies),), "bigint"))
    kept = Project(Select(met, within), (*map(keep, layout.columns), checked, keep(more)))
    return derivation.temporary(kept, "H"), copies


def _shortage(
    layout: TopLayout,
    held: Relation,
    copies: Attribute,
    flag: Relation,
    more: Attribute,
    new: Numbering,
) -> Relation:
    """One row if fewer rows are held than are shown while more follow, else none."""
    total = new.attribute("total", "bigint")
    call = AggregateCall("sum", (Column(copies),), "bigint")
    counted = Aggregate(held, (), (AggregateOutput(total, call),))
    least = max(layout.end, 1)  # without any row stored nothing would tell that more follow
    few = Call("<", (coalesce(Column(total), integer(0)), integer(least)), "boolean")
    follows = equal(Column(more), integer(1))
    short = Select(Join(counted, flag), Call("and", (few, follows), "boolean"))
    return Project(short, (keep(total),))


def _changed(
    layout: TopLayout,
    leaf: Scan,
    before: dict[Attribute, Attribute],
    after: Relation,
    new: Numbering,
) -> Relation:
    """What was stored beside what is to be, by key; rows that stay as they are are left out."""
    kept = new.attribute("kept", "boolean")
    now = Project(after, (*map(keep, layout.attributes), Output(kept, TRUE)))
    on = all_same((before[a] for a in layout.stored), layout.stored)
    joined = OuterJoin(leaf, now, on, True, True)
    stays = Call("is not null", (Column(kept),), "boolean")
    was = Call("is not null", (Column(before[layout.count]),), "boolean")
    states = (layout.held, layout.more, layout.count)
    idle = conjunction((was, stays, *(same(Column(before[a]), Column(a)) for a in states)))
    assert idle is not None
    changed = Select(joined, Call("not", (idle,), "boolean"))
    olds = tuple(
        Output(new.attribute(old_name(i), o.attribute.type), Column(before[o.attribute]))
        for i, o in enumerate(layout.visible)
    )
    return Project(
        changed,
        (
            *(Output(a, either(stays, Column(a), Column(before[a]))) for a in layout.attributes),
            Output(new.attribute(KEEP_NAME, "boolean"), stays),
            Output(new.attribute(WAS_NAME, "boolean"), was),
            *olds,
            Output(new.attribute(OLD_COUNT_NAME, "bigint"), Column(before[layout.count])),
        ),
    )


def _over(function: str, argument: Attribute, frame: Frame) -> WindowCall:
    return WindowCall(function, (Column(argument),), "bigint", frame)


def _reversed(key: Ordering) -> Ordering:
    return replace(key, descending=not key.descending, nulls_last=not key.nulls_last)


def _overlap(start: Expression, end: Expression, low: int, high: int) -> Expression:
    """How many of the places from ``start`` to before ``end`` lie from ``low`` to before ``high``."""
    first = either(Call("<", (start, integer(low)), "boolean"), integer(low), start)
    last = either(Call(">", (end, integer(high)), "boolean"), integer(high), end)
    some = Call("<", (first, last), "boolean")
    return either(some, Call("-", (last, first), "bigint"), integer(0))
