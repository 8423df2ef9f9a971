"""Window functions: the touched partitions, as they were and as they are."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.expressions import Column, conjunction, integer, references, same
from freshview.algebra.relations import Output, Project, Relation, Semijoin, Union, Window
from freshview.algebra.render import window_text
from freshview.algebra.schema import COUNT
from freshview.algebra.windows import Ordering, is_total
from freshview.delta.derivation import Derivation, Signed, with_count
from freshview.reasons import NoRule, Reason


def window_delta(node: Window, child: Signed, derivation: Derivation) -> Signed:
    """δ(ω_{P,o,F}(E)) = ω_{P,o,F}(Eᵖᵒˢᵗ ⋉_{P≡} δE) ∸ ω_{P,o,F}(Eᵖʳᵉ ⋉_{P≡} δE), signed.

    A window function of a row depends on the rows of its partition alone, so partitions without a
    changed row stay as they are; ≡_P is null-safe. Without PARTITION BY there is one partition, and
    both states of E are read whole. Not consolidated: a row whose values stay cancels out later. The
    same form as [B07] Table 4.3 has for aggregation, with partitions for groups.
    """
    delta = derivation.shared(child)
    after = replace(node, child=touched(node, derivation.post(node.child), delta, derivation))
    before = replace(node, child=touched(node, derivation.pre(node.child), delta, derivation))
    signed = (
        with_count(after, Output(COUNT, integer(1))),
        with_count(before, Output(COUNT, integer(-1))),
    )
    return Signed(Union(signed, (*node.attributes, COUNT)))


def touched(node: Window, child: Relation, delta: Signed, derivation: Derivation) -> Relation:
    """E ⋉_{P≡} δE: the rows of the partitions that a changed row belongs to."""
    by = tuple(expression for expression in node.partition if references(expression))
    if not by:
        return child
    fresh = tuple(derivation.new.attribute(f"p{i}", e.type) for i, e in enumerate(by))
    keys = Project(delta.relation, tuple(Output(a, e) for a, e in zip(fresh, by, strict=True)))
    met = tuple(same(e, Column(a)) for e, a in zip(by, fresh, strict=True))
    return Semijoin(child, keys, conjunction(met))


def check_window_order(node: Window) -> None:
    """NoRule if a function's value is left open: rows that tie in the order can differ."""
    by = tuple(map(Ordering, node.partition))
    if is_total((*by, *node.order, *node.ties), node.child.attributes):
        return
    for output in node.outputs:
        if output.call.needs_total_order:
            raise NoRule(
                Reason(
                    "WINDOW_ORDER_OPEN",
                    window_text(output.call),
                    "it depends on which of the rows that tie in its order comes first, and they"
                    " differ in a column of a type that has no order (MAP, VARIANT, …)",
                    "show sort_array(map_entries(m)) or to_json(v) of that column below the window, or"
                    " leave it out there",
                )
            )
