"""LIMIT and OFFSET below other operators: the first rows, as they were and as they are."""

from __future__ import annotations

from dataclasses import replace

from freshview.algebra.expressions import integer
from freshview.algebra.relations import Limit, Output, Union
from freshview.algebra.render import describe
from freshview.algebra.schema import COUNT
from freshview.algebra.windows import is_total
from freshview.delta.derivation import Derivation, Signed, with_count
from freshview.reasons import NoRule, Reason


def limit_delta(node: Limit, derivation: Derivation) -> Signed:
    """δ(λ_{k,o}(E)) = λ_{k,o}(Eᵖᵒˢᵗ) ∸ λ_{k,o}(Eᵖʳᵉ), signed.

    Both states of E are computed as a whole: a deleted row lets in one that no delta names. The order
    is total, so each of them is one certain bag. On top of a view the first rows are stored, with
    some to spare, and the base is asked only when these run out (``top_rows``).
    """
    after = replace(node, child=derivation.post(node.child))
    before = replace(node, child=derivation.pre(node.child))
    signed = (
        with_count(after, Output(COUNT, integer(1))),
        with_count(before, Output(COUNT, integer(-1))),
    )
    return Signed(Union(signed, (*node.attributes, COUNT)))


def check_limit_order(node: Limit) -> None:
    """NoRule if it is left open which rows are first."""
    if is_total(node.order, node.attributes):
        return
    raise NoRule(
        Reason(
            "LIMIT_ORDER_OPEN",
            describe(node),
            "rows that tie in its order differ in a column of a type that has no order (MAP, VARIANT,"
            " …), so which of them is within the limit is left open",
            "show sort_array(map_entries(m)) or to_json(v) of that column below the limit, or leave it out",
        )
    )
