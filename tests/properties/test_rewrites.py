"""Rewrite rules keep the value of every expression, and do what they are for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from freshview.algebra.evaluate import Database, evaluate
from freshview.algebra.expressions import Call, Column, Literal, equal, integer
from freshview.algebra.relations import (
    Aggregate,
    Difference,
    Intersection,
    Join,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    keep,
)
from freshview.algebra.render import render
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import scans, walk
from freshview.rewrite.drop_empty import drop_empty
from freshview.rewrite.merge_projections import merge_projections
from freshview.rewrite.prune_columns import prune_columns
from freshview.rewrite.push_selection import push_selection
from freshview.rewrite.rules import rewrite
from tests.properties.generators import Builder
from tests.properties.random_tables import Dice, dice, states

RULES = {
    "push_selection": push_selection,
    "prune_columns": prune_columns,
    "merge_projections": merge_projections,
    "drop_empty": drop_empty,
    "all": rewrite,
}


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=500)
@given(data=dice)
def test_rewriting_keeps_the_value(rule: str, data: Dice) -> None:
    builder = Builder(data, Numbering(0))
    view = builder.relation(3)
    if data.random() < 0.5:
        view = builder.aggregate(view)
        view = Select(view, builder.predicate(view.attributes))
    database = Database(data.draw(states))
    rewritten = RULES[rule](view)
    assert rewritten.attributes == view.attributes
    assert evaluate(rewritten, database) == evaluate(view, database)
    assert RULES[rule](view) == rewritten


def test_a_selection_over_a_product_becomes_join_condition_and_narrow_scans() -> None:
    new = Numbering(0)
    r = Scan("r", tuple(new.attribute(c, "bigint") for c in "abc"))
    s = Scan("s", tuple(new.attribute(c, "bigint") for c in "bd"))
    a, b, _ = r.attributes
    b2, d = s.attributes
    predicate = Call("and", (equal(Column(b), Column(b2)), equal(Column(d), integer(1))), "boolean")
    view = Project(Select(Join(r, s), predicate), (Output(a, Column(a)),))
    assert render(rewrite(view)) == "Π a\n  ⋈ b = b\n    r(a, b)\n    σ d = 1\n      s(b, d)"


def test_a_rule_that_does_not_apply_returns_the_same_object() -> None:
    new = Numbering(0)
    r = Scan("r", tuple(new.attribute(c, "bigint") for c in "abc"))
    view = Select(r, equal(Column(r.attributes[0]), integer(1)))
    for rule in RULES.values():
        assert rule(view) is view


def tagged(data: Dice, builder: Builder, new: Numbering) -> Union:
    """Two relations united, with a constant that tells them apart in the first column."""
    operands = []
    for tag in range(2):
        below = builder.relation(2)
        mark = Output(new.attribute("tag", "bigint"), integer(tag))
        value = Output(new.attribute("value", "bigint"), Column(below.attributes[0]))
        operands.append(Project(below, (mark, value)))
    columns = tuple(new.attribute(name, "bigint") for name in ("tag", "value"))
    return Union(tuple(operands), columns)


@settings(max_examples=500)
@given(data=dice)
def test_branches_that_a_constant_rules_out_are_dropped(data: Dice) -> None:
    new = Numbering(1000)
    builder = Builder(data, Numbering(0))
    union = tagged(data, builder, new)
    tag, value = union.attributes
    chosen: Relation = Select(union, equal(Column(tag), integer(data.randrange(3))))
    other = builder.relation(1)
    on = equal(Column(value), Column(other.attributes[0]))
    fresh = tuple(new.attribute(a.name, a.type) for a in chosen.attributes)
    pairs = tuple(Output(f, Column(a)) for f, a in zip(fresh, union.attributes, strict=True))
    again = Project(union, pairs)
    above: list[Relation] = [
        chosen,
        Join(chosen, other, on),
        Semijoin(other, chosen, on, anti=data.random() < 0.5),
        Aggregate(chosen, (value,), ()),
        Aggregate(chosen, (), ()),
        Difference(again, chosen, all=True),
        Intersection(chosen, again, all=False),
        Sort(chosen, ()),
    ]
    view = above[data.randrange(len(above))]
    database = Database(data.draw(states))
    pushed = push_selection(view)
    dropped = drop_empty(pushed)
    assert evaluate(dropped, database) == evaluate(view, database)
    assert evaluate(rewrite(view), database) == evaluate(view, database)


def test_a_branch_of_another_tag_is_not_read() -> None:
    new = Numbering(0)
    r, s, again = (Scan(table, (new.attribute("a", "bigint"),)) for table in "rsr")
    kinds = [Literal(kind, "string", f"'{kind}'") for kind in ("store", "web", "store")]
    operands = [
        Project(scan, (Output(new.attribute("kind", "string"), kind), keep(scan.attributes[0])))
        for scan, kind in zip((r, s, again), kinds, strict=True)
    ]
    union = Union(tuple(operands), (new.attribute("kind", "string"), new.attribute("a", "bigint")))
    kind, _ = union.attributes
    web = Select(union, equal(Column(kind), kinds[1]))
    both = Semijoin(Select(r, equal(Column(r.attributes[0]), integer(1))), web, None)
    assert [scan.table for scan in scans(rewrite(both))] == ["r", "s"]
    assert not any(isinstance(node, Values) for node in walk(rewrite(both)))
    # Alone it would leave the view with fewer sources than its definition names.
    assert [scan.table for scan in scans(rewrite(web))] == ["r", "s", "r"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Literal("a", "string collate UTF8_LCASE"), Literal("A", "string collate UTF8_LCASE")),
        (Literal(1, "bigint"), Literal(2, "int")),
        (Literal(0.0, "double"), Literal(-0.0, "double")),
        (Literal(None, "bigint"), Literal(1, "bigint")),
    ],
)
def test_what_only_spark_can_compare_stays(one: Literal, other: Literal) -> None:
    r = Scan("r", (Numbering(0).attribute("a", "bigint"),))
    view = Select(r, equal(one, other))
    assert drop_empty(view) is view
