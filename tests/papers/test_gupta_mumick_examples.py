"""[GM06] Examples 1 and 2 with their numbers: tuple accesses, counted while the oracle runs the plans.

Each view is refreshed three ways. *Change tables as published*: small tables are read as a whole, and
each row of □V looks for its match and sets a row. *Insertions and deletions*: SISales by Appendix A,
SSFullInfo by the rules for outer joins. *freshview*: as it runs. sales has ``PER_PAIR`` rows for each
touched pair of store and item, where the paper has 1,000; the golden files show the arithmetic.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

from freshview.algebra.evaluate import Database, Table, evaluate
from freshview.algebra.relations import Scan
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import numbering, walk
from freshview.delta.group_states import stored_states
from freshview.delta.states import post
from freshview.delta.transaction import Transaction, minimal
from freshview.planner.strategy import Strategy, Technique
from freshview.planner.techniques import strategy
from tests.goldens import check_golden
from tests.papers.accesses import Accesses, accesses
from tests.papers.stores import (
    CATEGORIES,
    INSERTED,
    ITEMS,
    PAIRS,
    STATES,
    STORES,
    TOUCHED_CITIES,
    WITHOUT_SALES,
    Views,
    insertions,
    state,
)
from tests.properties.test_planned import named

PER_PAIR = 5
PUBLISHED_PER_PAIR = 1_000
SMALL = frozenset({"stores", "items", "infostates"})


@cache
def database() -> dict[str, Table]:
    return state(PER_PAIR)


def sales_rows() -> int:
    return database()["sales"].rows.total()


@cache
def kept(view: str, technique: Technique | None = None) -> Strategy:
    made = strategy("v", named(getattr(Views(Numbering(0)), view)()), technique)
    assert made.reason is None, made.reason
    return made


def by_appendix_a(view: str) -> Strategy:
    """The view as it is kept where no change table passes its aggregate: Δ and ∇ of SISales."""
    made = kept(view)
    assert made.composition is not None
    assert made.aggregate is not None
    assert made.layout is not None
    states = stored_states(made.aggregate, made.layout.states, numbering(made.relation, made.rows))
    return replace(made, composition=None, rows=made.layout.rows(states))


@cache
def published(view: str) -> Accesses:
    return accesses(kept(view), database(), insertions(), SMALL)


@cache
def appendix_a(view: str) -> Accesses:
    return accesses(by_appendix_a(view), database(), insertions(), SMALL)


@cache
def ours(view: str) -> Accesses:
    return accesses(kept(view), database(), insertions())


class TestExample1:
    """10,000 + 11,000 + 2,020 = 23,020 with change tables, 600,000 more with Appendix A."""

    def test_change_tables_as_published(self) -> None:
        cities, categories = published("city_sales"), published("category_sales")
        for view in (cities, categories):
            assert view.deltas == INSERTED, "read once for SISales"
            assert view.tables["sales"] == 0, "SISales is virtual, and sales is not queried"
        assert (cities.tables["stores"], cities.asked_and_set) == (STORES, 2 * TOUCHED_CITIES)
        assert (categories.tables["items"], categories.asked_and_set) == (ITEMS, 2 * CATEGORIES)
        terms = _terms(cities, categories)
        assert terms == (10_000, 0, 11_000, 2_020)
        assert sum(terms) == 23_020

    def test_appendix_a(self) -> None:
        cities, categories = appendix_a("city_sales"), appendix_a("category_sales")
        terms = _terms(cities, categories)
        assert terms == (10_000, PAIRS * PER_PAIR, 11_000, 2_020)
        assert sum(_scaled(terms, PUBLISHED_PER_PAIR // PER_PAIR)) == 623_020

    def test_freshview_reads_less(self) -> None:
        """Of stores and items only the rows with a key of the change table."""
        cities, categories = ours("city_sales"), ours("category_sales")
        assert cities.view == 2 * TOUCHED_CITIES
        assert categories.view == 2 * CATEGORIES
        assert sum(_terms(cities, categories)) <= 23_020

    def test_table_1(self) -> None:
        rows = [
            _line("", "Appendix A", "change tables", "freshview"),
            _line(
                "SISales",
                f"10,000 + 600 × {PER_PAIR}",
                _number(published("city_sales").deltas),
                _number(ours("city_sales").deltas),
            ),
        ]
        for name, table in (("city_sales", "stores"), ("category_sales", "items")):
            rows.append(
                _line(
                    name,
                    _of_view(appendix_a(name), table),
                    _of_view(published(name), table),
                    _sum(ours(name).tables[table], ours(name).view),
                )
            )
        ways = (appendix_a, published, ours)
        terms = [_terms(way("city_sales"), way("category_sales")) for way in ways]
        for per_pair in (PER_PAIR, PUBLISHED_PER_PAIR):
            totals = (_scaled(t, per_pair // PER_PAIR) for t in terms)
            title = f"total, {per_pair:,} sales of each pair"
            rows.append(_line(title, *(_sum(*total) for total in totals)))
        check_golden("papers/gupta_mumick_table_1", "\n".join(rows))


class TestExample2:
    """10,000 + 1,000 + 100 + 20,000 = 31,100 with change tables; |SSInfo| more by insertions and deletions."""

    def test_change_tables_as_published(self) -> None:
        found = published("ss_full_info")
        assert found.deltas == INSERTED
        assert found.tables["sales"] == 0
        assert (found.tables["stores"], found.tables["infostates"]) == (STORES, STATES)
        assert found.asked_and_set == 2 * INSERTED
        assert _published_total(found) == 31_100

    def test_by_insertions_and_deletions(self) -> None:
        """11,000 for SSInfo; then |SSInfo| + 100 + 20,000, and SSInfo has a row for each sale and 10."""
        first, second = by_deltas()
        assert first.deltas + first.tables.total() == 11_000
        assert second.tables["ssinfo"] == sales_rows() + WITHOUT_SALES
        read = second.tables.total() + second.asked_and_set
        assert read == sales_rows() + 20_110
        assert first.deltas + first.tables.total() + read == sales_rows() + 31_110

    def test_freshview_reads_less(self) -> None:
        """Of the view only the padded rows of stores that had no sales, and nothing of sales."""
        found = ours("ss_full_info")
        assert found.tables["sales"] == 0
        assert found.total <= 31_100

    def test_freshview_reads_the_padded_rows_that_it_replaces(self) -> None:
        """Every store that had no sale and has one now: read once, and deleted."""
        emptied = {**database(), "sales": replace(database()["sales"], rows=Counter())}
        met = {row[1] for row in insertions().deltas["sales"].inserted}
        found = accesses(kept("ss_full_info"), emptied, insertions())
        assert found.view == len(met) + (INSERTED + len(met)), "read, then set and deleted"

    def test_table_2(self) -> None:
        first, second = by_deltas()
        published_, here = published("ss_full_info"), ours("ss_full_info")
        of_ssinfo = first.deltas + first.tables["stores"]
        sales = sales_rows()
        rows = [
            _line("", "Δ and ∇", "change tables", "freshview"),
            _line(
                "SSInfo",
                _sum(first.deltas, first.tables["stores"]),
                _sum(published_.deltas, published_.tables["stores"]),
                _sum(here.deltas, here.tables["stores"]),
            ),
            _line(
                "SSFullInfo",
                _sum(second.tables["ssinfo"], second.tables["infostates"], second.asked_and_set),
                _sum(published_.tables["infostates"], published_.asked_and_set),
                _sum(here.tables["infostates"], here.view),
            ),
            _line(
                f"total, |sales| = {sales:,}",
                f"|sales| + {of_ssinfo + second.tables.total() + second.asked_and_set - sales:,}",
                _number(_published_total(published_)),
                _number(here.total),
            ),
        ]
        check_golden("papers/gupta_mumick_table_2", "\n".join(rows))


@cache
def by_deltas() -> tuple[Accesses, Accesses]:
    """[GK98]: Δ and ∇ of SSInfo from Δsales and stores, then of SSFullInfo, for which SSInfo is read.

    SSInfo is a table here, with the changes that the first step gives; the step itself reads what
    its change table reads.
    """
    first = accesses(kept("ss_info"), database(), insertions(), SMALL)
    view = post(Views(Numbering(0)).ss_info())
    before, after = (
        evaluate(view, Database(state)) for state in (database(), insertions().apply(database()))
    )
    made = kept("ss_full_info_over_a_table", Technique.DELTA)
    leaf = next(node for node in walk(made.relation) if isinstance(node, Scan))
    columns = tuple(a.name for a in leaf.attributes)
    state = {**database(), "ssinfo": Table(columns, before)}
    transaction = Transaction({"ssinfo": minimal(before, after)})
    return first, accesses(made, state, transaction, SMALL | {"ssinfo"})


Terms = tuple[int, int, int, int]


def _terms(cities: Accesses, categories: Accesses) -> Terms:
    """Δsales and sales, which both views read alike, once; stores and items; the views.

    A refresh of both reads changes once: tests/integration/test_rows_set.py.
    """
    assert cities.deltas == categories.deltas
    assert cities.tables["sales"] == categories.tables["sales"]
    small = cities.tables["stores"] + categories.tables["items"]
    views = cities.asked_and_set + categories.asked_and_set
    return cities.deltas, cities.tables["sales"], small, views


def _scaled(terms: Terms, scale: int) -> Terms:
    return terms[0], terms[1] * scale, terms[2], terms[3]


def _published_total(found: Accesses) -> int:
    return found.deltas + found.tables.total() + found.asked_and_set


def _of_view(found: Accesses, table: str) -> str:
    return _sum(found.tables[table], found.asked_and_set)


def _sum(*terms: int) -> str:
    shown = [term for term in terms if term]
    return f"{' + '.join(map(_number, shown))} = {sum(shown):,}"


def _number(value: int) -> str:
    return f"{value:,}"


def _line(title: str, *columns: str) -> str:
    return (f"{title:<34}" + "".join(f"{column:<46}" for column in columns)).rstrip()
