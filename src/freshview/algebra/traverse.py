"""Walking and rebuilding trees. A rebuild returns the same object when nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from freshview.algebra.expressions import Expression
from freshview.algebra.expressions import walk as walk_expression
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
    State,
    Union,
    Values,
    Window,
)
from freshview.algebra.schema import Attribute, Numbering


def children(relation: Relation) -> tuple[Relation, ...]:
    match relation:
        case Scan() | Changes() | Given() | Values() | Previous():
            return ()
        case Recursion():
            return (relation.anchor, relation.step)
        case Join() | OuterJoin() | Semijoin() | MarkJoin() | Intersection() | Difference():
            return (relation.left, relation.right)
        case Union():
            return relation.children
        case Select() | Project() | Aggregate() | Repeat() | Window() | Expand() | Generate():
            return (relation.child,)
        case Sort() | Limit():
            return (relation.child,)


def with_children(relation: Relation, new: tuple[Relation, ...]) -> Relation:
    if all(a is b for a, b in zip(children(relation), new, strict=True)):
        return relation
    match relation:
        case Scan() | Changes() | Given() | Values() | Previous():
            return relation
        case Recursion():
            return replace(relation, anchor=new[0], step=new[1])
        case Join() | OuterJoin() | Semijoin() | MarkJoin() | Intersection() | Difference():
            return replace(relation, left=new[0], right=new[1])
        case Union():
            return replace(relation, children=new)
        case Select() | Project() | Aggregate() | Repeat() | Window() | Expand() | Generate():
            return replace(relation, child=new[0])
        case Sort() | Limit():
            return replace(relation, child=new[0])


def walk(relation: Relation) -> Iterator[Relation]:
    """The relation and everything below it, parents first."""
    yield relation
    for child in children(relation):
        yield from walk(child)


def transform_up(relation: Relation, rule: Callable[[Relation], Relation]) -> Relation:
    """The rule applied to every node, leaves first."""
    new = tuple(transform_up(child, rule) for child in children(relation))
    return rule(with_children(relation, new))


def scans(relation: Relation) -> tuple[Scan, ...]:
    """The occurrences of tables, from left to right."""
    return tuple(node for node in walk(relation) if isinstance(node, Scan))


def tables(relation: Relation) -> tuple[str, ...]:
    """The names of the tables read, each once, in the order of their first occurrence."""
    return tuple(dict.fromkeys(scan.table for scan in scans(relation)))


def at(relation: Relation, state: State) -> Relation:
    """The same expression over the tables in another state."""

    def rule(node: Relation) -> Relation:
        if isinstance(node, Scan) and node.state is not state:
            return replace(node, state=state)
        return node

    return transform_up(relation, rule)


def expressions(relation: Relation) -> Iterator[Expression]:
    """Every scalar expression of every node, with its parts."""
    for node in walk(relation):
        for root in _roots(node):
            yield from walk_expression(root)


def _roots(node: Relation) -> tuple[Expression, ...]:
    match node:
        case Select():
            return (node.predicate,)
        case Project():
            return tuple(output.expression for output in node.outputs)
        case Join() | OuterJoin() | Semijoin() | MarkJoin():
            return () if node.on is None else (node.on,)
        case Aggregate():
            calls = [output.call for output in node.aggregates]
            filters = [call.filter for call in calls if call.filter is not None]
            return (*(a for call in calls for a in call.arguments), *filters)
        case Repeat():
            return (node.times,)
        case Window():
            ordered = (key.expression for key in (*node.order, *node.ties))
            return (*node.partition, *ordered, *(a for o in node.outputs for a in o.call.arguments))
        case Expand():
            return tuple(e for projection in node.projections for e in projection)
        case Generate():
            return (node.generator,)
        case Sort() | Limit():
            return tuple(key.expression for key in node.order)
        case Values():
            return tuple(value for row in node.rows for value in row)
        case Scan() | Changes() | Given() | Previous():
            return ()
        case Union() | Intersection() | Difference() | Recursion():
            return ()


def all_attributes(relation: Relation) -> set[Attribute]:
    return {attribute for node in walk(relation) for attribute in node.attributes}


def numbering(*relations: Relation) -> Numbering:
    """Fresh ids above every id in use."""
    used = [a.id for relation in relations for a in all_attributes(relation)]
    return Numbering(max(used, default=0))
