"""The one dispatch from an expression to its delta expression."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Expand,
    Generate,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    Window,
)
from freshview.algebra.render import describe
from freshview.delta.join import flatten, join_delta
from freshview.delta.projection import projection_delta
from freshview.delta.selection import selection_delta
from freshview.delta.union import union_delta
from freshview.reasons import NoRule, Reason


def derive(relation: Relation, changed: Collection[str]) -> Relation | None:
    """The delta of a relation when the tables in ``changed`` change; None if it cannot change.

    The result has the relation's attributes and the signed count. It is not consolidated. Raises
    NoRule at an operator without a rule, changed or not: whether a view is incremental must not
    depend on which table happened to change.
    """
    match relation:
        case Scan(table, attributes):
            return Changes(table, attributes) if table in changed else None
        case Values():
            return None
        case Select(child, _):
            delta = derive(child, changed)
            return None if delta is None else selection_delta(relation, delta)
        case Project(child, _):
            delta = derive(child, changed)
            return None if delta is None else projection_delta(relation, delta)
        case Join():
            operands, on = flatten(relation)
            return join_delta(operands, tuple(derive(o, changed) for o in operands), on)
        case Union(operands, _):
            return union_delta(relation, tuple(derive(o, changed) for o in operands))
        case Sort(child, _):
            return derive(child, changed)
        case Aggregate() | OuterJoin() | Semijoin() | MarkJoin() | Repeat() | Window() | Expand():
            raise NoRule(_reason(relation))
        case Generate() | Limit() | Changes():
            raise NoRule(_reason(relation))
        case _:
            assert_never(relation)


def _reason(node: Relation) -> Reason:
    code, name = _WITHOUT_RULE[type(node)]
    return Reason(
        code,
        describe(node),
        f"{name} has no delta rule below the top of a view yet",
        "materialise the part below it as a view of its own, or accept the full recompute",
    )


_WITHOUT_RULE: dict[type, tuple[str, str]] = {
    Aggregate: ("NO_RULE_NESTED_AGGREGATE", "an aggregate below another operator"),
    OuterJoin: ("NO_RULE_OUTER_JOIN", "an outer join"),
    Semijoin: ("NO_RULE_SEMIJOIN", "a semijoin or antijoin (IN, EXISTS, NOT EXISTS)"),
    MarkJoin: ("NO_RULE_MARK_JOIN", "EXISTS or IN inside OR"),
    Repeat: ("NO_RULE_REPEAT", "EXCEPT ALL or INTERSECT ALL"),
    Window: ("NO_RULE_WINDOW", "a window function"),
    Expand: ("NO_RULE_GROUPING_SETS", "GROUPING SETS, ROLLUP or CUBE"),
    Generate: ("NO_RULE_GENERATE", "a generator (EXPLODE, LATERAL VIEW)"),
    Limit: ("NO_RULE_LIMIT", "LIMIT or OFFSET"),
    Changes: ("NO_RULE_CHANGES", "a delta inside a view"),
}
