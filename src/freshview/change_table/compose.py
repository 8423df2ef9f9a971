"""An aggregate over an extent: change tables of aggregates below it pass through. [GM06] Table 4, row 6.

π_{G',F}(E₁) with E₁ an extent that holds one aggregate: V = V ⊔ π_{G',F}(□E₁), if G' ⊆ G, every
argument is an updated column of E₁, and the function above is that of its update: a sum of sums or of
counts. The intermediate view E₁ is never materialised and its old value never read.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    cast,
    coalesce,
    either,
    integer,
    substitute,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Output,
    Project,
    Relation,
    Repeat,
    keep,
)
from freshview.algebra.render import aggregate_text
from freshview.algebra.schema import COUNT, Attribute, Numbering
from freshview.change_table.extent import AggregatePart, Extent, PlainPart
from freshview.change_table.singularity import singularity
from freshview.delta.aggregate_states import AggregateStates
from freshview.delta.group_states import zero
from freshview.reasons import NoRule


@dataclass(frozen=True, slots=True)
class Composition:
    """Which column of the extent each group attribute and each state of the aggregate is summed from."""

    extent: Extent
    group: tuple[tuple[Attribute, Attribute], ...]
    states: tuple[tuple[Attribute, Attribute], ...]

    def summed(self, rows: Relation, new: Numbering) -> Relation:
        """π_{G', Σ}(rows): the states of each group, or their changes for the rows of a change table.

        A row counts as often as the product of the copies of its plain parts says; in a change
        table one factor of that, or the state itself, is a change, so the product is the change of
        the product. Copies are repeated, not multiplied: a product would not fit Spark's decimals.
        """
        times = new.attribute("times", "bigint")
        weighed = Project(rows, (*map(keep, rows.attributes), Output(times, self._weight(rows))))
        repeated = Repeat(weighed, Call("abs", (Column(times),), "bigint"))
        negative = Call("<", (Column(times), integer(0)), "boolean")
        columns: list[Output] = [Output(outer, Column(inner)) for outer, inner in self.group]
        calls: list[AggregateOutput] = []
        filled: list[Output] = [keep(outer) for outer, _ in self.group]
        for outer, inner in self.states:
            value = cast(Column(inner), outer.type)
            opposite = Call("-", (zero(outer), value), outer.type)
            addend = new.attribute(f"{outer.name}_addend", outer.type)
            columns.append(Output(addend, either(negative, opposite, value)))
            total = new.attribute(outer.name, outer.type)
            calls.append(
                AggregateOutput(total, AggregateCall("sum", (Column(addend),), outer.type))
            )
            whole = cast(Column(total), outer.type)
            filled.append(Output(outer, coalesce(whole, zero(outer))))
        group = tuple(outer for outer, _ in self.group)
        return Project(
            Aggregate(Project(repeated, tuple(columns)), group, tuple(calls)), tuple(filled)
        )

    def _weight(self, rows: Relation) -> Expression:
        """How often a row counts: its copies, and the signed count of a delta."""
        weight: Expression = Column(COUNT) if COUNT in rows.attributes else integer(1)
        for part in self.extent.parts:
            if isinstance(part, PlainPart):
                weight = Call("*", (weight, coalesce(Column(part.copies), integer(1))), "bigint")
        return weight


def composed(node: Aggregate, extent: Extent, states: AggregateStates) -> Composition:
    """How an aggregate is summed from an extent; NoRule if the conditions of row 6 do not hold."""
    below = [part for part in extent.parts if isinstance(part, AggregatePart)]
    if extent.pads:
        raise NoRule(
            singularity(
                "OUTER_JOIN_BELOW_AGGREGATE",
                node,
                "a padded row that finds a partner is no new row, and one that loses it stays as a"
                " padded row: [GM06] Table 5 has no row for π, and Example 5 counts wrongly, so the"
                " net changes of the outer join are aggregated",
            )
        )
    if len(below) != 1:
        raise NoRule(
            singularity(
                "NOT_ONE_AGGREGATE",
                node,
                "a change table passes an aggregate if its rows come from one aggregate below, so"
                " that a row's count of causes is a sum",
            )
        )
    (part,) = below
    values = extent.value_of()
    group: list[tuple[Attribute, Attribute]] = []
    for attribute in node.group:
        value = values[attribute]
        if not isinstance(value, Column) or value.attribute not in extent.key:
            raise NoRule(
                singularity(
                    "GROUP_NOT_IN_KEY",
                    node,
                    f"the group {attribute.name} is not a key of the change table below: G′ ⊆ G does"
                    " not hold ([GM06] Table 4, row 6)",
                )
            )
        group.append((attribute, value.attribute))
    pairs = [(states.rows, part.kept.rows)]
    for output in node.aggregates:
        pairs += _sources(node, output.call, part, values, states)
    return Composition(extent, tuple(group), tuple(dict.fromkeys(pairs)))


def _sources(
    node: Aggregate,
    call: AggregateCall,
    part: AggregatePart,
    values: dict[Attribute, Expression],
    states: AggregateStates,
) -> list[tuple[Attribute, Attribute]]:
    """The states of a call above, each with the state below that it is the sum of."""
    inner = None
    if call.function == "sum" and not call.distinct and call.filter is None:
        argument = substitute(call.arguments[0], values)
        inner = next(
            (
                output.call
                for output in part.aggregate.aggregates
                if part.kept.value(output.call) == argument
            ),
            None,
        )
    if inner is None or inner.function not in ("sum", "count"):
        raise NoRule(
            singularity(
                "NOT_THE_UPDATE_FUNCTION",
                node,
                f"{aggregate_text(call)} is not a sum of an updated column: A ∈ Attrs(U) and the"
                " function of U are what lets a change table pass ([GM06] Table 4, row 6)",
            )
        )
    outer = states.of(call)
    assert outer.total is not None
    if inner.counts_rows:
        return [(outer.present, part.kept.rows), (outer.total, part.kept.rows)]
    below = part.kept.of(inner)
    if inner.function == "count":
        return [(outer.present, part.kept.rows), (outer.total, below.present)]
    assert below.total is not None
    return [(outer.present, below.present), (outer.total, below.total)]
