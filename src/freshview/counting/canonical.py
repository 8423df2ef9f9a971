"""Canonical form: Π_A(σ_θ(R₁ × … × Rₙ)), and unions of such. [B07] Lemma 3.1 and 3.3.1.

The lemma is about SPJ expressions over base relations. Here an Rᵢ may also be an expression of any
other operator (an outer join, an aggregate), which is canonical inside; so every view has the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from freshview.algebra.expressions import (
    Expression,
    conjunction,
    conjuncts,
    is_deterministic,
    references,
    substitute,
)
from freshview.algebra.relations import (
    Join,
    Output,
    Project,
    Relation,
    Scan,
    Select,
    Sort,
    Union,
    Values,
    keep,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import children, with_children

FORMS_MAX = 16
"""A join of unions becomes a union of joins up to this many; past it the union stays where it is."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """Π_outputs(σ_θ(R₁ × … × Rₙ)), θ as the tuple of its conjuncts."""

    outputs: tuple[Output, ...]
    theta: tuple[Expression, ...]
    relations: tuple[Relation, ...]

    def relation(self) -> Relation:
        """The form as an expression again, product first, then one selection and one projection."""
        whole: Relation = self.relations[0]
        for following in self.relations[1:]:
            whole = Join(whole, following)
        predicate = conjunction(self.theta)
        return Project(whole if predicate is None else Select(whole, predicate), self.outputs)

    def joined(self) -> Relation:
        """The form with each part of θ at the first place that knows its attributes."""
        theta = self.theta
        operands: list[Relation] = []
        for relation in self.relations:
            known = frozenset(relation.attributes)
            own = tuple(part for part in theta if references(part) <= known)
            theta = tuple(part for part in theta if part not in own)
            predicate = conjunction(own)
            operands.append(relation if predicate is None else Select(relation, predicate))
        whole = operands[0]
        for following in operands[1:-1]:
            whole = Join(whole, following)
        if len(operands) > 1:
            whole = Join(whole, operands[-1], conjunction(theta))
        return Project(whole, self.outputs)


def normal(relation: Relation) -> Relation:
    """The relation with every part of σ, Π, ⋈ and ⊎ in canonical form, at the top and below."""
    forms = canonical(relation)
    if len(forms) == 1:
        return forms[0].joined()
    return Union(tuple(form.joined() for form in forms), relation.attributes)


def is_spju(relation: Relation) -> bool:
    """Whether the canonical form is over base relations, as the count algorithm needs it."""
    return all(isinstance(r, Scan | Values) for form in canonical(relation) for r in form.relations)


def canonical(relation: Relation) -> tuple[Canonical, ...]:
    """The canonical forms whose ⊎ is the relation; one for an SPJ expression.

        σ_p(Π_A(Q)) = Π_A(σ_{p[A]}(Q))        Π_A(Π_B(Q)) = Π_{A[B]}(Q)
        Π_A(Q) × Π_B(S) = Π_{A,B}(Q × S)      f(Q ⊎ S) = f(Q) ⊎ f(S) for f = σ, Π, ×

    An expression that is not deterministic is not evaluated in another place.
    """
    match relation:
        case Select(child, predicate):
            return tuple(_selected(form, predicate) for form in canonical(child))
        case Project(child, outputs) if all(is_deterministic(o.expression) for o in outputs):
            return tuple(_projected(form, outputs) for form in canonical(child))
        case Join(left, right, on):
            lefts, rights = canonical(left), canonical(right)
            if len(lefts) * len(rights) > FORMS_MAX:
                lefts, rights = _as_one(left, lefts), _as_one(right, rights)
            return tuple(_joined(a, b, on) for a, b in product(lefts, rights))
        case Union(operands, attributes):
            parts = [form for operand in operands for form in canonical(operand)]
            return tuple(_renamed(form, attributes) for form in parts)
        case Sort(child, _):
            return canonical(child)
        case _:
            inside = tuple(normal(child) for child in children(relation))
            return (_atom(with_children(relation, inside)),)


def _atom(relation: Relation) -> Canonical:
    return Canonical(tuple(keep(a) for a in relation.attributes), (), (relation,))


def _as_one(relation: Relation, forms: tuple[Canonical, ...]) -> tuple[Canonical, ...]:
    if len(forms) == 1:
        return forms
    return (_atom(Union(tuple(form.joined() for form in forms), relation.attributes)),)


def _values(form: Canonical) -> dict[Attribute, Expression]:
    return {output.attribute: output.expression for output in form.outputs}


def _selected(form: Canonical, predicate: Expression) -> Canonical:
    parts = tuple(substitute(part, _values(form)) for part in conjuncts(predicate))
    return Canonical(form.outputs, form.theta + parts, form.relations)


def _projected(form: Canonical, outputs: tuple[Output, ...]) -> Canonical:
    values = _values(form)
    above = tuple(Output(o.attribute, substitute(o.expression, values)) for o in outputs)
    return Canonical(above, form.theta, form.relations)


def _joined(left: Canonical, right: Canonical, on: Expression | None) -> Canonical:
    both = Canonical(
        left.outputs + right.outputs, left.theta + right.theta, left.relations + right.relations
    )
    return both if on is None else _selected(both, on)


def _renamed(form: Canonical, attributes: tuple[Attribute, ...]) -> Canonical:
    outputs = tuple(
        Output(attribute, output.expression)
        for attribute, output in zip(attributes, form.outputs, strict=True)
    )
    return Canonical(outputs, form.theta, form.relations)
