"""Statements on materialized views; every other statement is Spark's.

CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name
    [COMMENT 'text'] [POLICY AUTO | INCREMENTAL | STRICT | FULL]
    [OPTIONS (technique = auto | counting | delta | change_table | group_recompute)] AS query
DROP MATERIALIZED VIEW [IF EXISTS] name
REFRESH MATERIALIZED VIEW { name [, name …] | ALL } [FULL]
ALTER MATERIALIZED VIEW name [SET] POLICY { AUTO | INCREMENTAL | STRICT | FULL }
ALTER MATERIALIZED VIEW name [SET] OPTIONS (technique = …)
EXPLAIN MATERIALIZED VIEW name
SHOW MATERIALIZED VIEWS
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from freshview.algebra.schema import quoted
from freshview.errors import InvalidStatement

_MOMENTS = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_FIXED = re.compile(r"""[rR]?['"]\s*[-+]?\d(?!\d?:)""")

POLICIES = ("AUTO", "INCREMENTAL", "STRICT", "FULL")


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE MATERIALIZED VIEW; the query is kept as it was written.

    With a list of columns the query is put into one that names its columns so.
    """

    name: str
    query: str
    policy: str = "AUTO"
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    technique: str = "auto"


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP MATERIALIZED VIEW."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RefreshViews:
    """REFRESH MATERIALIZED VIEW; no names means all."""

    names: tuple[str, ...]
    full: bool = False


@dataclass(frozen=True, slots=True)
class AlterPolicy:
    """ALTER MATERIALIZED VIEW … POLICY."""

    name: str
    policy: str


@dataclass(frozen=True, slots=True)
class AlterTechnique:
    """ALTER MATERIALIZED VIEW … OPTIONS (technique = …)."""

    name: str
    technique: str


@dataclass(frozen=True, slots=True)
class ExplainView:
    """EXPLAIN MATERIALIZED VIEW."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowViews:
    """SHOW MATERIALIZED VIEWS."""


@dataclass(frozen=True, slots=True)
class SparkStatement:
    """Anything else, for Spark to run."""

    text: str


Statement = (
    CreateView
    | DropView
    | RefreshViews
    | AlterPolicy
    | AlterTechnique
    | ExplainView
    | ShowViews
    | SparkStatement
)

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--(?:\\\n|[^\r\n])*)
      | (?P<hint>/\*\+|\*/)
      | (?P<comment>/\*)
      | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")


def tokens_of(text: str) -> Iterator[re.Match[str]]:
    """What a text is made of, without blanks and comments, which may be nested.

    A comment without an end is the last token, for the one who reads on to stumble over.
    """
    place = 0
    while token := _TOKEN.match(text, place):
        place = token.end()
        if token.lastgroup == "comment":
            end = _end_of_comment(text, place)
            if end is None:
                yield token
                return
            place = end
        elif token.lastgroup != "blank":
            yield token


def _end_of_comment(text: str, place: int) -> int | None:
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(text, place)
        if edge is None:
            return None
        place = edge.end()
        depth += 1 if edge.group() == "/*" else -1
    return place


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.text.upper() == word


class _Reader:
    """The tokens of a statement, taken one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = [_Token(str(m.lastgroup), m.group(), m.start()) for m in tokens_of(text)]
        self._place = 0

    def starts(self, *words: str) -> bool:
        """Whether these words come next; takes them if so."""
        following = self._tokens[self._place : self._place + len(words)]
        if len(following) < len(words):
            return False
        if not all(token.is_word(word) for token, word in zip(following, words, strict=True)):
            return False
        self._place += len(words)
        return True

    def name(self, expected: str = "the name of a view") -> str:
        token = self._next(expected)
        if token.kind == "word":
            return token.text
        if token.kind == "quoted":
            return token.text[1:-1].replace("``", "`")
        raise self.wrong(expected, token)

    def columns(self) -> tuple[str, ...]:
        """A list of column names in brackets, or none."""
        if not self._takes("("):
            return ()
        names = [self.name("the name of a column")]
        while self.comma():
            names.append(self.name("the name of a column"))
        if not self._takes(")"):
            raise self.wrong("a comma or a closing bracket", self.peek())
        return tuple(names)

    def policy(self) -> str:
        token = self._next(" or ".join(POLICIES))
        if token.text.upper() not in POLICIES:
            raise self.wrong(" or ".join(POLICIES), token)
        return token.text.upper()

    def technique(self) -> str:
        """``(technique = name)``, the one option that there is."""
        for sign in ("(", "technique", "="):
            token = self._next(sign)
            if token.text.lower() != sign:
                raise self.wrong(sign, token)
        expected = "the name of a technique"
        token = self._next(expected)
        if token.kind not in ("word", "string"):
            raise self.wrong(expected, token)
        if not self._takes(")"):
            raise self.wrong("a closing bracket", self.peek())
        return token.text.strip("'\"")

    def string(self) -> str:
        token = self._next("a text in quotes")
        if token.kind == "raw":
            return token.text[2:-1]
        if token.kind != "string":
            raise self.wrong("a text in quotes", token)
        quote = token.text[0]
        return token.text[1:-1].replace(quote * 2, quote).replace("\\" + quote, quote)

    def comma(self) -> bool:
        return self._takes(",")

    def _takes(self, sign: str) -> bool:
        """Whether this sign comes next; takes it if so."""
        if self._place < len(self._tokens) and self._tokens[self._place].text == sign:
            self._place += 1
            return True
        return False

    def rest(self) -> str:
        """The text from here on, as it was written, without a final semicolon."""
        if self._place == len(self._tokens):
            raise self.wrong("a query", None)
        return without_end(self.text[self._tokens[self._place].start :]).rstrip()

    def end(self) -> None:
        rest = self._tokens[self._place :]
        if rest and not (len(rest) == 1 and rest[0].text == ";"):
            raise self.wrong("the end of the statement", rest[0])

    def wrong(self, expected: str, token: _Token | None) -> InvalidStatement:
        start = len(self.text) if token is None else token.start
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1) + 1
        found = "the end of the statement" if token is None else repr(token.text)
        return InvalidStatement(line=line, column=column, expected=expected, found=found)

    def peek(self) -> _Token | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _next(self, expected: str) -> _Token:
        if self._place == len(self._tokens):
            raise self.wrong(expected, None)
        self._place += 1
        return self._tokens[self._place - 1]


def without_end(text: str) -> str:
    """A statement without its final semicolons and the comments after them."""
    tokens = list(tokens_of(text))
    while tokens and tokens[-1].group() == ";":
        text = text[: tokens.pop().start()]
    return text


def moving_literals(text: str) -> tuple[str, ...]:
    """Typed literals such as ``DATE 'today'``, which Spark's parser turns into the day it is.

    They are looked for in the text, because nothing in the plan tells them from a fixed date. A fixed
    one begins with a digit or a sign; what begins otherwise, were it with an escape, is of the clock. So is
    a time without a date, such as ``TIMESTAMP '10:00:00'``: it is one of the day that it is.
    """
    return tuple(
        f"{kind.group().strip('`').upper()} {value.group()}"
        for kind, value in pairwise(tokens_of(text))
        if kind.lastgroup in ("word", "quoted")
        and kind.group().strip("`").upper() in _MOMENTS
        and value.lastgroup in ("string", "raw")
        and not _FIXED.match(value.group())
    )


def parse_statement(text: str) -> Statement:
    """The statement on materialized views that a text is, or Spark's."""
    reader = _Reader(text)
    for words, parse in (
        (("CREATE", "OR", "REPLACE", "MATERIALIZED", "VIEW"), _create_or_replace),
        (("CREATE", "MATERIALIZED", "VIEW"), _create),
        (("DROP", "MATERIALIZED", "VIEW"), _drop),
        (("REFRESH", "MATERIALIZED", "VIEW"), _refresh),
        (("ALTER", "MATERIALIZED", "VIEW"), _alter),
        (("EXPLAIN", "MATERIALIZED", "VIEW"), _explain),
        (("SHOW", "MATERIALIZED", "VIEWS"), _show),
    ):
        if reader.starts(*words):
            return parse(reader)
    return SparkStatement(text)


def _create_or_replace(reader: _Reader) -> CreateView:
    return _create(reader, or_replace=True)


def _create(reader: _Reader, *, or_replace: bool = False) -> CreateView:
    if_not_exists = reader.starts("IF", "NOT", "EXISTS")
    name = reader.name()
    columns = reader.columns()
    comment, policy, technique = None, "AUTO", "auto"
    while not reader.starts("AS"):
        if reader.starts("COMMENT"):
            comment = reader.string()
        elif reader.starts("POLICY"):
            policy = reader.policy()
        elif reader.starts("OPTIONS"):
            technique = reader.technique()
        else:
            raise reader.wrong("COMMENT, POLICY, OPTIONS or AS", reader.peek())
    query = with_columns(name, columns, reader.rest())
    return CreateView(name, query, policy, comment, or_replace, if_not_exists, technique)


def with_columns(name: str, columns: tuple[str, ...], query: str) -> str:
    """The query with its columns named; on lines of its own, for it may end with a comment."""
    if not columns:
        return query
    named = ", ".join(quoted(column) for column in columns)
    return f"SELECT * FROM (\n{query}\n) AS {quoted(name)}({named})"  # noqa: S608 - the user's own


def _drop(reader: _Reader) -> DropView:
    if_exists = reader.starts("IF", "EXISTS")
    name = reader.name()
    reader.end()
    return DropView(name, if_exists)


def _refresh(reader: _Reader) -> RefreshViews:
    names: list[str] = []
    if not reader.starts("ALL"):
        names.append(reader.name())
        while reader.comma():
            names.append(reader.name())
    full = reader.starts("FULL")
    reader.end()
    return RefreshViews(tuple(names), full)


def _alter(reader: _Reader) -> AlterPolicy | AlterTechnique:
    name = reader.name()
    reader.starts("SET")
    if reader.starts("OPTIONS"):
        technique = reader.technique()
        reader.end()
        return AlterTechnique(name, technique)
    if not reader.starts("POLICY"):
        raise reader.wrong("POLICY or OPTIONS", reader.peek())
    policy = reader.policy()
    reader.end()
    return AlterPolicy(name, policy)


def _explain(reader: _Reader) -> ExplainView:
    name = reader.name()
    reader.end()
    return ExplainView(name)


def _show(reader: _Reader) -> ShowViews:
    reader.end()
    return ShowViews()
