"""A query inside of a query becomes a view of its own, which the other one reads."""

from __future__ import annotations

from collections.abc import Iterator

from freshview.advice.base_reads import base_reads
from freshview.advice.named_columns import storable_names
from freshview.advice.suggestion import Case, Definition, Draft, Planning
from freshview.algebra.schema import quoted
from freshview.algebra.traverse import scans
from freshview.counting.canonical import is_spju
from freshview.frontend.query_text import Piece, Place, QueryText
from freshview.frontend.statements import with_columns, without_end
from freshview.planner.strategy import Strategy

RULE = "views on views"
VIEWS_MAX = 6


def split_views(case: Case, planning: Planning) -> Iterator[Draft]:
    """``… (SELECT k, sum(v) AS s FROM t GROUP BY k) …`` becomes ``… name_1 …``, and name_1 a view.

    For a CTE, a subquery in FROM or in an expression, and what is below the ORDER BY and LIMIT that
    end the query. One piece after the other, inner ones first, as long as the refresh of all views
    together asks the base tables for rows less often than before: groups that are stored are not
    computed again from their rows. It also cures a view of which a part has no rule inside of
    another, but has one as a view.
    """
    if case.strategy is None:
        return
    whole = Definition(case.definition.name, without_end(case.definition.query).strip())
    parts: tuple[Definition, ...] = ()
    places: list[str] = []
    before = reads = base_reads([case.strategy])
    while len(parts) < VIEWS_MAX:
        found = _one_more(parts, whole, reads, planning)
        if found is None:
            break
        place, parts, whole, reads = found
        places.append(place)
    if parts:
        yield Draft(RULE, _why(places, before, reads), (*parts, whole))


Split = tuple[str, tuple[Definition, ...], Definition, int]


def _one_more(
    parts: tuple[Definition, ...], whole: Definition, reads: int | None, planning: Planning
) -> Split | None:
    """The first piece that spares reads when it is a view, with the views that there are then."""
    written = planning.text(whole.query)
    name = planning.free_name(whole.name, [*(part.name for part in parts), *written.ctes])
    for piece in written.pieces:
        rest = _with_view(written, piece, name)
        for query in _standing_alone(written, piece, name, planning):
            new = (*parts, Definition(name, query))
            made = planning.planned((*new, Definition(whole.name, rest)))
            left = None if made is None else base_reads(made)
            if made is None or left is None or (reads is not None and left >= reads):
                continue
            if not _is_copy(made[len(parts)]):
                return _described(piece), new, Definition(whole.name, rest), left
    return None


def _with_view(written: QueryText, piece: Piece, name: str) -> str:
    """The query with a view in the place of a piece; brackets around a piece in FROM go with it."""
    if piece.place is Place.FROM:
        return written.replaced(piece.start - 1, piece.stop + 1, quoted(name))
    read = f"SELECT * FROM {quoted(name)}"  # noqa: S608 - a name in backticks
    return written.replaced(piece.start, piece.stop, read + "\n" * (piece.place is Place.LIMIT))


def _standing_alone(
    written: QueryText, piece: Piece, name: str, planning: Planning
) -> Iterator[str]:
    """A piece as a query of its own.

    In an expression nobody reads the names of its columns, so they may be others.
    """
    text = written.alone(piece)
    yield text
    if piece.place is Place.EXPRESSION:
        columns = planning.shown(text)
        names = storable_names(columns)
        if columns and names != tuple(column.name for column in columns):
            yield with_columns(name, names, text)


def _is_copy(view: Strategy) -> bool:
    """Whether a view would be some rows of one table, kept twice."""
    return is_spju(view.relation) and len(scans(view.relation)) == 1


def _described(piece: Piece) -> str:
    return f"{piece.place.value} {piece.name}".rstrip()


def _why(places: list[str], before: int | None, reads: int | None) -> str:
    kept = ", ".join(dict.fromkeys(places))
    if before is None:
        return f"{kept} becomes a view of its own, and then every part has a rule"
    return (
        f"{kept} becomes a view of its own: a refresh looks up rows of base tables in {reads} places,"
        f" not in {before}, because what is stored need not be computed from them again"
    )
