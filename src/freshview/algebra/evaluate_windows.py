"""The oracle's window functions and orders, over lists of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from freshview.algebra.relations import Limit, Window
from freshview.algebra.windows import Frame, Ordering, WindowCall

Row = tuple[Any, ...]
Value = Callable[[Row], Any]
Values = Callable[[Any], Value]
"""What makes an expression a function of a row."""
Aggregates = Mapping[str, Callable[[list[tuple[Any, int]]], Any]]


class NoWindow(Exception):
    """The oracle does not compute this window function or frame."""


def in_order(rows: Sequence[Row], order: Sequence[Ordering], values: Values) -> list[Row]:
    """The rows sorted, by the last key first: each pass keeps what the passes before it did."""
    found = list(rows)
    for key in reversed(order):
        value = values(key.expression)
        nulls = [row for row in found if value(row) is None]
        others = [row for row in found if value(row) is not None]
        others.sort(key=value, reverse=key.descending)
        found = others + nulls if key.nulls_last else nulls + others
    return found


def limited(node: Limit, rows: Counter[Row], values: Values) -> Counter[Row]:
    """The rows after the offset, up to the count, in the node's order."""
    found = in_order(sorted(rows.elements(), key=repr), node.order, values)
    end = None if node.count is None else node.offset + node.count
    return Counter(found[node.offset : end])


def windowed(
    node: Window, rows: Counter[Row], values: Values, aggregates: Aggregates
) -> Counter[Row]:
    """Each row with the values of the window functions appended."""
    by = [values(expression) for expression in node.partition]
    partitions: dict[Row, list[Row]] = {}
    for row in sorted(rows.elements(), key=repr):
        partitions.setdefault(tuple(value(row) for value in by), []).append(row)
    found: Counter[Row] = Counter()
    for partition in partitions.values():
        ordered = in_order(partition, (*node.order, *node.ties), values)
        peers = _peers(ordered, [values(key.expression) for key in node.order])
        columns = [_column(o.call, ordered, peers, values, aggregates) for o in node.outputs]
        found.update(row + tuple(made) for row, *made in zip(ordered, *columns, strict=True))
    return found


def _peers(rows: Sequence[Row], keys: Sequence[Value]) -> list[tuple[int, int]]:
    """For each row the first and the last place of the rows that tie with it."""
    found = [tuple(key(row) for key in keys) for row in rows]
    starts: list[int] = []
    for place, one in enumerate(found):
        starts.append(starts[-1] if place and one == found[place - 1] else place)
    ends = {start: place for place, start in enumerate(starts)}
    return [(start, ends[start]) for start in starts]


def _column(
    call: WindowCall,
    rows: Sequence[Row],
    peers: Sequence[tuple[int, int]],
    values: Values,
    aggregates: Aggregates,
) -> list[Any]:
    """The value of a function for each row of a partition in its order."""
    starts = [start for start, _ in peers]
    match call.function:
        case "row_number":
            return [place + 1 for place in range(len(rows))]
        case "rank":
            return [start + 1 for start in starts]
        case "dense_rank":
            order = {start: place for place, start in enumerate(dict.fromkeys(starts))}
            return [order[start] + 1 for start in starts]
        case "lag" | "lead":
            return _offset(call, rows, values)
    if call.function not in aggregates or len(call.arguments) > 1:
        raise NoWindow(call.function)
    argument = values(call.arguments[0]) if call.arguments else lambda _: True
    found = [argument(row) for row in rows]
    return [
        aggregates[call.function]([(one, 1) for one in found[start:end]])
        for start, end in _frames(call.frame, peers)
    ]


def _offset(call: WindowCall, rows: Sequence[Row], values: Values) -> list[Any]:
    value, distance, default = (values(argument) for argument in call.arguments)
    back = 1 if call.function == "lag" else -1
    found = []
    for place, row in enumerate(rows):
        other = place - back * abs(distance(row))
        found.append(value(rows[other]) if 0 <= other < len(rows) else default(row))
    return found


def _frames(frame: Frame, peers: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """For each row the places from which and before which its frame lies."""
    if frame.text or (not frame.by_rows and (frame.start or frame.end)):
        raise NoWindow(frame.text)
    found = []
    for place, (first, last) in enumerate(peers):
        start = first if not frame.by_rows else place + (frame.start or 0)
        end = last if not frame.by_rows else place + (frame.end or 0)
        start = 0 if frame.start is None else max(start, 0)
        end = len(peers) if frame.end is None else end + 1
        found.append((start, max(start, end)))
    return found
