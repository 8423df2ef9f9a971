"""The Catalyst rules that a definition goes through before it is imported, in their order.

All of them are Spark's own and none looks at data: they only express syntax by fewer operators.
The whole optimizer is never run, because it folds data into the plan (an empty table would vanish,
``current_date()`` would become today) and because pushing selections and pruning columns are rules
of our own algebra.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from freshview.frontend.catalog_names import check_names
from freshview.frontend.scala import CATALYST, JavaObject, Scala, found_in, items


@dataclass(frozen=True, slots=True)
class CatalystRule:
    """A rule of Catalyst by the name of its Scala object, and why a definition needs it."""

    name: str
    reason: str


FINISHING: tuple[CatalystRule, ...] = (
    CatalystRule("analysis.EliminateSubqueryAliases", "aliases only served to resolve names"),
    CatalystRule("analysis.EliminateView", "a temporary view is the query it stands for"),
    CatalystRule("optimizer.EliminateResolvedHint", "hints say how, a view says what"),
    CatalystRule("expressions.EliminatePipeOperators", "|> is another way to write SELECT"),
    CatalystRule("optimizer.ReplaceExpressions", "nvl, every, … by the expressions they stand for"),
    CatalystRule("optimizer.RewriteNonCorrelatedExists", "the rules for correlated EXISTS need it"),
    CatalystRule(
        "optimizer.PullOutGroupingExpressions", "groups are attributes, as in our algebra"
    ),
    CatalystRule("optimizer.RewriteWithExpression", "shared parts of BETWEEN become a projection"),
)
"""Applied once, to the query and to every query inside its expressions."""

PULLING: tuple[CatalystRule, ...] = (
    CatalystRule(
        "optimizer.OptimizeOneRowRelationSubquery", "(SELECT a + 1) without FROM is a + 1"
    ),
    CatalystRule(
        "optimizer.PullOutNestedDataOuterRefExpressions", "outer(s).f is pulled out as a column"
    ),
    CatalystRule("optimizer.PullupCorrelatedPredicates", "correlation becomes a join condition"),
)
"""Applied in rounds until nothing changes: each round exposes the subqueries one level deeper."""

VALUING: tuple[CatalystRule, ...] = (
    CatalystRule("optimizer.ReplaceDeduplicateWithAggregate", "dropDuplicates() is a grouping"),
    CatalystRule("optimizer.ReplaceDistinctWithAggregate", "DISTINCT is a grouping"),
    CatalystRule(
        "optimizer.RewriteCorrelatedScalarSubquery", "a correlated value is an outer join"
    ),
    CatalystRule("optimizer.RewriteLateralSubquery", "LATERAL is a join"),
)
"""Applied after them in each round, to a query inside of another one before that other one."""

FILTERING: tuple[CatalystRule, ...] = (
    CatalystRule(
        "optimizer.PushDownPredicates", "IN is null-aware in a filter, and not in SELECT or ON"
    ),
    CatalystRule("optimizer.SimplifyBinaryComparison", "(a IN …) = false is NOT (a IN …)"),
    CatalystRule(
        "optimizer.BooleanSimplification", "NOT goes down to IN, which is null-aware only below it"
    ),
)
"""Applied then, until nothing changes, to a query with IN in it: Spark decides by the place of an IN whether
it is null-aware, after it has brought filters down and simplified them."""

JOINING: tuple[CatalystRule, ...] = (
    CatalystRule("optimizer.RewritePredicateSubquery", "EXISTS and IN are semi and antijoins"),
    CatalystRule("optimizer.RewriteWithExpression", "shared parts inside former subqueries"),
)
"""Applied last in each round."""

ROUNDS_MAX = 20
"""No query nests subqueries deeper than this; a rule that never settles is stopped."""


def desugared(scala: Scala, plan: JavaObject) -> JavaObject:
    """The analyzed plan in the operators that the import knows; the same bag of rows."""
    plan = scala.type(CATALYST + "optimizer.InlineCTE")(True, False).apply(plan)
    plan = with_subqueries(scala, plan, lambda part: _finished(scala, part))
    return _settled(lambda part: _decorrelated(scala, part), plan)


def _decorrelated(scala: Scala, plan: JavaObject) -> JavaObject:
    """One round: correlation is pulled up from the outside in, and becomes joins from the inside out."""
    plan = _applied(scala, PULLING, plan)
    plan = _with_each(scala, plan, lambda inner: _decorrelated(scala, inner))
    plan = _applied(scala, VALUING, plan)
    in_subquery = scala.singleton(CATALYST + "trees.TreePattern").IN_SUBQUERY()
    if plan.containsPattern(in_subquery):
        plan = _settled(lambda part: _applied(scala, FILTERING, part), plan)
    return _applied(scala, JOINING, plan)


def _settled(change: Callable[[JavaObject], JavaObject], plan: JavaObject) -> JavaObject:
    """The plan changed until nothing changes any more."""
    for _ in range(ROUNDS_MAX):
        new = change(plan)
        if new.fastEquals(plan):
            break
        plan = new
    return plan


def _finished(scala: Scala, plan: JavaObject) -> JavaObject:
    check_names(scala, plan)
    return _applied(scala, FINISHING, plan)


def _applied(scala: Scala, rules: tuple[CatalystRule, ...], plan: JavaObject) -> JavaObject:
    for rule in rules:
        plan = scala.singleton(CATALYST + rule.name).apply(plan)
    return plan


def with_subqueries(
    scala: Scala, plan: JavaObject, change: Callable[[JavaObject], JavaObject]
) -> JavaObject:
    """The plan changed, and so every query inside its expressions, innermost first."""
    return change(_with_each(scala, plan, lambda inner: with_subqueries(scala, inner, change)))


def _with_each(
    scala: Scala, plan: JavaObject, change: Callable[[JavaObject], JavaObject]
) -> JavaObject:
    """The plan with each query in its expressions changed, but not those inside of these."""
    pattern = scala.singleton(CATALYST + "trees.TreePattern").PLAN_EXPRESSION()
    found: list[JavaObject] = []
    _collect_subqueries(plan, pattern, found)
    if not found:
        return plan
    changed = [(source, source.withNewPlan(change(source.plan()))) for source in found]
    return plan.transformAllExpressions(scala.map(changed))


def _collect_subqueries(node: JavaObject, pattern: JavaObject, found: list[JavaObject]) -> None:
    """The outermost subquery expressions of a plan; parts without any are not entered."""
    if not node.containsPattern(pattern):
        return
    for expression in items(node.expressions()):
        found.extend(found_in(expression, pattern, _SUBQUERIES))
    for child in items(node.children()):
        _collect_subqueries(child, pattern, found)


_SUBQUERIES = frozenset({"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery"})
