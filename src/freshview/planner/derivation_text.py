"""The derivation of a view's change, step by step in the papers' letters: ``explain --paper``.

One source changes at a time. Every node gets a name, V₁ at the first leaf; the nodes above the changed
source get the expression of their delta (δ) or change table (□), with the rule it follows from. Where
the source's change table ends at a singularity point, δ goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    Union,
    Window,
)
from freshview.algebra.render import describe, expression_text, names
from freshview.algebra.traverse import children, numbering, tables
from freshview.delta.aggregate import additive_states
from freshview.planner.roles import Role, roles
from freshview.planner.strategy import Strategy, Technique

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def derivation_text(strategy: Strategy, source: str) -> Iterator[str]:
    """What becomes of a change of one source, from its leaf to the view."""
    held = {id(role.node): role for role in roles(strategy)}
    writer = _Writer(held, source, _ends(strategy, source))
    top = writer.name(strategy.relation)
    yield f"Δ{source}, ∇{source} given"
    yield from writer.lines
    if (
        strategy.layout is not None
        or strategy.top is not None
        or (strategy.row_layout is not None and not writer.has_ended)
    ):
        yield f"{strategy.view} = {strategy.view} ⊔ □{top}"
    else:
        yield f"{strategy.view} = ({strategy.view} ∸ ∇{top}) ⊎ Δ{top}"


def _ends(strategy: Strategy, source: str) -> frozenset[str]:
    """The nodes at which a change table of the source ends."""
    extent = None
    if strategy.row_layout is not None:
        extent = strategy.row_layout.extent
    elif strategy.composition is not None:
        extent = strategy.composition.extent
    if extent is None:
        return frozenset()
    leaves = {part.leaf for part in extent.parts if source in tables(part.source)}
    return frozenset(reason.subject for leaf, reason in extent.singular if leaf in leaves)


class _Writer:
    """Names the nodes, leaves first, and writes a line for each."""

    def __init__(self, held: Mapping[int, Role], source: str, ends: frozenset[str]) -> None:
        self._held = held
        self._source = source
        self._ends = ends
        self.has_ended = False
        self._number = 0
        self.lines: list[str] = []

    def name(self, node: Relation) -> str:
        if isinstance(node, Sort):
            return self.name(node.child)
        below = [self.name(child) for child in children(node)]
        if isinstance(node, Scan):
            return node.table
        self._number += 1
        name = "V" + str(self._number).translate(_SUBSCRIPTS)
        self.lines.append(f"{name} = {_applied(node, below)}")
        role = self._held.get(id(node))
        if role is not None and self._source in tables(node):
            self.lines.append(self._line(node, name, below, role))
        return name

    def _line(self, node: Relation, name: str, below: list[str], role: Role) -> str:
        if describe(node) in self._ends and not self.has_ended:
            self.has_ended = True
            before = [n + "ᵖʳᵉ" for n in below]
            return (
                f"  singularity point: δ{name} = {_applied(node, [n + 'ᵖᵒˢᵗ' for n in below])}"
                f" ∸ {_applied(node, before)} for the touched keys"
            )
        rule = role.rule
        cited = "" if rule is None or self.has_ended else f"   {rule.source}"
        letter = "□" if self._is_change_table(role) else "δ"
        return f"  {letter}{name} = {self._change(node, below, role)}{cited}"

    def _change(self, node: Relation, below: list[str], role: Role) -> str:
        """The expression of a node's change by those of its operands."""
        parts = children(node)
        changed = [self._source in tables(part) for part in parts]
        letters = [self._letter(part) + n for part, n in zip(parts, below, strict=True)]
        match node:
            case Select() | Project() | Expand() | Generate() | Repeat():
                return _applied(node, letters)
            case Limit() if role.technique is Technique.GROUP_RECOMPUTE:
                return f"δ{below[0]} in the order of the stored rows"
            case Recursion():
                post, pre = ([n + state for n in below] for state in ("ᵖᵒˢᵗ", "ᵖʳᵉ"))
                return f"({_applied(node, post)}) ∸ ({_applied(node, pre)})"
            case Limit():
                return (
                    f"{_applied(node, [below[0] + 'ᵖᵒˢᵗ'])} ∸ {_applied(node, [below[0] + 'ᵖʳᵉ'])}"
                )
            case Window():
                by = ", ".join(map(expression_text, node.partition)) or "∅"
                both = [f"{below[0]}{state} ⋉_{{{by}}} δ{below[0]}" for state in ("ᵖᵒˢᵗ", "ᵖʳᵉ")]
                return " ∸ ".join(_applied(node, [one]) for one in both)
            case Aggregate() if role.technique is Technique.DELTA:
                key = names(node.group) or "∅"
                one, inner = describe(node), below[0]
                if additive_states(node, numbering(node)) is not None:
                    before = f"{one}({inner}ᵖʳᵉ ⋉_{{{key}}} δ{inner})"
                    return f"({before} ⊔ {one}(δ{inner})) ∸ {before}"
                return f"{one}({inner}ᵖᵒˢᵗ ⋉_{{{key}}} δ{inner}) ∸ {one}({inner}ᵖʳᵉ ⋉_{{{key}}} δ{inner})"
            case Aggregate():
                return _applied(node, letters)
            case Union():
                met = [n for n, is_changed in zip(letters, changed, strict=True) if is_changed]
                return " ⊎ ".join(met)
            case _:
                return self._binary(node, below, letters, changed, self._is_change_table(role))

    def _binary(
        self,
        node: Relation,
        below: list[str],
        letters: list[str],
        changed: list[bool],
        by_change_table: bool,
    ) -> str:
        """δE₁ ∘ E₂ᵖʳᵉ, and E₁ᵖᵒˢᵗ ∘ δE₂ where the second operand changes as well."""
        left, right = below
        first = second = _sign(node)
        padding: list[str] = []
        if isinstance(node, OuterJoin):
            first = "⟕" if node.keeps_left else "⋈"
            second = "⟖" if node.keeps_right else "⋈"
            if changed[1] and node.keeps_left and not by_change_table:
                padding.append(f"δ({left} ▷ {right}) × {{null}}, for the rows that δ{right} meets")
            if changed[0] and node.keeps_right and not by_change_table:
                padding.append(f"{{null}} × δ({right} ▷ {left}), for the rows that δ{left} meets")
        terms = []
        if changed[0]:
            terms.append(f"{letters[0]} {first} {right}ᵖʳᵉ")
        if changed[1]:
            terms.append(f"{left}ᵖᵒˢᵗ {second} {letters[1]}")
        return " ⊎ ".join((*terms, *padding))

    def _letter(self, node: Relation) -> str:
        role = self._held.get(id(node))
        return "□" if role is not None and self._is_change_table(role) else "δ"

    def _is_change_table(self, role: Role) -> bool:
        """Whether a node has a change table; past a singularity point only a conversion point has."""
        kinds = (Technique.CHANGE_TABLE, Technique.GROUP_RECOMPUTE)
        return role.technique in kinds and not self.has_ended


def _sign(node: Relation) -> str:
    match node:
        case Join(_, _, on):
            return "×" if on is None else "⋈"
        case OuterJoin(_, _, _, keeps_left, keeps_right):
            return "⟗" if keeps_left and keeps_right else "⟕" if keeps_left else "⟖"
        case Semijoin(anti=anti):
            return "▷" if anti else "⋉"
        case MarkJoin():
            return "mark ⋉"
        case Intersection() | Difference():
            return describe(node)
        case _:
            return "∘"


def _applied(node: Relation, below: list[str]) -> str:
    """A node over named operands."""
    if len(below) == 1:
        return f"{describe(node)}({below[0]})"
    if isinstance(node, Union):
        return " ⊎ ".join(below)
    if isinstance(node, Recursion):
        return f"{describe(node)} from {below[0]} by {below[1]}"
    if len(below) == 2:
        return f"{below[0]} {_sign(node)} {below[1]}"
    return describe(node)
