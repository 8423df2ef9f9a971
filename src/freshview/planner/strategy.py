"""How a view is kept: the technique, what is stored, and the expressions that refresh it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from freshview.algebra.clock import is_clock
from freshview.algebra.expressions import Column
from freshview.algebra.relations import (
    Aggregate,
    Given,
    Project,
    Relation,
    Scan,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import numbering, scans, tables
from freshview.change_table.aggregate import change_table, combined
from freshview.change_table.compose import Composition
from freshview.change_table.extent import Extent, Pad, Part
from freshview.change_table.late_update import groups_at_stake, late_values
from freshview.change_table.propagate import extent_delta, part_change, propagated
from freshview.change_table.refresh_operator import GroupLayout, refresh, stored_groups
from freshview.change_table.refresh_rows import (
    no_longer_padded,
    padded_anew,
    updated,
    with_delta,
)
from freshview.change_table.row_layout import RowLayout
from freshview.counting.extent import count_table
from freshview.counting.refresh import touched_extent
from freshview.delta.derivation import Derivation, Kind, Signed, Temporary
from freshview.delta.derive import derive
from freshview.group_recompute.recompute import recomputed_groups, touched_groups
from freshview.group_recompute.top_rows import TopLayout, refreshed_top
from freshview.reasons import Reason
from freshview.rewrite.merge_projections import merge_projections


class Technique(Enum):
    """The ways to keep a view; the names are those of the papers."""

    COUNTING = "counting"
    DELTA = "delta"
    CHANGE_TABLE = "change table"
    GROUP_RECOMPUTE = "group recompute"
    FULL = "full recompute"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """An expression for the touched stored rows, and the leaf that stands for the stored view.

    ``temporaries`` are computed before it, and may read the stored view as well.
    """

    relation: Relation
    stored: Scan
    temporaries: tuple[Temporary, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredKeys:
    """Where the keys of the stored rows that a change touches are: columns of a computed change table.

    All stored rows that matter are found by any one of ``columns``: a stored column, and the column
    of the leaf that holds its values. Only rows of the leaf count in which ``where`` is true, if there
    is one, and none of ``unless``.
    """

    leaf: Given
    columns: tuple[tuple[Attribute, Attribute], ...]
    where: Attribute | None = None
    unless: tuple[Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The expressions that refresh a view for one set of changed tables.

    ``direct`` refreshes with the change table written out, where that is possible; ``stepwise`` has the
    change tables among its temporaries, and ``keys`` say which of their columns lead to stored rows:
    what one of them finds and what the others find is all that matters.
    """

    direct: Refreshed | None
    stepwise: Refreshed
    keys: tuple[StoredKeys, ...]


@dataclass(frozen=True, slots=True)
class Strategy:
    """Everything about a view that depends on its definition alone, not on data."""

    view: str
    technique: Technique
    relation: Relation
    stored: tuple[Attribute, ...]
    key: tuple[Attribute, ...]
    rows: Relation
    reason: Reason | None = None
    maintained: Relation | None = None
    """What the delta is derived from: the view in canonical form, or what is below its aggregate."""
    aggregate: Aggregate | None = None
    layout: GroupLayout | None = None
    row_layout: RowLayout | None = None
    composition: Composition | None = None
    """How the view's aggregate is summed from change tables of an aggregate below it."""
    singular: Reason | None = None
    """Why no change table from below the view's aggregate passes it, if there are any."""
    top: TopLayout | None = None
    """How the first rows of a view with LIMIT are stored."""

    @property
    def visible(self) -> tuple[Attribute, ...]:
        """The view's columns as users see them."""
        return self.relation.attributes

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables and views that it reads."""
        return tuple(table for table in tables(self.relation) if not is_clock(table))

    @property
    def clocks(self) -> tuple[str, ...]:
        """The clocks that it reads."""
        return tuple(table for table in tables(self.relation) if is_clock(table))

    @property
    def is_counted(self) -> bool:
        """Whether a stored row stands for ``__count`` rows of the view."""
        return self.technique in (Technique.COUNTING, Technique.DELTA)

    @property
    def layout_name(self) -> str:
        """What the stored columns mean: another name means that other values are kept in them."""
        if self.is_counted:
            return "extent"
        if self.top is not None:
            return "top rows"
        if self.row_layout is not None:
            return "padded parts" if self.row_layout.padded else "parts"
        if self.layout is None:
            return "rows"
        return "composed groups" if self.composition is not None else "groups"

    @property
    def has_copies(self) -> bool:
        """Whether a stored row has a count, but another key than the row that it shows."""
        return self.row_layout is not None or self.top is not None

    @property
    def is_read_whole(self) -> bool:
        """Whether a refresh reads all stored rows, which are few."""
        return self.top is not None or (self.aggregate is not None and not self.aggregate.group)

    def maintenance(self, changed: Mapping[str, Kind]) -> Maintenance | None:
        """The expressions for these changed sources; None if the view cannot change with them."""
        new = numbering(self.relation, self.rows, self.maintained or self.relation)
        derivation = Derivation(self.maintained or self.relation, changed, new=new)
        if self.row_layout is not None:
            return self._by_parts(self.row_layout, derivation)
        change = self._change(derivation)
        if change is None:
            return None
        change = merge_projections(change)
        if self.top is not None:
            return self._top_rows(self.top, change, derivation)
        below = tuple(derivation.temporaries)
        direct = None
        late = self._has_late_update(changed)
        if self.technique is not Technique.GROUP_RECOMPUTE and not late:
            # The change table is read once; otherwise first to find groups, then to refresh.
            refreshed = self._refreshed(change, derivation, late)
            direct = replace(refreshed, temporaries=(*below, *refreshed.temporaries))
        leaf = derivation.temporary(change, "□")
        rows = derivation.temporaries[-1]
        refreshed = self._refreshed(leaf, derivation, late)
        stepwise = replace(refreshed, temporaries=(*below, rows, *refreshed.temporaries))
        group = self.layout.group if self.layout is not None else self.key
        return Maintenance(direct, stepwise, (_stored_keys(leaf, self.key, group),))

    def _composed(self, composition: Composition, derivation: Derivation) -> Relation | None:
        """□V summed from the change tables of each part below, combined by U."""
        assert self.layout is not None
        assert self.aggregate is not None
        changes = _part_changes(composition.extent, self.aggregate.child, derivation)
        parts = [composition.summed(change.relation, derivation.new) for _, change in changes]
        return combined(parts, self.layout.group, self.layout.states) if parts else None

    def _by_parts(self, layout: RowLayout, derivation: Derivation) -> Maintenance | None:
        """One part after the other, earlier ones as they are after the change, later ones before."""
        extent, new = layout.extent, derivation.new
        changes: list[tuple[Part, Signed, bool]] = []
        keys: list[StoredKeys] = []
        for part, change in _part_changes(extent, self.relation, derivation):
            leaf = derivation.temporary(merge_projections(change.relation), "□")
            passes = extent.singularity(part) is None
            changes.append((part, replace(change, relation=leaf), passes))
            keys.append(_stored_keys(leaf, layout.key, extent.key))
            if passes:
                led = _padded_keys if change.insertions_only else _kept_keys
                keys += [led(leaf, layout, part, pad) for pad in extent.pads_of(part)]
        if not changes:
            return None
        stored = layout.leaf(self.view, new)
        rows = layout.held(stored)
        for part, change, passes in changes:
            if not passes:
                rows = with_delta(rows, change.relation)
                continue
            rows = updated(rows, change.relation, part, extent, new)
            for pad in extent.pads_of(part):
                if change.insertions_only:
                    rows = no_longer_padded(rows, change.relation, part, pad, extent, new)
                    continue
                rows = derivation.temporary(rows, "V")
                rows = padded_anew(rows, change.relation, part, pad, extent, new)
        after = Refreshed(layout.changed(stored, rows, new), stored, tuple(derivation.temporaries))
        return Maintenance(None, after, tuple(keys))

    def _top_rows(self, layout: TopLayout, change: Relation, derivation: Derivation) -> Maintenance:
        """The stored rows with the delta in their order; all of them are read."""
        assert self.maintained is not None
        leaf = derivation.temporary(change, "δ")
        post = derivation.post(self.maintained)
        relation, stored = refreshed_top(layout, post, leaf, self.view, derivation)
        after = Refreshed(relation, stored, tuple(derivation.temporaries))
        return Maintenance(after, after, (_stored_keys(leaf, layout.stored, layout.columns),))

    def _change(self, derivation: Derivation) -> Relation | None:
        """The count table, the change table or the touched groups."""
        assert self.maintained is not None
        if self.is_counted or self.top is not None:
            return count_table(self.maintained, derivation)
        assert self.aggregate is not None
        assert self.layout is not None
        if self.composition is not None:
            return self._composed(self.composition, derivation)
        delta = derive(self.maintained, derivation)
        if delta is None:
            return None
        if self.technique is Technique.GROUP_RECOMPUTE:
            return touched_groups(self.aggregate, delta.relation, derivation.new)
        return change_table(self.aggregate, delta.relation, self.layout.states, derivation.new)

    def _has_late_update(self, changed: Mapping[str, Kind]) -> bool:
        """Whether the base may be asked: for sums with rests, and for extrema once there are deletions."""
        if self.layout is None or not self.layout.states.late:
            return False
        if self.layout.states.double_sums:
            return True
        assert self.maintained is not None
        delta = derive(self.maintained, Derivation(self.maintained, changed))
        return delta is not None and not delta.insertions_only

    def _refreshed(self, change: Relation, derivation: Derivation, late: bool) -> Refreshed:
        """The refresh operator applied to a change table and the stored view."""
        new = derivation.new
        if self.is_counted:
            touched = touched_extent(change, self.view, new)
            return Refreshed(touched.relation, touched.stored)
        assert self.layout is not None
        assert self.aggregate is not None
        assert self.maintained is not None
        stored = stored_groups(self.layout, self.view, new)
        post = derivation.post(self.maintained)
        if self.technique is Technique.GROUP_RECOMPUTE:
            groups = recomputed_groups(self.aggregate, post, change, self.layout, stored, new)
            return Refreshed(groups, stored.leaf)
        if not late:
            return Refreshed(refresh(change, self.layout, stored, new), stored.leaf)
        at_stake = groups_at_stake(change, self.layout, stored, new)
        asked = derivation.temporary(at_stake, "late")
        found = late_values(self.aggregate, post, asked, self.layout, new)
        refreshed = refresh(change, self.layout, stored, new, found)
        return Refreshed(refreshed, stored.leaf, (derivation.temporaries[-1],))


def _part_changes(
    extent: Extent, view: Relation, derivation: Derivation
) -> Iterator[tuple[Part, Signed]]:
    """The parts that change, one after the other, each with the change of the extent."""
    for part in extent.parts:
        leaves = scans(part.source)
        if any(leaf.table in derivation.changed for leaf in leaves):
            yield part, _extent_change(extent, part, derivation.only(leaves, view))


def _extent_change(extent: Extent, part: Part, derivation: Derivation) -> Signed:
    """□ of an extent when one part changes, or its insertions and deletions past a singularity."""
    if extent.singularity(part) is not None:
        delta = extent_delta(extent, derivation)
        assert delta is not None
        return delta
    change = part_change(part, derivation)
    assert change is not None
    return propagated(extent, part, change, derivation)


def _stored_keys(
    leaf: Relation, key: tuple[Attribute, ...], held: tuple[Attribute, ...]
) -> StoredKeys:
    """The columns of a temporary that hold the stored key's values."""
    given, columns = _temporary(leaf)
    return StoredKeys(given, tuple((k, columns[h]) for k, h in zip(key, held, strict=False)))


def _kept_keys(leaf: Relation, layout: RowLayout, part: Part, pad: Pad) -> StoredKeys:
    """The columns that lead to all rows of a kept side that a change has met, partners included."""
    held = dict(zip(layout.columns, layout.stored, strict=True))
    kept = [a for a in layout.extent.key if a not in pad.changing and a not in layout.extent.marks]
    pairs = [(held[a], a) for a in kept or [pad.kept]]
    return _met_keys(leaf, layout, part, pad, pairs)


def _padded_keys(leaf: Relation, layout: RowLayout, part: Part, pad: Pad) -> StoredKeys:
    """The column that leads to the padded rows of a kept side that a change has met, and no others."""
    return _met_keys(leaf, layout, part, pad, [(layout.alone(pad), pad.by)])


def _met_keys(
    leaf: Relation,
    layout: RowLayout,
    part: Part,
    pad: Pad,
    pairs: Sequence[tuple[Attribute, Attribute]],
) -> StoredKeys:
    """Stored columns with attributes of a change table, in the rows that matter to an outer join."""
    given, columns = _temporary(leaf)
    unless = tuple(columns[inner.kept] for inner in layout.extent.inner_pads(part, pad))
    found = tuple((stored, columns[a]) for stored, a in pairs)
    return StoredKeys(given, found, columns[pad.kept], unless)


def _temporary(leaf: Relation) -> tuple[Given, dict[Attribute, Attribute]]:
    """A temporary's leaf, and the column of it that holds each attribute."""
    assert isinstance(leaf, Project)
    assert isinstance(leaf.child, Given)
    held = {
        output.attribute: output.expression.attribute
        for output in leaf.outputs
        if isinstance(output.expression, Column)
    }
    return leaf.child, held
