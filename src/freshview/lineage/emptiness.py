"""Whether a relation has no rows when its tables have none."""

from __future__ import annotations

from typing import assert_never

from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Previous,
    Project,
    Recursion,
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


def is_empty_over_nothing(node: Relation) -> bool:
    """E(∅) = ∅, as far as the operators tell: not where there are constants or a global aggregate."""
    match node:
        case Scan() | Changes() | Given() | Previous():
            return True
        case Recursion(anchor):
            return is_empty_over_nothing(anchor)
        case Values(_, rows):
            return not rows
        case Aggregate(child, group, _):
            return bool(group) and is_empty_over_nothing(child)
        case Select() | Project() | Repeat() | Window() | Expand() | Generate() | Sort() | Limit():
            return is_empty_over_nothing(node.child)
        case Join(left, right) | Intersection(left, right):
            return is_empty_over_nothing(left) or is_empty_over_nothing(right)
        case Semijoin(left, right, _, anti):
            partners = not anti and is_empty_over_nothing(right)
            return partners or is_empty_over_nothing(left)
        case MarkJoin(left) | Difference(left):
            return is_empty_over_nothing(left)
        case OuterJoin(left, right, _, keeps_left, keeps_right):
            kept = [side for side, keeps in ((left, keeps_left), (right, keeps_right)) if keeps]
            return all(map(is_empty_over_nothing, kept))
        case Union(operands, _):
            return all(map(is_empty_over_nothing, operands))
        case _:
            assert_never(node)
