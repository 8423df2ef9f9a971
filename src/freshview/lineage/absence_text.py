"""What is not there, as a sentence: ``no row of orders has cust = 7``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshview.algebra.expressions import (
    Call,
    Expression,
    Literal,
    conjuncts,
    is_null,
    references,
    substitute,
)
from freshview.algebra.relations import Project, Relation, Scan, Select
from freshview.algebra.render import expression_text
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import tables
from freshview.lineage.asked import Absent


def compared(absent: Absent) -> tuple[Attribute, ...]:
    """The columns of the rows without a partner that decide whether a row would be one."""
    read = frozenset() if absent.on is None else references(absent.on)
    return tuple(a for a in absent.rows.attributes if a in read)


def absence_text(absent: Absent, values: Mapping[Attribute, str | None]) -> str:
    """The sentence for one row, of which ``values`` has the compared columns as text, None for null."""
    held: dict[Attribute, Expression] = {a: _literal(a, text) for a, text in values.items()}
    parts = [_plain(substitute(part, held)) for part in conjuncts(absent.on)]
    condition = " and ".join(map(expression_text, parts))
    said = f"no row of {_subject(absent.operand)}" + f" has {condition}" * bool(condition)
    return f"padded: {said}" if absent.padded else said


def _subject(operand: Relation) -> str:
    """The table that a row is missing of, with what its rows must satisfy anyway."""
    required: list[str] = []
    node = operand
    while isinstance(node, Select | Project):
        if isinstance(node, Select):
            required += [expression_text(_plain(part)) for part in conjuncts(node.predicate)]
        node = node.child
    if isinstance(node, Scan):
        return node.table + f" with {' and '.join(required)}" * bool(required)
    return "what is made of " + (" and ".join(tables(operand)) or "constants")


def _literal(attribute: Attribute, text: str | None) -> Literal:
    shown = "NULL" if text is None else text
    is_text = text is not None and attribute.type.startswith("string")
    return Literal(text, attribute.type, f"'{shown}'" if is_text else shown)


def _plain(part: Expression) -> Expression:
    """``cust = 7`` for 7 = cust and for cust ≐ 7, ``cust is null`` for cust ≐ NULL, 1 for 1::double."""
    match part:
        case Call("cast", (inner,)) if isinstance(constant := _plain(inner), Literal):
            return constant
        case Call("=" | "<=>" as operation, (first, second)):
            left, right = _plain(first), _plain(second)
            if isinstance(left, Literal) and not isinstance(right, Literal):
                left, right = right, left
            if operation == "<=>" and isinstance(right, Literal):
                if right.value is None:
                    return is_null(left)
                operation = "="
            return Call(operation, (left, right), "boolean")
        case Call():
            return replace(part, arguments=tuple(map(_plain, part.arguments)))
        case _:
            return part
