"""Relations and expressions as text in the papers' letters, for explain and golden files."""

from __future__ import annotations

import re

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import COMPARISONS, Call, Column, Expression, Literal, Opaque
from freshview.algebra.relations import (
    Aggregate,
    Changes,
    Difference,
    Expand,
    Generate,
    Given,
    Intersection,
    Join,
    Limit,
    MarkJoin,
    OuterJoin,
    Output,
    Previous,
    Project,
    Recursion,
    Relation,
    Repeat,
    Scan,
    Select,
    Semijoin,
    Sort,
    State,
    Union,
    Values,
    Window,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import children
from freshview.algebra.windows import Frame, Ordering, WindowCall

_STATE = {State.NOW: "", State.PRE: "ᵖʳᵉ", State.POST: "ᵖᵒˢᵗ"}
_INFIX = COMPARISONS | {"+", "-", "*"}
_PLACE = re.compile(r"\$(\d+)")
_SYMBOL = {"and": "∧", "or": "∨", "*": "·", "<=>": "≐", "<=": "≤", ">=": "≥"}


def render(relation: Relation, indent: str = "") -> str:
    """The tree, one node a line, children indented below their parent."""
    lines = [indent + describe(relation)]
    lines += [render(child, indent + "  ") for child in children(relation)]
    return "\n".join(lines)


def describe(relation: Relation) -> str:
    """One node without its children."""
    match relation:
        case Scan(table, attributes, state):
            return f"{table}{_STATE[state]}({names(attributes)})"
        case Changes(table, columns):
            return f"Δ{table}({names(columns)})"
        case Given(name, attributes):
            return f"{name}({names(attributes)})"
        case Previous(loop, attributes):
            return f"level of {loop}({names(attributes)})"
        case Recursion(_, _, loop, levels, attributes):
            most = "" if levels is None else f" to level {levels}"
            return f"recursion {loop}({names(attributes)}){most}"
        case Values(attributes, rows):
            return f"values({names(attributes)}) of {len(rows)}"
        case Select(_, predicate):
            return f"σ {expression_text(predicate)}"
        case Project(_, outputs):
            return "Π " + ", ".join(map(_output, outputs))
        case Join(_, _, on):
            return "×" if on is None else f"⋈ {expression_text(on)}"
        case OuterJoin(_, _, on, keeps_left, keeps_right):
            symbol = "⟗" if keeps_left and keeps_right else "⟕" if keeps_left else "⟖"
            return symbol + _condition(on)
        case Semijoin(_, _, on, anti):
            return ("▷" if anti else "⋉") + _condition(on)
        case MarkJoin(_, _, on, mark):
            return f"mark {mark.name} ⋉{_condition(on)}"
        case Intersection(_, _, all):
            return "∩ all" if all else "∩"
        case Difference(_, _, all):
            return "∸" if all else "−"
        case Aggregate(_, group, aggregates):
            calls = [f"{aggregate_text(a.call)} → {a.attribute.name}" for a in aggregates]
            return "π " + ", ".join([names(group)] * bool(group) + calls)
        case Union(operands, _):
            return f"⊎ of {len(operands)}"
        case Repeat(_, times):
            return f"repeat {expression_text(times)} times"
        case Window(_, outputs, partition, order, ties):
            inside = [f"{window_text(o.call)} → {o.attribute.name}" for o in outputs]
            shown = f"window {', '.join(inside)} by ({_list(partition)}) order ({_orders(order)})"
            return shown + f" then ({_orders(ties)})" * bool(ties)
        case Expand(_, projections, attributes):
            return f"expand {len(projections)} × ({names(attributes)})"
        case Generate(_, generator, outer, generated):
            return f"generate{' outer' * outer} {expression_text(generator)} → {names(generated)}"
        case Sort(_, order):
            return f"sort {_orders(order)}"
        case Limit(_, count, offset, order):
            shown = f"limit {'all' if count is None else count}" + f" offset {offset}" * bool(
                offset
            )
            return f"{shown} by {_orders(order)}"


def expression_text(expression: Expression) -> str:
    match expression:
        case Column(attribute):
            return attribute.name
        case Literal(value, type, text):
            return text or (f"'{value}'" if type == "string" else str(value))
        case Call("and" | "or" as operation, arguments):
            return "(" + f" {_SYMBOL[operation]} ".join(map(expression_text, arguments)) + ")"
        case Call("not", (argument,)):
            return f"¬{expression_text(argument)}"
        case Call("is null" | "is not null" as operation, (argument,)):
            return f"{expression_text(argument)} {operation}"
        case Call(operation, (left, right)) if operation in _INFIX:
            symbol = _SYMBOL.get(operation, operation)
            return f"{_operand(left)} {symbol} {_operand(right)}"
        case Call("in", (sought, *candidates)):
            return f"{expression_text(sought)} in ({_list(tuple(candidates))})"
        case Call("cast", (argument,), type):
            return f"{_operand(argument)}::{type}"
        case Call(operation, arguments):
            return f"{operation}({_list(arguments)})"
        case Opaque(text, arguments):
            return _PLACE.sub(lambda place: expression_text(arguments[int(place[1])]), text)


def aggregate_text(call: AggregateCall) -> str:
    inside = "*" if not call.arguments else _list(call.arguments)
    text = f"{call.function}({'distinct ' * call.distinct}{inside})"
    return text if call.filter is None else f"{text} where {expression_text(call.filter)}"


def window_text(call: WindowCall) -> str:
    return f"{call.function}({_list(call.arguments)}){_frame(call.frame)}"


def _frame(frame: Frame) -> str:
    """The frame where it is neither the whole partition nor all rows up to the current one."""
    if frame.text:
        return f" {frame.text}"
    if frame.is_everything or (frame.start is None and frame.end == 0 and not frame.by_rows):
        return ""
    edges = (
        ("start" if frame.start is None else frame.start),
        ("end" if frame.end is None else frame.end),
    )
    return f" {'rows' if frame.by_rows else 'range'} {edges[0]}…{edges[1]}"


def _orders(order: tuple[Ordering, ...]) -> str:
    return ", ".join(map(_ordering, order))


def _ordering(key: Ordering) -> str:
    nulls = " nulls last" if key.nulls_last and not key.descending else ""
    nulls = " nulls first" if key.descending and not key.nulls_last else nulls
    return f"{expression_text(key.expression)}{' desc' * key.descending}{nulls}"


def names(attributes: tuple[Attribute, ...]) -> str:
    return ", ".join(attribute.name for attribute in attributes)


def _operand(expression: Expression) -> str:
    text = expression_text(expression)
    return f"({text})" if isinstance(expression, Call) and expression.operation in _INFIX else text


def _output(output: Output) -> str:
    shown = output.expression
    if isinstance(shown, Column) and shown.attribute.name == output.attribute.name:
        return output.attribute.name
    return f"{expression_text(output.expression)} → {output.attribute.name}"


def _condition(on: Expression | None) -> str:
    return "" if on is None else f" {expression_text(on)}"


def _list(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(map(expression_text, expressions))
