"""The dispatch table: which technique has a rule for which operator, where it is, and why not.

``techniques`` decides for whole views; this table says what its decisions rest on, node by node. The
documents list it, ``explain`` shows for each node what else was possible, and a test holds each cell to
what a view with that operator and that technique does.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshview.algebra.aggregates import DISTRIBUTIVE, EXTREMA
from freshview.algebra.clock import is_moving
from freshview.algebra.relations import (
    Aggregate,
    Difference,
    Expand,
    Generate,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Project,
    Recursion,
    Relation,
    Scan,
    Select,
    Semijoin,
    Union,
    Window,
)
from freshview.planner.strategy import Technique

TECHNIQUES = (
    Technique.COUNTING,
    Technique.DELTA,
    Technique.CHANGE_TABLE,
    Technique.GROUP_RECOMPUTE,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its formula in the papers' letters, and where it is printed."""

    formula: str
    source: str


@dataclass(frozen=True, slots=True)
class Hole:
    """No rule, and why."""

    why: str


Cell = Rule | Hole
_SPJU_ONLY = Hole("counting is for σ, Π, ×, ⋈ and ⊎, with at most one aggregate on top")
_NO_ROW = Hole("[GM06] Tables 4 and 5 have no row for it: Δ and ∇ go on from there")
_NO_GROUPS = Hole("there are no groups to recompute; below an aggregate its delta names them")

_COUNTED = "[B07] 3.1, 3.6 telescoped"
_OUTER = Rule(
    "δ(L ⟗ R) = δ(L ⋈ R) ⊎ δ(L ▷ R) × {null} ⊎ {null} × δ(R ▷ L)",
    "derived for bags from [B07] Table 4.1",
)
_OUTER_CHANGE = Rule(
    "□V = δR ⟕_J S; V ⊔ □V by ≡_K, then kept rows are padded iff no partner is left",
    "[GM06] 6.1–6.3, Tables 4 (7, 7b) and 5, Algorithm 1, corrected",
)

TABLE: dict[str, dict[Technique, Cell]] = {
    "scan": {
        Technique.COUNTING: Rule(
            "δR from the change feed, or added minus removed files", "[B07] 1.3"
        ),
        Technique.DELTA: Rule("Δ(R) = ΔR, ∇(R) = ∇R", "[B07] Table 4.1"),
        Technique.CHANGE_TABLE: Rule("δR, until the first aggregate or outer join", "[GM06] 5.3"),
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "selection": {
        Technique.COUNTING: Rule("σ is part of θ", _COUNTED),
        Technique.DELTA: Rule("δ(σ_p(E)) = σ_p(δE)", "[B07] Table 4.1"),
        Technique.CHANGE_TABLE: Rule(
            "□(σ_p(E)) = σ_p(□E) if Attrs(p) ⊆ G", "[GM06] Table 4, row 1; Table 5, row 1"
        ),
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "projection": {
        Technique.COUNTING: Rule("Π is the canonical form's Π_A", _COUNTED),
        Technique.DELTA: Rule("δ(Π_A(E)) = Π_{A,n}(δE)", "[B07] Table 4.1, for bags"),
        Technique.CHANGE_TABLE: Rule(
            "□(Π_A(E)) = □E; keys that A leaves out are stored hidden",
            "[GM06] Table 4, row 2; Table 5, row 2",
        ),
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "join": {
        Technique.COUNTING: Rule("Σᵢ R₁ᵖᵒˢᵗ ⋈ … ⋈ δRᵢ ⋈ … ⋈ Rₙᵖʳᵉ", _COUNTED),
        Technique.DELTA: Rule(
            "Σᵢ E₁ᵖᵒˢᵗ ⋈ … ⋈ δEᵢ ⋈ … ⋈ Eₙᵖʳᵉ", "[B07] Table 4.1, ×; [IS00] Exp. 1.2.6–7"
        ),
        Technique.CHANGE_TABLE: Rule(
            "□(E₁ ⋈_J E₂) = □E₁ ⋈_J E₂ if Attrs(J) ⊆ G; θ gains ≡_τ, τ = Attrs(E₂)",
            "[GM06] Table 4, rows 3 and 4; Table 5, rows 3 and 4",
        ),
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "union": {
        Technique.COUNTING: Rule("count tables are added", "[B07] 3.3.1"),
        Technique.DELTA: Rule("δ(E₁ ⊎ E₂) = δE₁ ⊎ δE₂", "[IS00] 1.2"),
        Technique.CHANGE_TABLE: Rule(
            "□(E₁ ⊎ E₂) = □E₁, rows tagged by operand", "[GM06] Table 4, row 5, tagged"
        ),
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "outer join": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: _OUTER,
        Technique.CHANGE_TABLE: _OUTER_CHANGE,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "semijoin": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule(
            "δ(L ⋉ R) = δL ⋉ Rᵖʳᵉ ⊎ rows of Lᵖᵒˢᵗ that gained or lost their last partner",
            "derived for bags from [B07] 1.2 and Table 4.1",
        ),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "moving window": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule(
            "δ(E ⋉_p C) = π_E(δE ⋈_p Cᵖʳᵉ) ⊎ rows of Eᵖᵒˢᵗ for which p turns with the clock C",
            "derived from δ(L ⋉ R) for a C of one row",
        ),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "intersection": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule(
            "n = f(a+δa, b+δb) − f(a, b), f = min(a, b), or 1 if a, b > 0",
            "derived for bags; [B07] Table 4.1, ∩ on sets",
        ),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "difference": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule(
            "n = f(a+δa, b+δb) − f(a, b), f = max(0, a−b), or 1 if a > 0 = b",
            "derived for bags; [B07] Table 4.1, − on sets",
        ),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "distinct": {
        Technique.COUNTING: Rule("π_{A, count(*)} is the extent", "[B07] 3.2"),
        Technique.DELTA: Rule(
            "(Vᵖʳᵉ ⊔ π_{A,Σn}(δQ)) ∸ Vᵖʳᵉ, Vᵖʳᵉ = π_A(Qᵖʳᵉ ⋉ δQ); insertions: π_A(ΔQ) ▷ Qᵖʳᵉ",
            "[B07] Table 4.1, π",
        ),
        Technique.CHANGE_TABLE: Rule("□V = π_{A, Σn}(δE)", "[GM06] 5.1; Table 4, row 6"),
        Technique.GROUP_RECOMPUTE: Rule("π_A(Eᵖᵒˢᵗ ⋉ π_A(δE))", "[B07] 4.4"),
    },
    "aggregate": {
        Technique.COUNTING: Rule("sums of n·A on top of a count table", "[B07] 3.3.2"),
        Technique.DELTA: Rule(
            "(Vᵖʳᵉ ⊔ π_{A,F}(δQ)) ∸ Vᵖʳᵉ, Vᵖʳᵉ = π_{A,F}(Qᵖʳᵉ ⋉ δQ)",
            "[B07] Table 4.3; [GM06] Appendix A",
        ),
        Technique.CHANGE_TABLE: Rule(
            "□V = π_{G, Σn, Σn·A}(δE); over another aggregate π_{G′,F}(□E₁)",
            "[GM06] 5.1, Table 3; Table 4, row 6",
        ),
        Technique.GROUP_RECOMPUTE: Rule("π_{G,F}(Eᵖᵒˢᵗ ⋉ π_G(δE))", "[B07] 4.4"),
    },
    "extremum": {
        Technique.COUNTING: Rule("as by change tables, on top of a count table", "[B07] 3.3.2"),
        Technique.DELTA: Rule("π_{A,F}(Qᵖᵒˢᵗ ⋉ δQ) ∸ π_{A,F}(Qᵖʳᵉ ⋉ δQ)", "[B07] Table 4.3"),
        Technique.CHANGE_TABLE: Rule(
            "the more extreme of v and □v; a late update asks the base where v may be lost",
            "[GM06] 5.1, Table 3",
        ),
        Technique.GROUP_RECOMPUTE: Rule("π_{G,F}(Eᵖᵒˢᵗ ⋉ π_G(δE))", "[B07] 4.4"),
    },
    "other aggregate": {
        Technique.COUNTING: Hole("its value does not follow from counts and sums"),
        Technique.DELTA: Rule("π_{A,F}(Qᵖᵒˢᵗ ⋉ δQ) ∸ π_{A,F}(Qᵖʳᵉ ⋉ δQ)", "[B07] Table 4.3"),
        Technique.CHANGE_TABLE: Hole("its value does not follow from its old one and a delta"),
        Technique.GROUP_RECOMPUTE: Rule("π_{G,F}(Eᵖᵒˢᵗ ⋉ π_G(δE))", "[B07] 4.4"),
    },
    "window": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule(
            "δ(ω_{P,o,F}(E)) = ω_{P,o,F}(Eᵖᵒˢᵗ ⋉ π_P(δE)) ∸ ω_{P,o,F}(Eᵖʳᵉ ⋉ π_P(δE))",
            "as [B07] Table 4.3, with partitions for groups",
        ),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "grouping sets": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule("δ(ε(E)) = ε(δE)", "linear: each row for itself"),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "generate": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule("δ(μ_g(E)) = μ_g(δE)", "linear: each row for itself"),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "recursion": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule(
            "δ(R) = Rᵖᵒˢᵗ ∸ Rᵖʳᵉ, R = E₀ ⊎ S(E₀) ⊎ S(S(E₀)) ⊎ …", "the definition"
        ),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: _NO_GROUPS,
    },
    "limit": {
        Technique.COUNTING: _SPJU_ONLY,
        Technique.DELTA: Rule(
            "δ(λ_{k,o}(E)) = λ_{k,o}(Eᵖᵒˢᵗ) ∸ λ_{k,o}(Eᵖʳᵉ)", "the definition; o is total"
        ),
        Technique.CHANGE_TABLE: _NO_ROW,
        Technique.GROUP_RECOMPUTE: Rule(
            "λ_{k,o}(Vₕ ⊎ δE), Vₕ the first k rows and some to spare; λ(Eᵖᵒˢᵗ) when they run out",
            "top-k with a buffer, on top of a view",
        ),
    },
}
"""Each operator with what each technique does about it."""


def operator_of(node: Relation) -> str | None:
    """The row of the table that a node of a view belongs to; None for leaves and orderings."""
    match node:
        case Scan():
            return "scan"
        case Select():
            return "selection"
        case Project():
            return "projection"
        case Join():
            return "join"
        case Union():
            return "union"
        case OuterJoin():
            return "outer join"
        case Semijoin() if is_moving(node):
            return "moving window"
        case Semijoin() | MarkJoin():
            return "semijoin"
        case Intersection():
            return "intersection"
        case Difference():
            return "difference"
        case Aggregate():
            return _aggregate(node)
        case Window():
            return "window"
        case Expand():
            return "grouping sets"
        case Generate():
            return "generate"
        case Limit():
            return "limit"
        case Recursion():
            return "recursion"
        case _:
            return None


def _aggregate(node: Aggregate) -> str:
    calls = [output.call for output in node.aggregates]
    if not calls:
        return "distinct"
    if any(call.distinct and call.function not in EXTREMA for call in calls):
        return "other aggregate"
    functions = {call.function for call in calls}
    if functions - DISTRIBUTIVE - EXTREMA:
        return "other aggregate"
    return "extremum" if functions & EXTREMA else "aggregate"
