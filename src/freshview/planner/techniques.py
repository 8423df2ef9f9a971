"""Which technique keeps a view: the one asked for by name, or the best that has a rule for it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from freshview.algebra.expressions import Column, substitute
from freshview.algebra.relations import Aggregate, Limit, Output, Project, Relation, Sort, keep
from freshview.algebra.render import describe
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import numbering, tables
from freshview.change_table.compose import Composition, composed
from freshview.change_table.extent import extent, is_structured
from freshview.change_table.propagate import extent_rows
from freshview.change_table.refresh_operator import GroupLayout
from freshview.change_table.row_layout import row_layout
from freshview.counting.canonical import is_spju, normal
from freshview.counting.extent import stored_extent
from freshview.delta.aggregate_states import ROWS_NAME, AggregateStates, aggregate_states
from freshview.delta.derivation import Derivation
from freshview.delta.derive import derive
from freshview.delta.exactness import check_order
from freshview.delta.group_states import stored_states
from freshview.delta.limit import check_limit_order
from freshview.group_recompute.recompute import stored_rows
from freshview.group_recompute.top_rows import ROWS_MAX, top_layout
from freshview.planner.kept_columns import check_counted, check_hidden, check_key
from freshview.planner.strategy import Strategy, Technique
from freshview.reasons import NoRule, Reason
from freshview.rewrite.merge_projections import merge_projections
from freshview.rewrite.rules import rewrite

WANTED = {
    "auto": None,
    "counting": Technique.COUNTING,
    "delta": Technique.DELTA,
    "change_table": Technique.CHANGE_TABLE,
    "group_recompute": Technique.GROUP_RECOMPUTE,
}
"""The techniques that can be asked for by name."""


def strategy(view: str, definition: Relation, wanted: Technique | None = None) -> Strategy:
    """The wanted technique, or the best one that has a rule for every operator of the view.

    A view that has none is recomputed in full, with the reason.
    """
    relation = rewrite(definition)
    try:
        return _chosen(view, relation) if wanted is None else _asked_for(view, relation, wanted)
    except NoRule as missing:
        return Strategy(
            view, Technique.FULL, relation, relation.attributes, (), relation, missing.reason
        )


def _chosen(view: str, relation: Relation) -> Strategy:
    """The best technique, else deltas of the visible rows.

    The last way is for what would have to be stored with them and cannot be, such as groups by collated
    texts, and columns of a join's side that hold maps.
    """
    try:
        return _best(view, relation)
    except NoRule as missing:
        try:
            return _by_extent(view, relation, Technique.DELTA, relation)
        except NoRule:
            raise missing from None


def _best(view: str, relation: Relation) -> Strategy:
    limited = _limited(relation)
    if limited is not None:
        return _by_top_rows(view, relation, *limited)
    peeled = _peel(relation)
    if peeled is None:
        if is_structured(relation):
            by_parts = _by_parts(view, relation)
            if by_parts is not None:
                return by_parts
        technique = Technique.COUNTING if is_spju(relation) else Technique.DELTA
        return _by_extent(view, relation, technique, normal(relation))
    return _by_best_groups(view, relation, *peeled)


def _by_best_groups(
    view: str, relation: Relation, aggregate: Aggregate, outputs: tuple[Output, ...]
) -> Strategy:
    """By change table, else by computing touched groups again."""
    with suppress(NoRule):
        return _by_change_table(view, relation, aggregate, outputs)
    return _by_group_recompute(view, relation, aggregate, outputs)


def _asked_for(view: str, relation: Relation, wanted: Technique) -> Strategy:
    """The view by one technique. NoRule if that has no rule for it."""
    peeled = _peel(relation)
    match wanted:
        case Technique.COUNTING:
            counted = relation if peeled is None else peeled[0].child
            if not is_spju(counted):
                raise NoRule(_not_for(wanted, relation, "it counts rows of σ, Π, ⋈ and ⊎ only"))
            if peeled is None:
                return _by_extent(view, relation, Technique.COUNTING, normal(relation))
            return _by_change_table(view, relation, *peeled)
        case Technique.DELTA:
            return _by_extent(view, relation, wanted, relation)
        case Technique.CHANGE_TABLE:
            made = None
            if peeled is not None:
                made = _by_change_table(view, relation, *peeled)
            elif is_structured(relation):
                made = _by_parts(view, relation)
            if made is None:
                why = "no aggregate or outer join has a change table that reaches the top"
                raise NoRule(_not_for(wanted, relation, why))
            return made
        case Technique.GROUP_RECOMPUTE:
            limited = _limited(relation)
            if limited is not None:
                return _by_top_rows(view, relation, *limited)
            if peeled is None:
                raise NoRule(_not_for(wanted, relation, "there are no groups on top of the view"))
            return _by_group_recompute(view, relation, *peeled)
        case Technique.FULL:
            raise AssertionError("the policy FULL asks for this")


def _not_for(technique: Technique, relation: Relation, why: str) -> Reason:
    return Reason(
        f"NOT_BY_{technique.name}",
        describe(relation),
        why,
        "name one that explain lists as possible in OPTIONS (technique = …), or auto",
    )


def _by_extent(
    view: str, relation: Relation, technique: Technique, derived_from: Relation
) -> Strategy:
    maintained = _maintained(derived_from)
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


def _by_change_table(
    view: str, relation: Relation, aggregate: Aggregate, outputs: tuple[Output, ...]
) -> Strategy:
    new = numbering(relation)
    states = aggregate_states(aggregate, new)
    values = {output.attribute: states.value(output.call) for output in aggregate.aggregates}
    visible = tuple(Output(o.attribute, substitute(o.expression, values)) for o in outputs)
    layout = GroupLayout(aggregate.group, _key(aggregate, visible, new), states, visible)
    composition, singular = _composition(aggregate, states, new)
    if composition is None:
        held = stored_states(aggregate, states, new)
    else:
        held = composition.summed(extent_rows(composition.extent, new), new)
    made = _by_groups(view, Technique.CHANGE_TABLE, relation, aggregate, layout, layout.rows(held))
    return replace(made, composition=composition, singular=singular)


def _composition(
    aggregate: Aggregate, states: AggregateStates, new: Numbering
) -> tuple[Composition | None, Reason | None]:
    """How the aggregate is summed from one below it, or why no change table from below passes it."""
    if not is_structured(aggregate.child) or not aggregate.group:
        return None, None
    try:
        return composed(aggregate, extent(aggregate.child, new), states), None
    except NoRule as ended:
        return None, ended.reason


def _by_group_recompute(
    view: str, relation: Relation, aggregate: Aggregate, outputs: tuple[Output, ...]
) -> Strategy:
    for output in aggregate.aggregates:
        check_order(output.call)
    new = numbering(relation)
    states = AggregateStates(new.attribute(ROWS_NAME, "bigint", nullable=False), ())
    layout = GroupLayout(aggregate.group, _key(aggregate, outputs, new), states, outputs)
    rows = layout.rows(stored_rows(aggregate, states))
    return _by_groups(view, Technique.GROUP_RECOMPUTE, relation, aggregate, layout, rows)


def _by_top_rows(
    view: str, relation: Relation, limit: Limit, visible: tuple[Output, ...]
) -> Strategy:
    check_limit_order(limit)
    new = numbering(relation)
    layout = top_layout(limit, visible, new)
    maintained = _maintained(normal(limit.child))
    check_counted(layout.stored)
    check_key(layout.stored)
    check_hidden(layout.attributes, relation.attributes)
    return Strategy(
        view,
        Technique.GROUP_RECOMPUTE,
        relation,
        layout.attributes,
        layout.stored,
        layout.rows(limit.child, new),
        maintained=maintained,
        top=layout,
    )


def _by_groups(
    view: str,
    technique: Technique,
    relation: Relation,
    aggregate: Aggregate,
    layout: GroupLayout,
    rows: Relation,
) -> Strategy:
    maintained = _maintained(normal(aggregate.child))
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
    """What deltas are derived from; NoRule for an operator that has no delta rule."""
    maintained = merge_projections(relation)
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


def _limited(relation: Relation) -> tuple[Limit, tuple[Output, ...]] | None:
    """The limit on top of a view and the outputs computed from its rows, or None.

    A limit that leaves no room to count one row more is none that rows are kept for.
    """
    match relation:
        case Sort(child, _):
            return _limited(child)
        case Limit(count=count, offset=offset) if count is not None and count + offset < ROWS_MAX:
            return relation, tuple(keep(attribute) for attribute in relation.attributes)
        case Project(child, outputs):
            inner = _limited(child)
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
