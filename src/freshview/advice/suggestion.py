"""What the rules work on and what they make: definitions, drafts and suggestions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from freshview.algebra.schema import Attribute
from freshview.errors import FreshviewError
from freshview.frontend.query_text import QueryText
from freshview.planner.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Definition:
    """A view by its name and its query."""

    name: str
    query: str


@dataclass(frozen=True, slots=True)
class Case:
    """A definition that may be rewritten: what it shows, and how it is kept or why it is refused.

    Of a definition that is refused the columns are known all the same, ``strategy`` is not.
    """

    definition: Definition
    columns: tuple[Attribute, ...]
    strategy: Strategy | None
    refused: FreshviewError | None = None

    @property
    def code(self) -> str | None:
        """The code of what stands in the way of an incremental refresh."""
        if self.refused is not None:
            return self.refused.code
        assert self.strategy is not None
        return None if self.strategy.reason is None else self.strategy.reason.code


@dataclass(frozen=True, slots=True)
class Draft:
    """Definitions that may take the place of one; the last has its name and its meaning."""

    rule: str
    why: str
    definitions: tuple[Definition, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A draft that was planned, with the statements that define it."""

    rule: str
    why: str
    definitions: tuple[Definition, ...]
    techniques: tuple[str, ...]
    """How each of the views would be kept."""
    statements: tuple[str, ...]


def suggestion_text(suggestion: Suggestion) -> Iterator[str]:
    """A suggestion for people: why, how its views would be kept, and its statements."""
    yield f"  why: {suggestion.why}"
    for definition, technique in zip(suggestion.definitions, suggestion.techniques, strict=True):
        yield f"  {definition.name}: {technique}"
    for statement in suggestion.statements:
        yield ""
        yield from ("  " + line for line in f"{statement};".split("\n"))


class Planning(Protocol):
    """What rules may ask of a warehouse. Nothing is made by it, and no data is read."""

    def planned(self, definitions: Sequence[Definition]) -> tuple[Strategy, ...] | None:
        """The strategies of views that are defined one after the other; None if one is refused."""

    def text(self, query: str) -> QueryText:
        """Where the queries inside of a query are."""

    def shown(self, query: str) -> tuple[Attribute, ...]:
        """The columns of a query; none of one that Spark refuses."""

    def columns(self, table: str) -> tuple[Attribute, ...]:
        """The columns of a table or view; none of one that is not there."""

    def free_name(self, name: str, taken: Sequence[str]) -> str:
        """A name for a view that is to be part of another one."""
