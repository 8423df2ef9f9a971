"""Where the queries inside of a query are in its text, as Spark's parser has found them.

Each node of a parsed plan knows where its text begins. That text can be less than the query it stands
for (of an aggregate it is the GROUP BY alone), so a query ends where the brackets around it do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from freshview.frontend.scala import JavaObject, java_session
from freshview.frontend.statements import tokens_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Place(Enum):
    """What a query inside of a query is there for."""

    CTE = "the CTE"
    FROM = "the subquery in FROM"
    EXPRESSION = "the subquery in an expression"
    LIMIT = "what is below ORDER BY and LIMIT"


@dataclass(frozen=True, slots=True)
class Piece:
    """A query inside of a query: ``text[start:stop]``."""

    place: Place
    start: int
    stop: int
    name: str = ""
    """The name that a CTE has."""


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table in FROM: ``text[start:stop]``, and whether another name is given to it."""

    table: str
    start: int
    stop: int
    has_alias: bool


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query, the queries inside of it with inner ones before outer ones, and the tables it names."""

    text: str
    pieces: tuple[Piece, ...]
    table_names: tuple[TableName, ...]

    @property
    def ctes(self) -> frozenset[str]:
        """The names of its CTEs, in small letters."""
        return frozenset(piece.name.lower() for piece in self.pieces if piece.name)

    def of(self, piece: Piece) -> str:
        return self.text[piece.start : piece.stop].strip()

    def replaced(self, start: int, stop: int, by: str) -> str:
        return self.text[:start] + by + self.text[stop:]

    def alone(self, piece: Piece) -> str:
        """A piece as a query of its own, with WITH and the CTEs before it if it names one of them.

        What comes before a CTE that is not in scope is no beginning of a query, and is refused.
        """
        before = [cte for cte in self.pieces if cte.name and cte.stop < piece.start]
        named = {
            used.table.lower()
            for used in self.table_names
            if piece.start <= used.start < piece.stop
        }
        if named.isdisjoint(cte.name.lower() for cte in before):
            return self.of(piece)
        end = max(cte.stop for cte in before)
        return f"{self.text[: end + 1]}\n{self.of(piece)}"


def query_text(session: SparkSession, text: str) -> QueryText:
    """The pieces of a query that Spark can parse."""
    plan = java_session(session).sessionState().sqlParser().parsePlan(text)
    brackets = _brackets(text)
    found = _Found(text, brackets)
    found.visit(plan, alias=None)
    limit = _below_limit(text, plan)
    pieces = dict.fromkeys(found.pieces if limit is None else [*found.pieces, limit])
    inner_first = sorted(pieces, key=lambda piece: (piece.stop - piece.start, piece.start))
    return QueryText(text, tuple(inner_first), tuple(dict.fromkeys(found.table_names)))


class _Found:
    """What a walk over a parsed plan finds."""

    def __init__(self, text: str, brackets: list[tuple[int, int]]) -> None:
        self.pieces: list[Piece] = []
        self.table_names: list[TableName] = []
        self._text = text
        self._brackets = brackets

    def visit(self, plan: JavaObject, alias: tuple[int, int] | None) -> None:
        """A node and all below it; ``alias`` is the text of the alias that is right above it."""
        kind, span = str(plan.nodeName()), _span(plan)
        below = None
        if kind == "UnresolvedWith":
            for cte in _items(plan.cteRelations()):
                self._cte(cte)
        elif kind in ("SubqueryAlias", "UnresolvedSubqueryColumnAliases"):
            below = alias or span
            self._subquery(span)
        elif kind == "UnresolvedRelation" and span is not None:
            has_alias = alias is not None and alias[0] == span[0]
            name = self._text[span[0] : span[1]]
            self.table_names.append(TableName(name.strip("`"), *span, has_alias))
        for child in _items(plan.children()):
            self.visit(child, below)
        for query in _items(plan.subqueries()):
            self._expression(query)
            self.visit(query, None)

    def _cte(self, cte: JavaObject) -> None:
        """``name AS (query)``: the brackets that end it."""
        aliased = cte.productElement(1)
        span = _span(aliased)
        if span is not None:
            inner = next((b for b in self._brackets if b[1] == span[1] - 1), None)
            if inner is not None:
                name = str(cte.productElement(0))
                self.pieces.append(Piece(Place.CTE, inner[0] + 1, inner[1], name))
        for child in _items(aliased.children()):
            self.visit(child, span)

    def _subquery(self, span: tuple[int, int] | None) -> None:
        """``(query) AS name``: the brackets that begin it."""
        inner = span and next((b for b in self._brackets if b[0] == span[0]), None)
        if inner:
            self.pieces.append(Piece(Place.FROM, inner[0] + 1, inner[1]))

    def _expression(self, query: JavaObject) -> None:
        """The innermost brackets around what is known of the query's text."""
        span = _span(query)
        if span is None or query.nodeName() == "SubqueryAlias":
            return
        around = [b for b in self._brackets if b[0] < span[0] and span[1] - 1 < b[1]]
        if around:
            start, stop = max(around)
            self.pieces.append(Piece(Place.EXPRESSION, start + 1, stop))


def _below_limit(text: str, plan: JavaObject) -> Piece | None:
    """All that is written before the ORDER BY and LIMIT that end a query.

    None in pipe syntax, where ORDER BY is a step of its own and would stay behind.
    """
    if plan.nodeName() == "UnresolvedWith":
        plan = plan.child()
    span = _span(plan)
    if plan.nodeName() != "GlobalLimit" or span is None or any(tokens_of(text[span[1] :])):
        return None
    above = text[: span[0]].rstrip()
    return Piece(Place.LIMIT, 0, span[0]) if above and not above.endswith("|>") else None


def _span(plan: JavaObject) -> tuple[int, int] | None:
    """Where a node's text begins and ends, by characters."""
    origin = plan.origin()
    start, stop = origin.startIndex(), origin.stopIndex()
    return (start.get(), stop.get() + 1) if start.isDefined() and stop.isDefined() else None


def _items(seq: JavaObject) -> Iterator[JavaObject]:
    iterator = seq.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _brackets(text: str) -> list[tuple[int, int]]:
    """The places of each opening bracket and of the one that closes it."""
    found, opened = [], []
    for token in tokens_of(text):
        if token.group() == "(":
            opened.append(token.start())
        elif token.group() == ")" and opened:
            found.append((opened.pop(), token.start()))
    return found


def is_only_shown(text: str, column: str) -> bool:
    """Whether a query does nothing with a column but to list it after SELECT.

    Every mention of the name counts, whatever column is meant by it, but as a new name after AS. A new
    name that is given to the column has to be mentioned nowhere else. What could take the column on
    without its name is not looked into: lists of new names (``q(a, b)``), ``*`` inside of a function, and
    queries of which one value is used.
    """
    words = [(token.group(), token.lastgroup) for token in tokens_of(text)]
    names = [_name(word) if kind in ("word", "quoted") else "" for word, kind in words]
    padded = ["", "", *(word.upper() for word, _ in words), "", ""]
    levels, clauses = [_Level.SHOWN], [""]
    for place, (word, _) in enumerate(words):
        before_that, before, _, after, behind = padded[place : place + 5]
        shown = levels[-1] is _Level.SHOWN
        if padded[place + 2] in _CLAUSES:
            clauses[-1] = padded[place + 2]
        if word == "(":
            in_from = clauses[-1] == "FROM" and before_that not in _BEFORE_TABLE
            named = in_from or before_that in (")", "AS")
            listed = named and names[place - 1]
            if listed and after not in _QUERY and before not in _AFTER_FUNCTIONS:
                return False
            levels.append(_level(before, after, clauses[-1]))
            clauses.append("")
        elif word == ")" and len(levels) > 1:
            levels.pop()
            clauses.pop()
            if (after, behind) == ("AS", "(") and levels[-1] is not _Level.FUNCTION:
                return False
        elif word == "*" and not shown and before in _LISTED_ALL:
            if (before_that, before) != ("COUNT", "("):
                return False
        elif names[place] == column.lower() and before != "AS":
            if not shown or before not in _LISTED or after not in _LIST_GOES_ON:
                return False
            if after == "AS" and names.count(names[place + 2]) > 1:
                return False
    return True


class _Level(Enum):
    """What is between two brackets, as far as a column in it is concerned."""

    SHOWN = "a query whose rows a query reads"
    VALUE = "a query of which one value is used"
    FUNCTION = "no query"


def _level(before: str, after: str, clause: str) -> _Level:
    if after not in _QUERY:
        return _Level.FUNCTION
    is_read = before in _BEFORE_QUERY or (before == "," and clause == "FROM")
    return _Level.SHOWN if is_read else _Level.VALUE


def _name(word: str) -> str:
    return word.strip("`").lower()


_QUERY = ("SELECT", "WITH")
_CLAUSES = frozenset({"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER"})
_BEFORE_QUERY = frozenset(
    {"", "FROM", "JOIN", "AS", "ALL", "UNION", "EXCEPT", "INTERSECT", "DISTINCT"}
)
_AFTER_FUNCTIONS = frozenset({"OVER", "FILTER", "GROUP", "IN"})
"""Words between the brackets of a function, or of a value, and others."""
_BEFORE_TABLE = frozenset(
    {"FROM", "JOIN", "LATERAL", "VIEW", "OUTER", "ON", "AND", "OR", "NOT", ",", "("}
)
"""Words before the name of a function: what follows another word are a table's name and its new one."""
_LISTED = ("SELECT", "DISTINCT", ",", ".")
_LISTED_ALL = ("SELECT", "DISTINCT", ",", ".", "(")
_LIST_GOES_ON = (",", "FROM", "AS")
