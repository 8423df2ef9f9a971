"""Algebraic delta propagation for sets, as published: pairs (Δ, ∇) of expressions. [B07] 4, Tables 4.1, 4.3.

The engine's rules are for bags with signed counts. These are the thesis's own, over duplicate-free
relations: the specification that the bag rules are tested against where no row occurs twice, and what
``explain --paper`` prints. An expression of sets is written with the algebra's nodes: π is an aggregate
without functions, ∪ is π over ⊎, and ∩, −, ⋉ and ▷ are themselves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from freshview.algebra.expressions import Call, Column, Expression, all_same, integer
from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Difference,
    Intersection,
    Join,
    Project,
    Relation,
    Scan,
    Select,
    Semijoin,
    State,
    Union,
    Values,
    keep,
    renaming,
)
from freshview.algebra.schema import COUNT, Attribute
from freshview.algebra.traverse import transform_up
from freshview.delta.derivation import Derivation, renamed
from freshview.reasons import NoRule, Reason


@dataclass(frozen=True, slots=True)
class Pair:
    """(ΔQ, ∇Q): a minimal delta, if the transaction is minimal."""

    inserted: Relation
    deleted: Relation


def set_delta(query: Relation, derivation: Derivation, share: bool = True) -> Pair:
    """(Δ(Q), ∇(Q)) in pre-update form: relation names stand for their instance before the transaction.

    With ``share`` every pair below an operator is a temporary, so that the whole is linear in the size
    of Q (4.3.1); without, it is written out and may be exponential.
    """

    def below(child: Relation) -> Pair:
        pair = set_delta(child, derivation, share)
        if not share:
            return pair
        return Pair(
            derivation.temporary(pair.inserted, "Δ"), derivation.temporary(pair.deleted, "∇")
        )

    match query:
        case Scan(table, _):
            return (
                Pair(inserted(query), deleted(query))
                if table in derivation.changed
                else _none(query)
            )
        case Values():
            return _none(query)
        case Select(child, predicate):
            pair = below(child)
            return Pair(Select(pair.inserted, predicate), Select(pair.deleted, predicate))
        case Join(left, right, None):
            return _product(left, right, below(left), below(right))
        case Join(left, right, on):
            assert on is not None
            return set_delta(Select(Join(left, right), on), derivation, share)
        case Intersection(left, right):
            return _intersection(left, right, below(left), below(right))
        case Difference(left, right):
            return _difference(left, right, below(left), below(right))
        case Semijoin(left, right, on, anti):
            return set_delta(_as_difference(left, right, on, anti), derivation, share)
        case Aggregate(Union((left, right), attributes), group, ()) if group == attributes:
            pair = _union(left, right, below(left), below(right))
            return Pair(_named(pair.inserted, attributes), _named(pair.deleted, attributes))
        case Aggregate(child, _, ()):
            return _projection(query, child, below(child))
        case Aggregate(child, _, _):
            return _aggregation(query, child, below(child), derivation)
        case Project(child, outputs):
            pair = below(child)
            return Pair(Project(pair.inserted, outputs), Project(pair.deleted, outputs))
        case _:
            raise NoRule(
                Reason(
                    "NO_SET_RULE",
                    type(query).__name__,
                    "Tables 4.1 and 4.3 have no row",
                    "derive its delta by the rules for bags, which every operator has",
                )
            )


def _projection(node: Aggregate, child: Relation, pair: Pair) -> Pair:
    """Δ = π_A(Δ(Q)) − π_A(Q);  ∇ = π_A(∇(Q)) − π_A(mod(Q))."""

    def projected(relation: Relation) -> Relation:
        return replace(node, child=relation)

    return Pair(
        _minus(projected(pair.inserted), projected(pre(child))),
        _minus(projected(pair.deleted), projected(mod(child, pair))),
    )


def _union(left: Relation, right: Relation, one: Pair, two: Pair) -> Pair:
    """Δ = (Δ₁ − Q₂) ∪ (Δ₂ − Q₁);  ∇ = (∇₁ − mod(Q₂)) ∪ (∇₂ − mod(Q₁))."""
    return Pair(
        union(_minus(one.inserted, pre(right)), _minus(two.inserted, pre(left))),
        union(_minus(one.deleted, mod(right, two)), _minus(two.deleted, mod(left, one))),
    )


def _intersection(left: Relation, right: Relation, one: Pair, two: Pair) -> Pair:
    """Δ = (Δ₁ ∩ mod(Q₂)) ∪ (Δ₂ ∩ mod(Q₁));  ∇ = (∇₁ ∩ Q₂) ∪ (∇₂ ∩ Q₁)."""
    return Pair(
        union(_and(one.inserted, mod(right, two)), _and(two.inserted, mod(left, one))),
        union(_and(one.deleted, pre(right)), _and(two.deleted, pre(left))),
    )


def _difference(left: Relation, right: Relation, one: Pair, two: Pair) -> Pair:
    """Δ = (Δ₁ − mod(Q₂)) ∪ (∇₂ ∩ sub(Q₁));  ∇ = (∇₁ − Q₂) ∪ (Δ₂ ∩ Q₁)."""
    return Pair(
        union(_minus(one.inserted, mod(right, two)), _and(two.deleted, sub(left, one))),
        union(_minus(one.deleted, pre(right)), _and(two.inserted, pre(left))),
    )


def _product(left: Relation, right: Relation, one: Pair, two: Pair) -> Pair:
    """Δ = (Δ₁ × mod(Q₂)) ∪ (mod(Q₁) × Δ₂);  ∇ = (∇₁ × Q₂) ∪ (Q₁ × ∇₂)."""
    return Pair(
        union(Join(one.inserted, mod(right, two)), Join(mod(left, one), two.inserted)),
        union(Join(one.deleted, pre(right)), Join(pre(left), two.deleted)),
    )


def _aggregation(node: Aggregate, child: Relation, pair: Pair, derivation: Derivation) -> Pair:
    """Δ = Δʷ − ∇ʷ, ∇ = ∇ʷ − Δʷ: the touched groups after and before, less those that stay as they are.

    Δʷ = π_{A,F}(mod(Q) ⋉_{A=} (Δ(Q) ∪ ∇(Q))), ∇ʷ the same of Q; ⋉ where ⋈ is printed. [B07] Table 4.3.
    """
    touching = union(pair.inserted, pair.deleted)

    def touched(rows: Relation) -> Relation:
        if not node.group:
            return replace(node, child=rows)
        keys, fresh = renamed(touching, node.group, derivation.new)
        return replace(node, child=Semijoin(rows, keys, all_same(node.group, fresh)))

    after, before = touched(mod(child, pair)), touched(pre(child))
    return Pair(_minus(after, before), _minus(before, after))


def _as_difference(left: Relation, right: Relation, on: Expression | None, anti: bool) -> Relation:
    """⋉ as π_L(L ⋈ R), and ▷ as L − (L ⋉ R). [B07] 1.2."""
    joined: Relation = Join(left, right)
    half = Aggregate(joined if on is None else Select(joined, on), left.attributes, ())
    return Difference(left, half, all=False) if anti else half


def inserted(scan: Scan) -> Relation:
    """ΔR: the rows of a delta with a positive count."""
    return _signed(scan, Call("<", (integer(0), Column(COUNT)), "boolean"))


def deleted(scan: Scan) -> Relation:
    """∇R: the rows of a delta with a negative count."""
    return _signed(scan, Call("<", (Column(COUNT), integer(0)), "boolean"))


def _signed(scan: Scan, condition: Call) -> Relation:
    chosen = Select(Changes(scan.table, scan.attributes), condition)
    return Project(chosen, tuple(keep(a) for a in scan.attributes))


def pre(query: Relation) -> Relation:
    return _at(query, State.PRE)


def sub(query: Relation, pair: Pair) -> Relation:
    """What stays of the value: Q − ∇(Q), in the thesis sub."""
    return _minus(pre(query), pair.deleted)


def mod(query: Relation, pair: Pair) -> Relation:
    """The value after the transaction by the one before: (Q ∪ Δ(Q)) − ∇(Q), in the thesis mod."""
    return _minus(union(pre(query), pair.inserted), pair.deleted)


def union(left: Relation, right: Relation) -> Relation:
    """Q₁ ∪ Q₂, each row once."""
    return Aggregate(Union((left, right), left.attributes), left.attributes, ())


def post_by_substitution(expression: Relation, changed: Collection[str]) -> Relation:
    """A post-update form: R becomes (R − ΔR) ∪ ∇R, over the instance after. [B07] Theorem 4.2."""

    def rule(node: Relation) -> Relation:
        if not isinstance(node, Scan) or node.state is not State.PRE:
            return node
        after = replace(node, state=State.POST)
        if node.table not in changed:
            return after
        return union(_minus(after, inserted(node)), deleted(node))

    return transform_up(expression, rule)


def post_by_inversion(pair: Pair) -> Pair:
    """A post-update form: the transaction inverted, and the resulting delta too. [B07] Theorem 4.2.

    ΔR and ∇R change places, R is read after the transaction, and so do Δ and ∇ of the result.
    """
    return Pair(_inverted(pair.deleted), _inverted(pair.inserted))


def _inverted(expression: Relation) -> Relation:
    def rule(node: Relation) -> Relation:
        match node:
            case Scan() if node.state is State.PRE:
                return replace(node, state=State.POST)
            case Select(Changes() as changes, Call("<", (left, right), type)):
                return Select(changes, Call("<", (right, left), type))
            case _:
                return node

    return transform_up(expression, rule)


def _at(query: Relation, state: State) -> Relation:
    return transform_up(
        query, lambda node: replace(node, state=state) if isinstance(node, Scan) else node
    )


def _minus(left: Relation, right: Relation) -> Relation:
    return Difference(left, right, all=False)


def _and(left: Relation, right: Relation) -> Relation:
    return Intersection(left, right, all=False)


def _named(relation: Relation, attributes: tuple[Attribute, ...]) -> Relation:
    return Project(relation, renaming(attributes, relation.attributes))


def _none(query: Relation) -> Pair:
    nothing = Values(query.attributes, ())
    return Pair(nothing, nothing)
