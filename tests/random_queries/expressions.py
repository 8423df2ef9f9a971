"""Random scalar expressions and conditions in SQL that Spark and DuckDB read alike.

A value has one of a few kinds, and every expression of a kind has the same type in both, so that any two
relations can be joined, compared and united. Numbers stay small and doubles are halves: neither an
overflow nor a rounding depends on the order of the rows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a column holds, and its type in both dialects."""

    INT = "BIGINT"
    TEXT = "STRING"
    MONEY = "DECIMAL(18,2)"
    DAY = "DATE"
    REAL = "DOUBLE"
    RATIO = "DOUBLE "
    """An average: compared, grouped and counted, but never added up again."""

    @property
    def sql(self) -> str:
        return self.value.strip()


SUMMABLE = (Kind.INT, Kind.MONEY, Kind.REAL)


@dataclass(frozen=True)
class Column:
    """A column by the name that it has nowhere else in the query."""

    name: str
    kind: Kind


class Expressions:
    """Expressions over given columns."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def literal(self, kind: Kind) -> str:
        match kind:
            case Kind.INT:
                return f"CAST({self.dice.randrange(-1, 5)} AS BIGINT)"
            case Kind.TEXT:
                return self.dice.choice(["'a'", "'b'", "''", "'é'", "'b '"])
            case Kind.MONEY:
                return f"CAST({self.dice.randrange(-3, 6)}.50 AS DECIMAL(18,2))"
            case Kind.DAY:
                return f"DATE '2024-02-2{self.dice.randrange(7, 10)}'"
            case Kind.REAL | Kind.RATIO:
                return f"CAST({self.dice.choice(['0.5', '2', '-1.5'])} AS DOUBLE)"

    def of(self, columns: Sequence[Column], kind: Kind, depth: int = 1) -> str:
        """An expression of a kind; a literal where no column has it."""
        having = [column.name for column in columns if column.kind is kind]
        if not having:
            return self._converted(columns, kind) or self.literal(kind)
        column = self.dice.choice(having)
        choice = self.dice.randrange(10)
        if choice < 5 or depth == 0:
            return column
        if choice == 5:
            return f"coalesce({column}, {self.literal(kind)})"
        if choice == 6:
            other = self.of(columns, kind, depth - 1)
            return f"CASE WHEN {self.condition(columns, 0)} THEN {column} ELSE {other} END"
        if choice == 7:
            return f"nullif({column}, {self.literal(kind)})"
        return self._computed(column, self.of(columns, kind, depth - 1), kind)

    def _converted(self, columns: Sequence[Column], kind: Kind) -> str | None:
        """A number made of a column of another kind."""
        if kind is not Kind.INT or not columns:
            return None
        column = self.dice.choice(columns)
        match column.kind:
            case Kind.TEXT:
                return f"CAST(length({column.name}) AS BIGINT)"
            case Kind.DAY:
                return f"CAST(day({column.name}) AS BIGINT)"
            case _:
                return (
                    f"CASE WHEN {column.name} > 1 THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END"
                )

    def _computed(self, column: str, other: str, kind: Kind) -> str:
        match kind:
            case Kind.INT:
                return f"({column} {self.dice.choice('+-')} {other})"
            case Kind.TEXT:
                return self.dice.choice(
                    [f"upper({column})", f"({column} || 'z')", f"substring({column}, 1, 1)"]
                )
            case Kind.MONEY:
                return f"CAST({column} {self.dice.choice('+-')} {other} AS DECIMAL(18,2))"
            case Kind.DAY:
                return f"({column} + {self.dice.randrange(1, 3)})"
            case Kind.REAL:
                return f"({column} + {other})"
            case Kind.RATIO:
                return column

    def condition(self, columns: Sequence[Column], depth: int = 1) -> str:
        """A condition with null, true and false among its values."""
        choice = self.dice.randrange(12)
        if depth > 0 and choice < 3:
            parts = [self.condition(columns, depth - 1) for _ in range(2)]
            return f"({parts[0]} {self.dice.choice(['AND', 'OR'])} {parts[1]})"
        if depth > 0 and choice == 3:
            return f"NOT {self.condition(columns, depth - 1)}"
        column = self.dice.choice(columns)
        if choice == 4:
            return f"({column.name} IS {self.dice.choice(['', 'NOT '])}NULL)"
        if choice == 5:
            values = ", ".join(self.literal(column.kind) for _ in range(2))
            return f"({column.name} {self.dice.choice(['', 'NOT '])}IN ({values}))"
        if choice == 6:
            ends = sorted(self.literal(column.kind) for _ in range(2))
            return f"({column.name} BETWEEN {ends[0]} AND {ends[1]})"
        if choice == 7 and column.kind is Kind.TEXT:
            return f"({column.name} LIKE '%b%')"
        if choice in (8, 9):
            other = self.dice.choice([c for c in columns if c.kind is column.kind]).name
        else:
            other = self.literal(column.kind)
        operation = self.dice.choice(["=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM"])
        return f"({column.name} {operation} {other})"

    def pair(self, left: Sequence[Column], right: Sequence[Column]) -> str | None:
        """A comparison of a column of each side, most often an equality."""
        pairs = [(a, b) for a in left for b in right if a.kind is b.kind]
        if not pairs:
            return None
        a, b = self.dice.choice(pairs)
        operation = self.dice.choice(["="] * 6 + ["IS NOT DISTINCT FROM", "<", ">="])
        return f"{a.name} {operation} {b.name}"

    def between(self, left: Sequence[Column], right: Sequence[Column]) -> str:
        """A condition on two relations."""
        parts = [self.pair(left, right)]
        if self.dice.random() < 0.2:
            parts.append(self.pair(left, right))
        if self.dice.random() < 0.25:
            parts.append(self.condition([*left, *right], 0))
        there = [part for part in parts if part is not None]
        return " AND ".join(there) if there else self.condition([*left, *right])


def order(dice: random.Random, columns: Sequence[Column], *, total: bool) -> str:
    """ORDER BY some of the columns; with the others as tie-break if the order must be total."""
    chosen = dice.sample(list(columns), min(len(columns), dice.randrange(1, 3)))
    keys = [
        f"{c.name} {dice.choice(['ASC', 'DESC'])} NULLS {dice.choice(['FIRST', 'LAST'])}"
        for c in chosen
    ]
    if total:
        keys += [f"{c.name} ASC NULLS FIRST" for c in columns if c not in chosen]
    return f"ORDER BY {', '.join(keys)}"
