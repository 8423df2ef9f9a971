"""Read the clock: a predicate over ``current_date()`` or ``now()`` is one over a table of one row.

    σ_p(E)        = E ⋉_p C                        p reads the clock C and E
    L ⋈_{q∧p} R   = (L ⋈_q R) ⋉_p C
    L ⟕_{q∧p} R   = Π_{L,R}(L ⟕_{q∧p} (R × C))      and so for ⟗; ⟖ with L × C
    L ⋉_{q∧p} R   = L ⋉_{q∧p} (R × C)              and so for ▷ and marks

C has exactly one row, so ⋉ is a selection that shows nothing of the clock. Conjuncts that compare the
same column have one C together and others have theirs: when it moves, only a range of that column can
turn (`delta/moving_window.py`). Selections are pushed down before, so p is as near to its table as it
can be. In any other place, as in a projection, the function stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from freshview.algebra.clock import (
    clock_scan,
    clock_terms,
    clocks_in,
    compared_column,
    compared_locally,
    is_moving,
    with_terms,
)
from freshview.algebra.clock_time import clock_value
from freshview.algebra.expressions import (
    Column,
    Expression,
    Literal,
    Opaque,
    conjunction,
    conjuncts,
    references,
    substitute,
    walk,
)
from freshview.algebra.relations import (
    Join,
    MarkJoin,
    OuterJoin,
    Project,
    Relation,
    Scan,
    Select,
    Semijoin,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import expressions, numbering, scans, transform_up


def read_clock(relation: Relation) -> Relation:
    """Every predicate that reads the clock as a function, over the clock as a table."""
    if not any(clocks_in(part) for part in expressions(relation)):
        return relation
    new = numbering(relation)
    return transform_up(relation, lambda node: _read(node, new))


def fix_clock(relation: Relation, versions: Mapping[str, int]) -> Relation:
    """The relation at known versions of its clocks: E ⋉_p C = σ_{p[c]}(E), c a constant.

    For a recompute: of a constant Spark knows which files it can pass over.
    """

    def fixed(node: Relation) -> Relation:
        if not isinstance(node, Semijoin) or node.on is None or not is_moving(node):
            return node
        values: dict[Attribute, Expression] = {
            attribute: Literal(clock_value(scan.table, version), attribute.type, str(version))
            for scan in scans(node.right)
            for version in (versions[scan.table],)
            for attribute in scan.attributes
        }
        return Select(node.left, substitute(node.on, values))

    return transform_up(relation, fixed)


def _read(node: Relation, new: Numbering) -> Relation:
    match node:
        case Select(child, predicate):
            moving, rest = _split(predicate)
            if not moving:
                return node
            kept = conjunction(rest)
            return _windows(child if kept is None else Select(child, kept), moving, new)
        case Join(left, right, on):
            moving, rest = _split(on)
            if not moving:
                return node
            return _windows(Join(left, right, conjunction(rest)), moving, new)
        case OuterJoin() | Semijoin() | MarkJoin():
            return _joined(node, new)
        case _:
            return node


def _windows(child: Relation, moving: Iterable[Expression], new: Numbering) -> Relation:
    """E ⋉ C₁ ⋉ C₂ …, one for each column that is compared, and one for everything else."""
    by_column: dict[Expression | None, list[Expression]] = {}
    for part in moving:
        by_column.setdefault(_compared(part, new), []).append(part)
    for parts in by_column.values():
        on = conjunction(tuple(parts))
        assert on is not None
        clock, on = _over_tables(on, new)
        child = Semijoin(child, clock, on)
    return child


def _compared(part: Expression, new: Numbering) -> Expression | None:
    clock, predicate = _over_tables(part, new)
    return compared_column(predicate, clock_terms(predicate, frozenset(clock.attributes)))


def _joined(node: OuterJoin | Semijoin | MarkJoin, new: Numbering) -> Relation:
    moving, rest = _split(node.on)
    if not moving:
        return node
    left, right = node.left, node.right
    alone: dict[str, list[Expression]] = {"left": [], "right": []}
    held: list[Expression] = []
    for part in moving:
        read = references(part)
        if read and read <= frozenset(right.attributes) and not _keeps_right(node):
            alone["right"].append(part)
        elif read and read <= frozenset(left.attributes) and not _keeps_left(node):
            alone["left"].append(part)
        else:
            held.append(part)
    left, right = _windows(left, alone["left"], new), _windows(right, alone["right"], new)
    if not held:
        return replace(node, left=left, right=right, on=conjunction(rest))
    on = conjunction((*rest, *held))
    assert on is not None
    clock, on = _over_tables(on, new)
    if isinstance(node, OuterJoin) and not node.keeps_left:
        left = Join(left, clock)
    else:
        right = Join(right, clock)
    joined = replace(node, left=left, right=right, on=on)
    if not isinstance(node, OuterJoin):
        return joined
    return Project(joined, tuple(keep(attribute) for attribute in node.attributes))


def _keeps_left(node: OuterJoin | Semijoin | MarkJoin) -> bool:
    """Whether a left row without a partner is in the result; of ⋉ it is not, but p is on E then."""
    return node.keeps_left if isinstance(node, OuterJoin) else not _is_plain(node)


def _is_plain(node: Semijoin | MarkJoin) -> bool:
    return isinstance(node, Semijoin) and not node.anti


def _keeps_right(node: OuterJoin | Semijoin | MarkJoin) -> bool:
    return isinstance(node, OuterJoin) and node.keeps_right


def _split(
    predicate: Expression | None,
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """The conjuncts that read the clock as a function, and the others."""
    parts = conjuncts(predicate)
    moving = tuple(compared_locally(part) for part in parts if clocks_in(part))
    return moving, tuple(part for part in parts if not clocks_in(part))


def _over_tables(predicate: Expression, new: Numbering) -> tuple[Relation, Expression]:
    """The clocks of a predicate as a relation of one row, and the predicate over its columns."""
    found = {table: clock_scan(table, new) for table in clocks_in(predicate)}
    clock: Relation | None = None
    for scan in found.values():
        clock = scan if clock is None else Join(clock, scan)
    assert clock is not None
    values: dict[Expression, Expression] = dict(_functions(predicate, found))
    return clock, with_terms(predicate, values)


def _functions(
    predicate: Expression, found: dict[str, Scan]
) -> Iterator[tuple[Expression, Expression]]:
    for part in walk(predicate):
        if isinstance(part, Opaque) and part.text in found:
            yield part, Column(found[part.text].attributes[0])
