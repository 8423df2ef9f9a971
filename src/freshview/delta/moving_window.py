"""A moving window E ⋉_p C: the rows that enter and leave because the clock C moves are a delta."""

from __future__ import annotations

from freshview.algebra.clock import Limits, clock_terms, compared_column, with_terms, within
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    coalesce,
    conjunction,
    either,
    integer,
    same,
    substitute,
)
from freshview.algebra.relations import (
    Join,
    Output,
    Project,
    Relation,
    Select,
    Semijoin,
    Union,
    keep,
)
from freshview.algebra.schema import COUNT, Attribute
from freshview.delta.derivation import Derivation, Signed, renamed

FALSE = Literal(False, "boolean", "false")
MOVED = "clock"
"""The name of the temporary with the old and the new values of what a predicate asks of the clock."""


def moving_window_delta(
    node: Semijoin, rows: Signed | None, clock: Signed | None, derivation: Derivation
) -> Signed | None:
    """δ(E ⋉_p C) = π_E(δE ⋈_p Cᵖʳᵉ) ⊎ the rows of Eᵖᵒˢᵗ for which p turns with the clock, ±1.

    C has one row in each state, so ⋈ meets it once. p reads C by its terms f₁ … fₙ alone, whose values
    in both states are one row, kept as a temporary M; without a term that differs M is empty and
    nothing turns. If all terms are compared with one column a, a row turns only where a lies between
    fᵢ(Cᵖʳᵉ) and fᵢ(Cᵖᵒˢᵗ): these ranges are a conjunct of the join with M, by which its rows are found.

    Derived from the delta of ⋉ (`semijoin.py`); no paper has a clock.
    """
    assert node.on is not None
    terms: list[Relation] = []
    columns = (*(keep(a) for a in node.attributes), keep(COUNT))
    if rows is not None:
        terms.append(Project(Join(rows.relation, derivation.pre(node.right), node.on), columns))
    if clock is not None:
        terms.append(_turned(node, node.on, derivation))
    if not terms:
        return None
    whole = terms[0] if len(terms) == 1 else Union(tuple(terms), (*node.attributes, COUNT))
    return Signed(whole, clock is None and rows is not None and rows.insertions_only)


def _turned(node: Semijoin, predicate: Expression, derivation: Derivation) -> Relation:
    """σ_{had≠has}(Eᵖᵒˢᵗ ⋈ M), with the count by which the result changed."""
    parts = clock_terms(predicate, frozenset(node.right.attributes))
    column = compared_column(predicate, parts)
    moved, before, after, limits = _moved(node.right, parts, column is not None, derivation)
    had, has = (
        coalesce(with_terms(predicate, dict(zip(parts, map(Column, held), strict=True))), FALSE)
        for held in (before, after)
    )
    turns: tuple[Expression, ...] = (_not(same(had, has)),)
    if column is not None:
        turns = (within(column, limits), *turns)
    met = Join(derivation.post(node.left), moved, conjunction(turns))
    count = Output(COUNT, either(has, integer(1), integer(-1)))
    return Project(met, (*(keep(a) for a in node.attributes), count))


def _moved(
    clock: Relation, parts: tuple[Expression, ...], ordered: bool, derivation: Derivation
) -> tuple[Relation, tuple[Attribute, ...], tuple[Attribute, ...], Limits]:
    """M: the terms before and after, if any of them differs; ordered, also the ends of their ranges."""
    new = derivation.new
    old, later = clock.attributes, derivation.post(clock)
    now, fresh = renamed(later, later.attributes, new)
    both = Join(derivation.pre(clock), now)
    values: dict[Attribute, Expression] = {a: Column(b) for a, b in zip(old, fresh, strict=True)}
    outputs: list[Output] = []
    before, after, limits = [], [], []
    for part in parts:
        earlier, following = part, substitute(part, values)
        before.append(new.attribute("before", part.type))
        after.append(new.attribute("after", part.type))
        outputs += [Output(before[-1], earlier), Output(after[-1], following)]
        if ordered:
            low, high = (new.attribute(name, part.type) for name in ("low", "high"))
            rises = Call("<=", (earlier, following), "boolean")
            outputs.append(Output(low, either(rises, earlier, following)))
            outputs.append(Output(high, either(rises, following, earlier)))
            limits.append((low, high))
    differs: Expression | None = None
    for a, b in zip(before, after, strict=True):
        one = _not(same(Column(a), Column(b)))
        differs = one if differs is None else Call("or", (differs, one), "boolean")
    assert differs is not None
    row = Select(Project(both, tuple(outputs)), differs)
    return derivation.temporary(row, MOVED), tuple(before), tuple(after), tuple(limits)


def _not(value: Expression) -> Call:
    return Call("not", (value,), "boolean")
