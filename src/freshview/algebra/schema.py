"""Attributes: the columns of a relation, each with an identity of its own.

Two occurrences of one table in a view (a self-join) have attributes of the same name and different
ids, so an expression always says which occurrence it reads. Types are Spark's type names
(``bigint``, ``decimal(12,2)``): the algebra compares them as text and never converts a value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

COUNT_NAME = "__n"
EXTENT_COUNT_NAME = "__count"
INTEGRAL_TYPES = frozenset({"tinyint", "smallint", "int", "bigint"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column of one relation: ``name`` for people, ``id`` for the machine."""

    name: str
    id: int
    type: str
    nullable: bool = True

    def with_name(self, name: str) -> Attribute:
        return replace(self, name=name)

    def __str__(self) -> str:
        return f"{self.name}#{self.id}"


COUNT = Attribute(COUNT_NAME, 0, "bigint", nullable=False)
"""The signed count of a delta. Each term of a delta has one operand that carries it, so one id serves."""


class Numbering:
    """Hands out attribute ids that are not in use yet."""

    def __init__(self, after: int) -> None:
        self._last = after

    def attribute(self, name: str, type: str, nullable: bool = True) -> Attribute:
        self._last += 1
        return Attribute(name, self._last, type, nullable)


def decimal_type(type: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, or None for any other type."""
    match = _DECIMAL.fullmatch(type)
    return (int(match[1]), int(match[2])) if match else None


def quoted(name: str) -> str:
    """A name as Spark's parser takes it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"
