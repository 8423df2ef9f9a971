"""How a view is kept: the technique, what is stored, and the expressions that refresh it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from freshview.algebra.expressions import Column, substitute
from freshview.algebra.relations import (
    Aggregate,
    Given,
    Output,
    Project,
    Relation,
    Scan,
    Sort,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import numbering, scans, tables
from freshview.change_table.aggregate import change_table, combined, stored_states
from freshview.change_table.compose import Composition, composed
from freshview.change_table.extent import Extent, Part, extent, is_structured
from freshview.change_table.late_update import groups_at_stake, late_values
from freshview.change_table.propagate import extent_delta, extent_rows, part_change, propagated
from freshview.change_table.refresh_operator import GroupLayout, refresh, stored_groups
from freshview.change_table.refresh_rows import padded_anew, updated, with_delta
from freshview.change_table.row_layout import RowLayout, row_layout
from freshview.change_table.states import ROWS_NAME, AggregateStates, aggregate_states
from freshview.counting.canonical import is_spju, normal
from freshview.counting.extent import count_table, stored_extent
from freshview.counting.refresh import touched_extent
from freshview.delta.derivation import Derivation, Kind, Temporary
from freshview.delta.derive import derive
from freshview.delta.exactness import check_exact
from freshview.group_recompute.recompute import recomputed_groups, stored_rows, touched_groups
from freshview.planner.kept_columns import check_counted, check_hidden, check_key
from freshview.reasons import NoRule, Reason
from freshview.rewrite.merge_projections import merge_projections
from freshview.rewrite.rules import rewrite


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

    A stored row is touched if its value in one of ``columns``, any of them, is in the leaf's column.
    """

    leaf: Given
    columns: tuple[tuple[Attribute, Attribute], ...]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The expressions that refresh a view for one set of changed tables.

    ``direct`` refreshes with the change table written out, where that is possible; ``stepwise`` has the
    change tables among its temporaries, and ``keys`` say which of their columns lead to stored rows.
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

    @property
    def visible(self) -> tuple[Attribute, ...]:
        """The view's columns as users see them."""
        return self.relation.attributes

    @property
    def sources(self) -> tuple[str, ...]:
        return tables(self.relation)

    @property
    def is_counted(self) -> bool:
        """Whether a stored row stands for ``__count`` rows of the view."""
        return self.technique in (Technique.COUNTING, Technique.DELTA)

    @property
    def is_of_parts(self) -> bool:
        """Whether a stored row is made of parts, some with copies."""
        return self.row_layout is not None

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
        below = tuple(derivation.temporaries)
        direct = None
        if not self._needs_steps(changed):
            refreshed = self._refreshed(change, derivation)
            direct = replace(refreshed, temporaries=(*below, *refreshed.temporaries))
        leaf = derivation.temporary(change, "□")
        rows = derivation.temporaries[-1]
        refreshed = self._refreshed(leaf, derivation)
        stepwise = replace(refreshed, temporaries=(*below, rows, *refreshed.temporaries))
        group = self.layout.group if self.layout is not None else self.key
        return Maintenance(direct, stepwise, (_stored_keys(leaf, self.key, group),))

    def _composed(self, composition: Composition, derivation: Derivation) -> Relation | None:
        """□V summed from the change tables of each part below, combined by U."""
        assert self.layout is not None
        assert self.aggregate is not None
        extent = composition.extent
        parts = []
        for part in extent.parts:
            leaves = scans(part.source)
            if not any(leaf.table in derivation.changed for leaf in leaves):
                continue
            alone = derivation.only(leaves, self.aggregate.child)
            change = _extent_change(extent, part, alone)
            parts.append(composition.summed(change, derivation.new))
        return combined(parts, self.layout.group, self.layout.states) if parts else None

    def _by_parts(self, layout: RowLayout, derivation: Derivation) -> Maintenance | None:
        """One part after the other, earlier ones as they are after the change, later ones before."""
        extent, new = layout.extent, derivation.new
        changes: list[tuple[Part, Relation, bool]] = []
        keys: list[StoredKeys] = []
        for part in extent.parts:
            leaves = scans(part.source)
            if not any(leaf.table in derivation.changed for leaf in leaves):
                continue
            alone = derivation.only(leaves, self.relation)
            change = _extent_change(extent, part, alone)
            leaf = derivation.temporary(merge_projections(change), "□")
            changes.append((part, leaf, extent.singularity(part) is None))
            keys.append(_stored_keys(leaf, layout.key, extent.key))
        if not changes:
            return None
        stored = layout.leaf(self.view, new)
        rows = layout.held(stored)
        for part, change, passes in changes:
            if not passes:
                rows = with_delta(rows, change)
                continue
            rows = derivation.temporary(updated(rows, change, part, extent, new), "V")
            for pad in extent.pads:
                if frozenset(part.states) <= pad.changing:
                    rows = padded_anew(rows, change, pad, extent, new)
                    rows = derivation.temporary(rows, "V")
        after = Refreshed(layout.changed(stored, rows, new), stored, tuple(derivation.temporaries))
        return Maintenance(None, after, tuple(keys))

    def _change(self, derivation: Derivation) -> Relation | None:
        """The count table, the change table or the touched groups."""
        assert self.maintained is not None
        if self.is_counted:
            return count_table(self.maintained, derivation)
        assert self.aggregate is not None
        assert self.layout is not None
        if self.composition is not None:
            return self._composed(self.composition, derivation)
        delta = derive(self.maintained, derivation)
        if delta is None:
            return None
        if self.technique is Technique.GROUP_RECOMPUTE:
            return touched_groups(self.aggregate, delta.relation)
        return change_table(self.aggregate, delta.relation, self.layout.states, derivation.new)

    def _needs_steps(self, changed: Mapping[str, Kind]) -> bool:
        """Whether the change table is read more than once: to find groups, then to refresh."""
        return self.technique is Technique.GROUP_RECOMPUTE or self._has_late_update(changed)

    def _has_late_update(self, changed: Mapping[str, Kind]) -> bool:
        """Whether an extremum can be lost: not while all that happens is insertions."""
        if self.layout is None or not self.layout.states.extrema:
            return False
        assert self.maintained is not None
        delta = derive(self.maintained, Derivation(self.maintained, changed))
        return delta is not None and not delta.insertions_only

    def _refreshed(self, change: Relation, derivation: Derivation) -> Refreshed:
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
        if not self._has_late_update(derivation.changed):
            return Refreshed(refresh(change, self.layout, stored, new), stored.leaf)
        at_stake = groups_at_stake(change, self.layout, stored, new)
        asked = derivation.temporary(at_stake, "late")
        late = late_values(self.aggregate, post, asked, self.layout, new)
        refreshed = refresh(change, self.layout, stored, new, late)
        return Refreshed(refreshed, stored.leaf, (derivation.temporaries[-1],))


def _extent_change(extent: Extent, part: Part, derivation: Derivation) -> Relation:
    """□ of an extent when one part changes, or its insertions and deletions past a singularity."""
    if extent.singularity(part) is not None:
        delta = extent_delta(extent, derivation)
        assert delta is not None
        return delta
    change = part_change(part, derivation)
    assert change is not None
    return propagated(extent, part, derivation.temporary(change, "□part"), derivation)


def strategy(view: str, definition: Relation) -> Strategy:
    """The best technique that has a rule for every operator of the view.

    A view that has none is recomputed in full, with the reason.
    """
    relation = rewrite(definition)
    try:
        return _chosen(view, relation)
    except NoRule as missing:
        return Strategy(
            view, Technique.FULL, relation, relation.attributes, (), relation, missing.reason
        )


def _chosen(view: str, relation: Relation) -> Strategy:
    peeled = _peel(relation)
    if peeled is None:
        if is_structured(relation):
            by_parts = _by_parts(view, relation)
            if by_parts is not None:
                return by_parts
        technique = Technique.COUNTING if is_spju(relation) else Technique.DELTA
        return _by_extent(view, relation, technique)
    aggregate, outputs = peeled
    try:
        return _by_change_table(view, relation, aggregate, outputs)
    except NoRule:
        if not aggregate.group:
            raise
        return _by_group_recompute(view, relation, aggregate, outputs)


def _by_extent(view: str, relation: Relation, technique: Technique) -> Strategy:
    maintained = _maintained(relation)
    check_counted(relation.attributes)
    check_key(relation.attributes)
    rows = stored_extent(relation)
    return Strategy(
        view,
        technique,
        relation,
        rows.attributes,
        relation.attributes,
        rows,
        maintained=maintained,
    )


def _by_parts(view: str, relation: Relation) -> Strategy | None:
    """A change table from each part of the view's rows; None if none of them reaches the top."""
    new = numbering(relation)
    made = extent(relation, new)
    if all(made.singularity(part) is not None for part in made.parts):
        return None
    layout = row_layout(made, new)
    check_counted(layout.key)
    check_key(layout.key)
    check_hidden(layout.attributes, relation.attributes)
    for part in made.parts:
        derive(part.source, Derivation(part.source, tables(part.source)))
    rows = layout.rows(extent_rows(made, new))
    return Strategy(
        view,
        Technique.CHANGE_TABLE,
        relation,
        layout.attributes,
        layout.key,
        rows,
        row_layout=layout,
    )


def _stored_keys(
    leaf: Relation, key: tuple[Attribute, ...], held: tuple[Attribute, ...]
) -> StoredKeys:
    """The columns of a temporary that hold the stored key's values."""
    assert isinstance(leaf, Project)
    assert isinstance(leaf.child, Given)
    columns = {
        output.attribute: output.expression.attribute
        for output in leaf.outputs
        if isinstance(output.expression, Column)
    }
    pairs = tuple((k, columns[h]) for k, h in zip(key, held, strict=False))
    return StoredKeys(leaf.child, pairs)


def _by_change_table(
    view: str, relation: Relation, aggregate: Aggregate, outputs: tuple[Output, ...]
) -> Strategy:
    new = numbering(relation)
    states = aggregate_states(aggregate, new)
    values = {output.attribute: states.value(output.call) for output in aggregate.aggregates}
    visible = tuple(Output(o.attribute, substitute(o.expression, values)) for o in outputs)
    layout = GroupLayout(aggregate.group, _key(aggregate, visible, new), states, visible)
    composition = _composition(aggregate, states, new)
    if composition is None:
        held = stored_states(aggregate, states, new)
    else:
        held = composition.summed(extent_rows(composition.extent, new), new)
    made = _by_groups(view, Technique.CHANGE_TABLE, relation, aggregate, layout, layout.rows(held))
    return replace(made, composition=composition)


def _composition(
    aggregate: Aggregate, states: AggregateStates, new: Numbering
) -> Composition | None:
    """How the aggregate is summed from one below it, if change tables can pass it."""
    if not is_structured(aggregate.child) or not aggregate.group:
        return None
    try:
        return composed(aggregate, extent(aggregate.child, new), states)
    except NoRule:
        return None


def _by_group_recompute(
    view: str, relation: Relation, aggregate: Aggregate, outputs: tuple[Output, ...]
) -> Strategy:
    for output in aggregate.aggregates:
        check_exact(output.call)
    new = numbering(relation)
    states = AggregateStates(new.attribute(ROWS_NAME, "bigint", nullable=False), ())
    layout = GroupLayout(aggregate.group, _key(aggregate, outputs, new), states, outputs)
    rows = layout.rows(stored_rows(aggregate, states))
    return _by_groups(view, Technique.GROUP_RECOMPUTE, relation, aggregate, layout, rows)


def _by_groups(
    view: str,
    technique: Technique,
    relation: Relation,
    aggregate: Aggregate,
    layout: GroupLayout,
    rows: Relation,
) -> Strategy:
    maintained = _maintained(aggregate.child)
    check_key(layout.key)
    check_hidden(layout.columns(), relation.attributes)
    return Strategy(
        view,
        technique,
        relation,
        layout.columns(),
        layout.key,
        rows,
        maintained=maintained,
        aggregate=aggregate,
        layout=layout,
    )


def _maintained(relation: Relation) -> Relation:
    """The relation in canonical form; NoRule for an operator that has no delta rule."""
    maintained = merge_projections(normal(relation))
    derive(maintained, Derivation(maintained, tables(maintained)))
    return maintained


def _peel(relation: Relation) -> tuple[Aggregate, tuple[Output, ...]] | None:
    """The aggregate on top of a view and the outputs computed from it, or None."""
    match relation:
        case Sort(child, _):
            return _peel(child)
        case Aggregate():
            return relation, tuple(keep(attribute) for attribute in relation.attributes)
        case Project(child, outputs):
            inner = _peel(child)
            if inner is None:
                return None
            values = {output.attribute: output.expression for output in inner[1]}
            above = tuple(Output(o.attribute, substitute(o.expression, values)) for o in outputs)
            return inner[0], above
        case _:
            return None


def _key(
    aggregate: Aggregate, visible: tuple[Output, ...], new: Numbering
) -> tuple[Attribute, ...]:
    """A stored attribute for each group attribute: a visible one that shows it, or a hidden one."""
    if not aggregate.group:
        return (new.attribute("__key", "int", nullable=False),)
    shown = {
        output.expression.attribute: output.attribute
        for output in reversed(visible)
        if isinstance(output.expression, Column)
    }
    return tuple(
        shown.get(attribute) or new.attribute(f"__key{place}", attribute.type)
        for place, attribute in enumerate(aggregate.group, start=1)
    )
