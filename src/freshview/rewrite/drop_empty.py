"""Drop what is empty whatever the tables hold: branches of a union that a constant rules out.

    σ_p(E)       = ∅                 a conjunct of p compares two constants that differ
    Π_o(∅), σ_p(∅), λ(∅), ω(∅), …    = ∅, and so for a recursion from ∅
    ∅ ⋈ E, ∅ ⋉ E, E ⋉ ∅, ∅ − E, ∅ ∩ E  = ∅
    E ▷ ∅        = E
    E₁ ⊎ ∅       = E₁
    π_{G,F}(∅)   = ∅                 G not empty

A query often unites its branches with a constant that tells them apart, and selects one of them by
that constant (``WHERE kind = 's'``): every other branch would be derived and looked up for nothing.
Only texts, whole numbers and dates of one type are compared; any other predicate stays Spark's.
"""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
)
from freshview.algebra.relations import (
    Aggregate,
    Difference,
    Expand,
    Generate,
    Intersection,
    Join,
    Limit,
    Output,
    Project,
    Recursion,
    Relation,
    Select,
    Semijoin,
    Sort,
    Union,
    Values,
    Window,
)
from freshview.algebra.schema import INTEGRAL_TYPES
from freshview.algebra.traverse import tables, transform_up

COMPARED = INTEGRAL_TYPES | {"string", "date"}
"""Types whose constants are equal exactly if Python's values are."""


def drop_empty(relation: Relation) -> Relation:
    """The same rows without the parts that have none; as it was, if a table would be read no more.

    A view has the sources that its definition names, also where it can never show a row of one.
    """
    dropped = transform_up(relation, _dropped)
    return dropped if set(tables(dropped)) == set(tables(relation)) else relation


def _dropped(node: Relation) -> Relation:
    match node:
        case Select(child, predicate):
            return _selected(node, child, conjuncts(predicate))
        case Union(operands, _):
            return _united(node, operands)
        case Semijoin(left, right, _, True) if is_empty(right) and not is_empty(left):
            return left
        case Join(left, right) | Intersection(left, right):
            return _none(node) if is_empty(left) or is_empty(right) else node
        case Semijoin(left, right, _, anti):
            return _none(node) if is_empty(left) or (is_empty(right) and not anti) else node
        case Difference(left, _) | Recursion(left, _):
            return _none(node) if is_empty(left) else node
        case Aggregate(child, group, _) if group:
            return _none(node) if is_empty(child) else node
        case Project() | Sort() | Limit() | Window() | Expand() | Generate():
            return _none(node) if is_empty(node.child) else node
        case _:
            return node


def is_empty(relation: Relation) -> bool:
    return isinstance(relation, Values) and not relation.rows


def _none(node: Relation) -> Values:
    return Values(node.attributes, ())


def _selected(node: Select, child: Relation, parts: tuple[Expression, ...]) -> Relation:
    decided = [_decided(part) for part in parts]
    if False in decided or is_empty(child):
        return _none(node)
    if True not in decided:
        return node
    rest = conjunction(tuple(p for p, known in zip(parts, decided, strict=True) if known is None))
    return child if rest is None else replace(node, predicate=rest)


def _united(node: Union, operands: tuple[Relation, ...]) -> Relation:
    filled = tuple(operand for operand in operands if not is_empty(operand))
    if len(filled) == len(operands):
        return node
    if not filled:
        return _none(node)
    if len(filled) > 1:
        return replace(node, children=filled)
    pairs = zip(node.attributes, filled[0].attributes, strict=True)
    return Project(filled[0], tuple(Output(a, Column(b)) for a, b in pairs))


def _decided(part: Expression) -> bool | None:
    """Whether two constants are equal, if a condition says that they are; else None."""
    match part:
        case Call("=" | "<=>", (Literal(one, kind), Literal(other, same))):
            comparable = kind == same and kind in COMPARED
            return one == other if comparable and None not in (one, other) else None
        case _:
            return None
