"""Canonical form: Π_A(σ_θ(R₁ × … × Rₙ)), and unions of such. [B07] Lemma 3.1 and 3.3.1."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from freshview.algebra.expressions import (
    Column,
    Expression,
    conjunction,
    conjuncts,
    is_deterministic,
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
)
from freshview.algebra.schema import Attribute


@dataclass(frozen=True, slots=True)
class Canonical:
    """Π_outputs(σ_θ(R₁ × … × Rₙ)), θ as the tuple of its conjuncts."""

    outputs: tuple[Output, ...]
    theta: tuple[Expression, ...]
    relations: tuple[Scan | Values, ...]

    def relation(self) -> Relation:
        """The form as an expression again, product first, then one selection and one projection."""
        whole: Relation = self.relations[0]
        for following in self.relations[1:]:
            whole = Join(whole, following)
        predicate = conjunction(self.theta)
        return Project(whole if predicate is None else Select(whole, predicate), self.outputs)


def canonical(relation: Relation) -> tuple[Canonical, ...] | None:
    """The canonical forms whose ⊎ is the relation; one for an SPJ expression.

    None if an operator other than σ, Π, ×, ⋈ and ⊎ occurs, or if pulling up a projection would
    evaluate an expression that is not deterministic in another place.

        σ_p(Π_A(Q)) = Π_A(σ_{p[A]}(Q))        Π_A(Π_B(Q)) = Π_{A[B]}(Q)
        Π_A(Q) × Π_B(S) = Π_{A,B}(Q × S)      f(Q ⊎ S) = f(Q) ⊎ f(S) for f = σ, Π, ×
    """
    match relation:
        case Scan() | Values():
            outputs = tuple(Output(a, Column(a)) for a in relation.attributes)
            return (Canonical(outputs, (), (relation,)),)
        case Select(child, predicate):
            forms = canonical(child)
            return forms and tuple(_selected(form, predicate) for form in forms)
        case Project(child, outputs):
            forms = canonical(child)
            if forms is None or not all(is_deterministic(o.expression) for o in outputs):
                return None
            return tuple(_projected(form, outputs) for form in forms)
        case Join(left, right, on):
            lefts, rights = canonical(left), canonical(right)
            if lefts is None or rights is None:
                return None
            return tuple(_joined(a, b, on) for a, b in product(lefts, rights))
        case Union(operands, attributes):
            parts = [canonical(operand) for operand in operands]
            if any(part is None for part in parts):
                return None
            return tuple(_renamed(form, attributes) for part in parts if part for form in part)
        case Sort(child, _):
            return canonical(child)
        case _:
            return None


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
