"""For every kind of subquery a view whose edge one of the batches hits."""

from __future__ import annotations

from tests.integration.edges import (
    Case,
    changes,
    comes_back,
    empties_and_returns,
    ever,
    padded_and_matched,
    turns_empty,
)

SUBQUERIES = {
    "semi_join": Case(
        "SELECT s.id FROM sales s LEFT SEMI JOIN other o ON s.k = o.k AND o.w > 5", turns_empty
    ),
    "anti_join": Case(
        "SELECT s.id FROM sales s LEFT ANTI JOIN other o ON s.k < o.k", empties_and_returns(0, 2)
    ),
    "exists": Case(
        "SELECT id FROM sales s WHERE EXISTS (SELECT 1 FROM other o WHERE o.k = s.k AND o.w > s.v)",
        turns_empty,
    ),
    "exists_in_or": Case(
        "SELECT id FROM sales s WHERE v > 6 OR EXISTS (SELECT 1 FROM other o WHERE o.k = s.k)",
        comes_back(0),
    ),
    "not_exists": Case(
        "SELECT id, g FROM sales s WHERE NOT EXISTS (SELECT 1 FROM other o WHERE o.k = s.k)",
        comes_back(0),
    ),
    "in": Case("SELECT id FROM sales WHERE k IN (SELECT k FROM other)", turns_empty),
    "not_in": Case(  # nothing at all while a null is among them, nulls too while there are none
        "SELECT id FROM sales WHERE k NOT IN (SELECT k FROM other)",
        lambda steps: (9,) in steps[1] and not steps[2] and (10,) in steps[4],
    ),
    "in_below_not": Case(  # unknown where k is null, and then so is NOT
        "SELECT id FROM sales WHERE NOT (k IN (SELECT k FROM other) AND v > 2)",
        lambda steps: (6,) not in steps[0] and (9,) in steps[1] and changes(steps),
    ),
    "not_in_below_or_below_not": Case(
        "SELECT id FROM sales WHERE NOT (k NOT IN (SELECT k FROM other) OR v > 6)", turns_empty
    ),
    "in_below_two_nots": Case(
        "SELECT id FROM sales WHERE NOT (NOT (v < 6 AND k IN (SELECT k FROM other)))", turns_empty
    ),
    "filter_by_a_shown_not_in": Case(
        "SELECT id FROM (SELECT id, k NOT IN (SELECT k FROM other) AS e FROM sales) WHERE NOT e",
        turns_empty,
    ),
    "filter_of_groups_by_a_shown_in": Case(  # the group of nulls is in neither
        "SELECT k FROM (SELECT k, k IN (SELECT k FROM other) AS e FROM sales GROUP BY k) WHERE NOT e",
        lambda steps: (9,) in steps[1] and all((None,) not in bag for bag in steps[:4]),
    ),
    "not_in_equal_to_false": Case(
        "SELECT id FROM sales WHERE (k NOT IN (SELECT k FROM other)) = false", turns_empty
    ),
    "not_in_in_having": Case(
        "SELECT g, count(*) AS n FROM sales GROUP BY g"
        " HAVING NOT (max(k) IN (SELECT k FROM other) AND count(*) > 0)",
        comes_back(0),
    ),
    "not_in_in_on": Case(  # no row is met once a null is among them
        "SELECT s.id, o.o FROM sales s LEFT JOIN other o ON s.k = o.k"
        " AND o.k NOT IN (SELECT t.k FROM sales t WHERE t.id > 8)",
        padded_and_matched(1),
    ),
    "exists_of_a_limit": Case(
        "SELECT id FROM sales s WHERE EXISTS (SELECT 1 FROM other o WHERE o.k = s.k LIMIT 1)",
        turns_empty,
    ),
    "limit_alone_in_lateral": Case(
        "SELECT s.id, l.k FROM sales s, LATERAL (SELECT k FROM other o WHERE o.k = s.k LIMIT 1) l",
        turns_empty,
    ),
    "scalar_subquery": Case(
        "SELECT id, (SELECT max(w) FROM other) AS m FROM sales", padded_and_matched(1)
    ),
    "correlated_scalar_subquery": Case(
        "SELECT id, (SELECT sum(o.w) FROM other o WHERE o.k = s.k) AS m,"
        " (SELECT count(*) FROM other o WHERE o.k = s.k) AS n FROM sales s",
        ever(lambda bag: {row[2] for row in bag} >= {0, 2}),
    ),
    "scalar_subquery_in_where": Case(  # sale 1 costs what it cost, and the average rises
        "SELECT id FROM sales WHERE v > (SELECT avg(v) FROM sales) OR v IS NULL",
        lambda steps: (1,) in steps[0] and (1,) not in steps[1],
    ),
    "single_value_by_any_condition": Case(
        "SELECT id, (SELECT w FROM other o WHERE o.o + 0 = x.id AND (o.w > x.v OR o.w IS NULL)) AS w,"
        " (SELECT tags FROM sales t WHERE t.id + 1 = x.id) AS tags,"
        " (SELECT struct(t.k AS geo) FROM sales t WHERE t.id = x.id + 1).geo AS next FROM sales x",
        padded_and_matched(1),
    ),
    "single_value_in_where": Case(
        "SELECT id FROM sales s WHERE k = (SELECT o.k FROM other o WHERE o.o = s.id AND s.v < 9)",
        changes,
    ),
    "nested_exists": Case(
        "SELECT id FROM sales s WHERE EXISTS (SELECT 1 FROM other o WHERE o.k = s.k AND NOT EXISTS"
        " (SELECT 1 FROM sales t WHERE t.k = o.w))",
        turns_empty,
    ),
    "nested_not_in": Case(
        "SELECT id FROM sales s WHERE k IN (SELECT o.k FROM other o WHERE o.w NOT IN"
        " (SELECT t.k FROM sales t WHERE t.k = o.k))",
        turns_empty,
    ),
    "first_of_a_correlated_order": Case(
        "SELECT id, (SELECT w FROM other o WHERE o.k = s.k ORDER BY w DESC NULLS LAST, o LIMIT 1) AS m"
        " FROM sales s",
        padded_and_matched(1),
    ),
    "lateral_window": Case(
        "SELECT s.id, l.r FROM sales s,"
        " LATERAL (SELECT o, rank() OVER (ORDER BY w) AS r FROM other o WHERE o.k = s.k) l",
        turns_empty,
    ),
    "lateral": Case(
        "SELECT s.id, t.w FROM sales s LEFT JOIN LATERAL"
        " (SELECT w FROM other o WHERE o.k = s.k ORDER BY w DESC NULLS LAST LIMIT 1) t",
        padded_and_matched(1),
    ),
}
