"""What the rows of a view have gone through: edges that a batch must have hit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Bag = Counter[tuple[Any, ...]]

Edge = Callable[[Sequence[Bag]], bool]
"""Whether the view's rows, as made and after each batch, went through the operator's edge."""


@dataclass(frozen=True)
class Case:
    """A view, and the edge that its rows must have gone through."""

    sql: str
    edge: Edge


def column(bag: Bag, place: int) -> set[Any]:
    return {row[place] for row in bag}


def empties_and_returns(place: int, value: Any) -> Edge:
    """A value of a column is there, then gone, then there again."""

    def edge(steps: Sequence[Bag]) -> bool:
        there = [value in column(bag, place) for bag in steps]
        return any(
            there[i] and not there[j] and there[k]
            for i in range(len(there))
            for j in range(i + 1, len(there))
            for k in range(j + 1, len(there))
        )

    return edge


def comes_back(place: int) -> Edge:
    """Some value of a column is there, then gone, then there again."""

    def edge(steps: Sequence[Bag]) -> bool:
        values = set().union(*(column(bag, place) for bag in steps))
        return any(empties_and_returns(place, value)(steps) for value in values)

    return edge


def moves(key: int, place: int) -> Edge:
    """Rows, told by a column, come to have another value in a column, since others have come or gone."""

    def edge(steps: Sequence[Bag]) -> bool:
        held: dict[Any, set[Any]] = {}
        for row in (row for bag in steps for row in bag):
            held.setdefault(row[key], set()).add(row[place])
        return sum(len(values) > 1 for values in held.values()) >= 3

    return edge


def pairs(bag: Bag) -> set[tuple[Any, ...]]:
    return {row[:2] for row in bag}


def ever(holds: Callable[[Bag], bool]) -> Edge:
    return lambda steps: any(holds(bag) for bag in steps)


def turns_empty(steps: Sequence[Bag]) -> bool:
    """The view has rows, then none, then rows."""
    empty = [place for place, bag in enumerate(steps) if not bag]
    return bool(empty) and any(steps[: empty[0]]) and any(steps[empty[0] :])


def some_null(place: int) -> Edge:
    return lambda steps: {None in column(bag, place) for bag in steps} == {True, False}


def changes(steps: Sequence[Bag]) -> bool:
    return len({repr(sorted(bag.items(), key=repr)) for bag in steps}) >= 4


def duplicates(steps: Sequence[Bag]) -> bool:
    return changes(steps) and any(n > 1 for bag in steps for n in bag.values())


def tied(place: int) -> Edge:
    """Two rows have the same rank, and then they have not."""

    def has_tie(bag: Bag) -> bool:
        return len(column(bag, place)) < bag.total()

    return lambda steps: {has_tie(bag) for bag in steps} == {True, False}


def padded_on_both_sides(left: int, right: int) -> Edge:
    """Rows of either side are padded, and some are not."""

    def edge(steps: Sequence[Bag]) -> bool:
        rows = {(row[left] is None, row[right] is None) for bag in steps for row in bag}
        return rows >= {(True, False), (False, True), (False, False)}

    return edge


def padded_and_matched(place: int, key: int = 0) -> Edge:
    """A row, told by a column, is padded at one time and matched at another."""

    def edge(steps: Sequence[Bag]) -> bool:
        rows = {(row[key], row[place] is None) for bag in steps for row in bag}
        return any((key, not is_padded) in rows for key, is_padded in rows)

    return edge
