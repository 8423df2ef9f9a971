from __future__ import annotations

from tests.tpc.dialect import for_spark, with_total_order


def test_names_in_double_quotes_become_backticks_and_strings_stay() -> None:
    text = 'SELECT sum(a) AS "total cost", -- of all\n  \'say "no"\' AS b FROM t;'
    assert for_spark(text) == "SELECT sum(a) AS `total cost`, 'say \"no\"' AS b FROM t"


def test_every_column_breaks_ties_under_a_limit() -> None:
    ordered = with_total_order("SELECT a, b FROM t ORDER BY b LIMIT 10", 2)
    assert ordered == "SELECT a, b FROM t ORDER BY b, 1, 2 LIMIT 10"


def test_an_order_inside_a_subquery_is_not_the_query_s() -> None:
    text = "SELECT a FROM (SELECT a FROM t ORDER BY a) LIMIT 10"
    ordered = with_total_order(text, 1)
    assert ordered == "SELECT a FROM (SELECT a FROM t ORDER BY a) ORDER BY 1 LIMIT 10"


def test_a_query_without_limit_stays() -> None:
    assert with_total_order("SELECT a FROM t", 1) == "SELECT a FROM t"


def test_distances_of_doubles() -> None:
    """NaN is itself and nothing else; so are the infinities. Only a deviation may be off by anything."""
    from collections import Counter

    from tests.tpc.kept import TOLERANCE, equal

    def are(one: float, other: float, tolerance: float = TOLERANCE) -> bool:
        return equal(Counter([("a", one)]), Counter([("a", other)]), tolerance)

    assert are(1.0, 1.0 + 1e-14)
    assert not are(1.0, 1.0 + 1e-14, 0.0)
    assert are(1.0, 1.0, 0.0)
    assert not are(1.0, 1.0 + 1e-9)
    for tolerance in (TOLERANCE, 0.0):
        assert are(float("nan"), float("nan"), tolerance)
        assert not are(float("nan"), 5.0, tolerance)
        assert not are(5.0, float("nan"), tolerance)
        assert are(float("inf"), float("inf"), tolerance)
        assert not are(float("inf"), float("-inf"), tolerance)
        assert not are(0.0, 1e-300, tolerance)
