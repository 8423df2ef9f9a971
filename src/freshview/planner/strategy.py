"""How a view is kept: the technique, what is stored, and the expressions that refresh it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from freshview.algebra.expressions import Column, substitute
from freshview.algebra.relations import (
    Aggregate,
    Output,
    Project,
    Relation,
    Scan,
    Sort,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import numbering, tables
from freshview.change_table.aggregate import change_table, stored_states
from freshview.change_table.refresh_operator import GroupLayout, refresh
from freshview.change_table.states import aggregate_states
from freshview.counting.canonical import Canonical, canonical
from freshview.counting.extent import count_table, forms_delta, stored_extent
from freshview.counting.refresh import touched_extent
from freshview.delta.derive import derive
from freshview.planner.kept_columns import check_counted, check_hidden, check_key
from freshview.reasons import NoRule, Reason
from freshview.rewrite.rules import rewrite


class Technique(Enum):
    """The ways to keep a view; the names are those of the papers."""

    COUNTING = "counting"
    CHANGE_TABLE = "change table"
    FULL = "full recompute"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """An expression for the touched stored rows, and the leaf that stands for the stored view."""

    relation: Relation
    stored: Scan


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
    forms: tuple[Canonical, ...] = ()
    aggregate: Aggregate | None = None
    layout: GroupLayout | None = None

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
        return self.technique is Technique.COUNTING

    def change(self, changed: Collection[str]) -> Relation | None:
        """The count table or change table when these sources change; None if the view cannot."""
        if self.technique is Technique.COUNTING:
            return count_table(self.forms, self.visible, changed)
        assert self.aggregate is not None
        assert self.layout is not None
        delta = forms_delta(self.forms, self.aggregate.child.attributes, changed)
        return None if delta is None else change_table(self.aggregate, delta, self.layout.states)

    def refreshed(self, change: Relation) -> Refreshed:
        """The refresh operator applied to a change table and the stored view."""
        if self.technique is Technique.COUNTING:
            touched = touched_extent(change, self.view)
            return Refreshed(touched.relation, touched.stored)
        assert self.layout is not None
        groups = refresh(change, self.layout, self.view)
        return Refreshed(groups.relation, groups.stored)


def strategy(view: str, definition: Relation) -> Strategy:
    """The best technique that has a rule for every operator of the view.

    A view that has none is recomputed in full, with the reason.
    """
    relation = rewrite(definition)
    try:
        peeled = _peel(relation)
        if peeled is not None:
            return _by_change_table(view, relation, *peeled)
        return _by_counting(view, relation)
    except NoRule as missing:
        return Strategy(
            view, Technique.FULL, relation, relation.attributes, (), relation, missing.reason
        )


def _by_counting(view: str, relation: Relation) -> Strategy:
    forms = _forms(relation)
    check_counted(relation.attributes)
    check_key(relation.attributes)
    rows = stored_extent(relation)
    return Strategy(
        view,
        Technique.COUNTING,
        relation,
        rows.attributes,
        relation.attributes,
        rows,
        forms=forms,
    )


def _by_change_table(
    view: str, relation: Relation, aggregate: Aggregate, outputs: tuple[Output, ...]
) -> Strategy:
    forms = _forms(aggregate.child)
    new = numbering(relation)
    states = aggregate_states(aggregate, new)
    values = {output.attribute: states.value(output.call) for output in aggregate.aggregates}
    visible = tuple(Output(o.attribute, substitute(o.expression, values)) for o in outputs)
    layout = GroupLayout(aggregate.group, _key(aggregate, visible, new), states, visible)
    check_key(layout.key)
    check_hidden(layout.columns(), relation.attributes)
    return Strategy(
        view,
        Technique.CHANGE_TABLE,
        relation,
        layout.columns(),
        layout.key,
        layout.rows(stored_states(aggregate, states)),
        forms=forms,
        aggregate=aggregate,
        layout=layout,
    )


def _forms(relation: Relation) -> tuple[Canonical, ...]:
    """The canonical forms of a relation, or NoRule for the operator that prevents them."""
    derive(relation, tables(relation))
    forms = canonical(relation)
    assert forms is not None, "every operator with a delta rule has a canonical form"
    return forms


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
