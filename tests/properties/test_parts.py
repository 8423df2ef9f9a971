"""Change tables through σ, Π, ×, ⋈, ⊎, π and outer joins, down from the root: [GM06] Tables 4 and 5.

Shapes in which aggregates and outer joins lie below other operators; tests/planner/test_dispatch.py runs
each under every technique that has a rule for it.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Call, Column, equal, integer
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    Select,
    Union,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.properties.generators import Builder
from tests.properties.planned import defined, recomputed, refreshed, visible
from tests.properties.random_tables import Dice, dice, states, transactions
from tests.properties.test_planned import named

Shape = Callable[[Builder], Relation]


def summed(b: Builder, child: Relation, width: int | None = None) -> Aggregate:
    """An aggregate with groups, of sums and counts."""
    count = width or b.dice.randint(1, min(2, len(child.attributes)))
    group = tuple(b.dice.sample(child.attributes, count))
    outputs = []
    for place in range(b.dice.randint(1, 2)):
        function = b.dice.choice(["sum", "count"])
        arguments = (Column(b.dice.choice(child.attributes)),)
        if function == "count" and b.dice.random() < 0.5:
            arguments = ()
        call = AggregateCall(function, arguments, "bigint")
        outputs.append(AggregateOutput(b.new.attribute(f"f{place}", "bigint"), call))
    return Aggregate(child, group, tuple(outputs))


def pick(b: Builder, attributes: tuple[Attribute, ...]) -> Column:
    return Column(b.dice.choice(attributes))


def below(b: Builder) -> Relation:
    """Something that an aggregate can be over."""
    return b.relation(b.dice.randint(0, 1))


def on_groups(b: Builder, left: Aggregate, right: Relation) -> Call:
    return equal(pick(b, left.group), pick(b, right.attributes))


def select_over_group(b: Builder) -> Relation:
    inner = summed(b, below(b))
    join = Join(inner, b.scan(), None)
    return Select(join, Call("<", (pick(b, inner.group), integer(2)), "boolean"))


def projection(b: Builder) -> Relation:
    inner = summed(b, below(b))
    other = b.scan()
    joined = Join(inner, other, on_groups(b, inner, other))
    shown = b.dice.sample(joined.attributes, b.dice.randint(1, 3))
    return Project(joined, tuple(keep(a) for a in shown))


def product(b: Builder) -> Relation:
    return Join(summed(b, below(b)), below(b))


def join(b: Builder) -> Relation:
    inner, other = summed(b, below(b)), below(b)
    return Join(inner, other, on_groups(b, inner, other))


def join_of_two_aggregates(b: Builder) -> Relation:
    one, two = summed(b, below(b)), summed(b, below(b))
    return Join(one, two, equal(pick(b, one.group), pick(b, two.group)))


def union(b: Builder) -> Relation:
    one, two = summed(b, below(b)), summed(b, below(b))
    width = min(len(one.attributes), len(two.attributes))
    operands = tuple(Project(o, tuple(keep(a) for a in o.attributes[-width:])) for o in (one, two))
    columns = tuple(b.new.attribute(f"u{place}", "bigint") for place in range(width))
    return Union(operands, columns)


def union_with_plain(b: Builder) -> Relation:
    one, two = summed(b, below(b)), b.scan()
    operands = tuple(Project(o, (keep(o.attributes[-1]),)) for o in (one, two))
    return Union(operands, (b.new.attribute("u", "bigint"),))


def outer_join_over_aggregate(b: Builder) -> Relation:
    inner, other = summed(b, below(b)), below(b)
    kept = b.dice.choice(["left", "right", "full"])
    return OuterJoin(inner, other, on_groups(b, inner, other), kept != "right", kept != "left")


def outer_join_of_two_aggregates(b: Builder) -> Relation:
    one, two = summed(b, below(b)), summed(b, below(b))
    on = equal(pick(b, one.group), pick(b, two.group))
    return OuterJoin(one, two, on, True, True)


def outer_joins(b: Builder) -> Relation:
    """(R ⟗ S) ⟗ T, with a condition that reads one side of the first."""
    inner = b.outer_join(1)
    assert isinstance(inner, OuterJoin)
    other = b.scan()
    side = b.dice.choice([inner.left, inner.right])
    on = equal(pick(b, side.attributes), pick(b, other.attributes))
    kept = b.dice.choice(["left", "right", "full"])
    return OuterJoin(inner, other, on, kept != "right", kept != "left")


def computed_below_outer_join(b: Builder) -> Relation:
    """A side that shows what it computes: of a padded row all of it is null."""
    inner = b.dice.choice([lambda: summed(b, below(b)), lambda: b.outer_join(1)])()
    outputs = tuple(
        Output(b.new.attribute(f"p{place}", "bigint"), b.scalar(inner.attributes))
        for place in range(b.dice.randint(1, 2))
    )
    keys = tuple(keep(a) for a in inner.attributes)
    sides = [Project(inner, (*keys, *outputs)), b.scan()]
    b.dice.shuffle(sides)
    left, right = sides
    on = equal(pick(b, left.attributes), pick(b, right.attributes))
    kept = b.dice.choice(["left", "right", "full"])
    return OuterJoin(left, right, on, kept != "right", kept != "left")


def join_over_outer_join(b: Builder) -> Relation:
    inner, other = b.outer_join(1), b.scan()
    return Join(inner, other, equal(pick(b, inner.attributes), pick(b, other.attributes)))


def computed_over_outer_join(b: Builder) -> Relation:
    inner = b.outer_join(1)
    outputs = (Output(b.new.attribute("p", "bigint"), b.scalar(inner.attributes)),)
    return Project(inner, (*(keep(a) for a in inner.attributes[:2]), *outputs))


def union_of_outer_joins(b: Builder) -> Relation:
    operands = []
    for _ in range(2):
        inner = b.outer_join(1)
        operands.append(
            Project(inner, tuple(keep(pick(b, inner.attributes).attribute) for _ in "a"))
        )
    return Union(tuple(operands), (b.new.attribute("u", "bigint"),))


def select_over_outer_join(b: Builder) -> Relation:
    inner = b.outer_join(1)
    return Select(inner, b.predicate(inner.attributes))


def having_below_join(b: Builder) -> Relation:
    inner, other = summed(b, below(b)), b.scan()
    high = Select(inner, Call("<", (integer(1), pick(b, inner.attributes)), "boolean"))
    return Join(high, other, on_groups(b, inner, other))


SHAPES: dict[str, Shape] = {
    shape.__name__: shape
    for shape in (
        select_over_group, projection, product, join, join_of_two_aggregates, union,
        union_with_plain, outer_join_over_aggregate, outer_join_of_two_aggregates, outer_joins,
        computed_below_outer_join, computed_over_outer_join, union_of_outer_joins, join_over_outer_join, select_over_outer_join, having_below_join,
    )
}  # fmt: skip


def aggregate_over(b: Builder, inner: Relation, low: Aggregate) -> Aggregate:
    """An aggregate that row 6 lets through: sums of sums and counts, groups among the keys."""
    held = [a for a in inner.attributes if a not in low.attributes[len(low.group) :]]
    group = tuple(b.dice.sample(held, b.dice.randint(1, min(2, len(held)))))
    outputs = tuple(
        AggregateOutput(
            b.new.attribute(f"s{place}", "bigint"),
            AggregateCall("sum", (Column(a),), "bigint"),
        )
        for place, a in enumerate(low.attributes[len(low.group) :])
    )
    return Aggregate(inner, group, outputs)


def aggregate_of_sums(b: Builder) -> Relation:
    """Row 6 over row 4: an aggregate over a join with an aggregate."""
    low, other = summed(b, b.scan("r")), b.scan("s")
    return aggregate_over(b, Join(low, other, on_groups(b, low, other)), low)


@settings(max_examples=1000)
@given(data=dice)
def test_an_aggregate_over_an_aggregate_never_reads_the_changed_table(data: Dice) -> None:
    """Row 6: SISales is virtual, and its tables are not read when they change ([GM06] Example 1)."""
    b = Builder(data, Numbering(0))
    low = summed(b, b.scan("r"))
    other = b.scan("s")
    view = named(aggregate_over(b, Join(low, other, on_groups(b, low, other)), low))
    kept = strategy("v", view)
    assert kept.technique is Technique.CHANGE_TABLE
    assert kept.composition is not None
    state = data.draw(states)
    stored = recomputed(kept, state)
    for _ in range(3):
        transaction = data.draw(transactions(state))
        stored, reads = refreshed(kept, stored, state, transaction, data)
        state = transaction.apply(state)
        assert stored == recomputed(kept, state)
        assert visible(kept, stored) == defined(kept, state)
        if set(transaction.deltas) == {"r"}:
            assert reads["r"] == 0
