"""Rewrite rules keep the value of every expression, and do what they are for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from freshview.algebra.evaluate import Database, evaluate
from freshview.algebra.expressions import Column, equal, integer
from freshview.algebra.relations import Join, Output, Project, Scan, Select
from freshview.algebra.render import render
from freshview.algebra.schema import Numbering
from freshview.rewrite.merge_projections import merge_projections
from freshview.rewrite.prune_columns import prune_columns
from freshview.rewrite.push_selection import push_selection
from freshview.rewrite.rules import rewrite
from tests.properties.generators import Builder, Dice, dice, states

RULES = {
    "push_selection": push_selection,
    "prune_columns": prune_columns,
    "merge_projections": merge_projections,
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
    from freshview.algebra.expressions import Call

    predicate = Call("and", (equal(Column(b), Column(b2)), equal(Column(d), integer(1))), "boolean")
    view = Project(Select(Join(r, s), predicate), (Output(a, Column(a)),))
    assert render(rewrite(view)) == "Π a\n  ⋈ b = b\n    r(a, b)\n    σ d = 1\n      s(b, d)"


def test_a_rule_that_does_not_apply_returns_the_same_object() -> None:
    new = Numbering(0)
    r = Scan("r", tuple(new.attribute(c, "bigint") for c in "abc"))
    view = Select(r, equal(Column(r.attributes[0]), integer(1)))
    for rule in RULES.values():
        assert rule(view) is view
