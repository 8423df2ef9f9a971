"""Suggestions for a definition: how it would be kept, and which rewrites of it are kept better."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count

from freshview.advice.rules import drafts
from freshview.advice.suggestion import Case, Definition, Suggestion, suggestion_text
from freshview.algebra.schema import Attribute, quoted
from freshview.errors import (
    FreshviewError,
    InvalidColumn,
    InvalidColumnType,
    UnsupportedExpression,
    UnsupportedOperator,
    ViewNotMaintainable,
)
from freshview.frontend.query_text import QueryText
from freshview.frontend.statements import CreateView, parse_statement
from freshview.planner.strategy import Strategy
from freshview.reasons import Reason, reason_of
from freshview.runtime.catalog import Catalog, Policy, ViewEntry
from freshview.runtime.definitions import Definitions
from freshview.runtime.parts import Parts

NAME = "my_view"
"""The name of a view that a query without one would define."""

_NAME_MAX = 63
REFUSED = (
    InvalidColumn,
    InvalidColumnType,
    UnsupportedExpression,
    UnsupportedOperator,
    ViewNotMaintainable,
)
"""What keeps a valid query from being a materialized view."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known of a definition; ``str`` gives the text, ``to_json`` the same for programs.

    ``technique`` is None if the definition is refused; ``reason`` says why then, or why it is
    recomputed.
    """

    view: str
    technique: str | None
    reason: Reason | None
    suggestions: tuple[Suggestion, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        lines = [self.view, f"  technique  {self.technique or 'none: it is refused'}"]
        if self.reason is not None:
            title = "refused" if self.technique is None else "not incremental"
            lines += ["", title, *("  " + line for line in str(self.reason).split("\n"))]
        for number, suggestion in enumerate(self.suggestions, start=1):
            lines += ["", f"suggestion {number}: {suggestion.rule}", *suggestion_text(suggestion)]
        if not self.suggestions:
            found = "no rule has a rewrite" if self.reason else "none would spare a read"
            lines += ["", f"no suggestion: {found}"]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Question:
    """A definition with what its statement says beside it."""

    definition: Definition
    policy: Policy = Policy.AUTO
    technique: str = "auto"
    comment: str | None = None
    is_there: bool = False

    def statements(self, definitions: Sequence[Definition]) -> tuple[str, ...]:
        """CREATE MATERIALIZED VIEW for each; the last takes the place of the one that is there."""
        *parts, last = definitions
        create = "CREATE OR REPLACE" if self.is_there else "CREATE"
        options = ""
        if self.comment is not None:
            options += f" COMMENT {_string(self.comment)}"
        if self.policy is not Policy.AUTO:
            options += f" POLICY {self.policy.value}"
        if self.technique != "auto":
            options += f" OPTIONS (technique = {self.technique})"
        made = [_statement("CREATE", part, "") for part in parts]
        return (*made, _statement(create, last, options))


def _string(text: str) -> str:
    """A text in quotes as statements have it: raw, if it has a backslash and no quote."""
    if "\\" in text and "'" not in text:
        return f"r'{text}'"
    return "'" + text.replace("'", "''") + "'"


def _statement(create: str, definition: Definition, options: str) -> str:
    name = quoted(definition.name)
    return f"{create} MATERIALIZED VIEW {name}{options} AS\n{definition.query}"


def advise(parts: Parts, definitions: Definitions, query: str | None, view: str | None) -> Advice:
    """What is known of a query, of the one in a CREATE MATERIALIZED VIEW, or of a view that is there.

    A view of a function has no text that could be rewritten.
    """
    catalog = parts.catalog
    if view is not None:
        entry = catalog.view(view)
        if entry.sql is None:
            made = parts.strategy(entry)
            return Advice(view, made.technique.value, made.reason, ())
        return _advice(definitions, catalog, _question(entry, entry.sql))
    text = query or ""
    match parse_statement(text):
        case CreateView(name, body, policy, comment, _, _, technique):
            is_there = any(entry.name == name for entry in catalog.views())
            given = Definition(name, body)
            question = _Question(given, Policy(policy), technique, comment, is_there)
        case _:
            question = _Question(Definition(_free_name(catalog, NAME, ()), text))
    return _advice(definitions, catalog, question)


def first_suggestion(parts: Parts, definitions: Definitions, entry: ViewEntry) -> Suggestion | None:
    """The first rewrite of a view; None if there is none, or no text to rewrite."""
    if entry.sql is None:
        return None
    question = _question(entry, entry.sql)
    case = _case(definitions, question)
    return next(_suggestions(definitions, parts.catalog, question, case), None)


def _question(entry: ViewEntry, query: str) -> _Question:
    given = Definition(entry.name, query)
    return _Question(given, entry.policy, entry.wanted, entry.comment, is_there=True)


def _advice(definitions: Definitions, catalog: Catalog, question: _Question) -> Advice:
    case = _case(definitions, question)
    found = tuple(_suggestions(definitions, catalog, question, case))
    if case.refused is not None:
        reason: Reason | None = _refusal(case.refused)
        return Advice(question.definition.name, None, reason, found)
    assert case.strategy is not None
    technique, reason = case.strategy.technique.value, case.strategy.reason
    return Advice(question.definition.name, technique, reason, found)


def _refusal(error: FreshviewError) -> Reason:
    """An error as a reason; the code of what cannot be maintained is that of its own reason."""
    found = reason_of(error)
    if isinstance(error, ViewNotMaintainable):
        return replace(found, code=str(error.parameters["reason"]))
    return found


def _case(definitions: Definitions, question: _Question) -> Case:
    given = question.definition
    try:
        (made,) = definitions.tried([(given.name, given.query)], question.technique)
    except REFUSED as refused:
        columns: tuple[Attribute, ...] = ()
        if isinstance(refused, InvalidColumn | InvalidColumnType):
            columns = definitions.shown(given.name, given.query)
        return Case(given, columns, None, refused)
    return Case(given, made.visible, made)


def _suggestions(
    definitions: Definitions, catalog: Catalog, question: _Question, case: Case
) -> Iterator[Suggestion]:
    planning = _Planning(definitions, catalog, question.technique)
    for draft, made in drafts(case, planning):
        yield Suggestion(
            draft.rule,
            draft.why,
            draft.definitions,
            tuple(view.technique.value for view in made),
            question.statements(draft.definitions),
        )


@dataclass(frozen=True, slots=True)
class _Planning:
    """What the rules may ask of a warehouse."""

    definitions: Definitions
    catalog: Catalog
    technique: str

    def planned(self, definitions: Sequence[Definition]) -> tuple[Strategy, ...] | None:
        pairs = [(definition.name, definition.query) for definition in definitions]
        try:
            return self.definitions.tried(pairs, self.technique)
        except FreshviewError:
            return None

    def text(self, query: str) -> QueryText:
        return self.definitions.written(query)

    def shown(self, query: str) -> tuple[Attribute, ...]:
        try:
            return self.definitions.shown(NAME, query)
        except FreshviewError:
            return ()

    def columns(self, table: str) -> tuple[Attribute, ...]:
        known = {entry.name.lower() for entry in self.catalog}
        return self.shown(f"SELECT * FROM {quoted(table)}") if table.lower() in known else ()  # noqa: S608 - a name in backticks

    def free_name(self, name: str, taken: Sequence[str]) -> str:
        return _free_name(self.catalog, name, taken, first=1)


def _free_name(catalog: Catalog, name: str, taken: Sequence[str], first: int = 0) -> str:
    """The name, or the first one made of it and a number that nobody has."""
    known = {entry.name.lower() for entry in catalog} | {other.lower() for other in taken}
    for number in count(first):
        end = f"_{number}" if number else ""
        found = name[: _NAME_MAX - len(end)] + end
        if found.lower() not in known:
            return found
    raise AssertionError("there is always another number")
