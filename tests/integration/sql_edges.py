"""For every operator of SQL a view whose edge one of the batches hits."""

from __future__ import annotations

from collections import Counter

from tests.integration.edges import (
    Case,
    changes,
    column,
    comes_back,
    duplicates,
    empties_and_returns,
    ever,
    moves,
    padded_and_matched,
    padded_on_both_sides,
    pairs,
    some_null,
    tied,
    turns_empty,
)
from tests.integration.subquery_edges import SUBQUERIES

SETS = {
    "distinct": Case("SELECT DISTINCT g, k FROM sales", empties_and_returns(0, "b")),
    "union": Case("SELECT k FROM sales UNION SELECT k FROM other", empties_and_returns(0, None)),
    "union_all": Case("SELECT k FROM sales UNION ALL SELECT k FROM other", duplicates),
    "intersect": Case("SELECT k FROM sales INTERSECT SELECT k FROM other", turns_empty),
    "intersect_all": Case("SELECT k FROM sales INTERSECT ALL SELECT k FROM other", turns_empty),
    "except": Case("SELECT k FROM sales EXCEPT SELECT k FROM other", empties_and_returns(0, None)),
    "except_all": Case("SELECT k FROM sales EXCEPT ALL SELECT k FROM other", duplicates),
}

OUTER_JOINS = {
    "left_join": Case(
        "SELECT s.id, o.w FROM sales s LEFT JOIN other o ON s.k = o.k", padded_and_matched(1)
    ),
    "left_join_beside_nested_columns": Case(
        "SELECT s.id, s.tags, s.s, o.w FROM sales s LEFT JOIN other o ON s.k = o.k",
        padded_and_matched(3),
    ),
    "right_join": Case(
        "SELECT s.id, o.o FROM sales s RIGHT JOIN other o ON s.k = o.k AND s.v > 2",
        padded_and_matched(0, key=1),
    ),
    "full_join_on_any_condition": Case(
        "SELECT s.id, o.o FROM sales s FULL JOIN other o ON s.k < o.k OR s.v = o.w",
        padded_on_both_sides(0, 1),
    ),
    "outer_join_below_aggregate": Case(
        "SELECT s.g, count(*) AS n, count(o.w) AS m FROM sales s LEFT JOIN other o ON s.k = o.k GROUP BY s.g",
        empties_and_returns(0, "b"),
    ),
    "outer_join_above_aggregates": Case(
        "SELECT s.g, s.n, o.m FROM (SELECT g, k, count(*) AS n FROM sales GROUP BY g, k) s"
        " FULL JOIN (SELECT k, max(w) AS m FROM other GROUP BY k) o ON s.k = o.k",
        padded_on_both_sides(1, 2),
    ),
}

AGGREGATES = {
    "having": Case(
        "SELECT g, count(*) AS n FROM sales GROUP BY g HAVING count(*) > 1",  # b comes back too small
        lambda steps: ("b", 3) in steps[1] and "b" not in column(steps[3], 0),
    ),
    "count_distinct": Case(
        "SELECT g, count(DISTINCT v) AS n FROM sales GROUP BY g", empties_and_returns(0, "b")
    ),
    "sum_distinct": Case(
        "SELECT g, sum(DISTINCT v) AS n FROM sales GROUP BY g", empties_and_returns(0, "b")
    ),
    "several_distinct_sets": Case(
        "SELECT g, count(DISTINCT k) AS a, sum(DISTINCT v) AS b, count(DISTINCT k, v) AS c, count(*) AS n"
        " FROM sales GROUP BY g",
        ever(lambda bag: any(row[1] != row[3] for row in bag)),
    ),
    "count_distinct_without_groups": Case(
        "SELECT count(DISTINCT k) AS n FROM sales", lambda steps: steps[5] == Counter([(0,)])
    ),
    "filter": Case(
        "SELECT g, sum(v) FILTER (WHERE k > 1) AS x, count(*) FILTER (WHERE b) AS n FROM sales GROUP BY g",
        some_null(1),
    ),
    "sum_of_nulls": Case("SELECT g, sum(v) AS x FROM sales GROUP BY g", some_null(1)),
    "min_max": Case(
        "SELECT g, min(v) AS l, max(v) AS h FROM sales GROUP BY g", empties_and_returns(0, "b")
    ),
    "avg": Case("SELECT g, avg(v) AS x, avg(k) AS y FROM sales GROUP BY g", some_null(1)),
    "avg_below_a_comparison": Case(  # of a group that is new there is no average before
        "SELECT s.id, q.x FROM sales s JOIN (SELECT k, avg(v) AS x FROM"
        " (SELECT g, k, sum(v) AS v FROM sales GROUP BY g, k) GROUP BY k) q"
        " ON s.k = q.k AND s.v <= 0.99 * q.x ORDER BY s.id LIMIT 50",
        comes_back(0),
    ),
    "bool_and_or": Case(
        "SELECT g, bool_and(b) AS every, bool_or(b) AS any FROM sales GROUP BY g",
        ever(lambda bag: any(row[1] is False and row[2] for row in bag)),
    ),
    "stddev_and_var": Case(  # of one value, of none, and of values that are all the same
        "SELECT g, round(stddev(k), 6) AS s, round(var_pop(k), 6) AS p, round(covar_pop(k, v), 6) AS c"
        " FROM sales GROUP BY g",
        empties_and_returns(0, "b"),
    ),
    "corr": Case(
        "SELECT round(corr(id, k + id), 6) AS c FROM sales",
        lambda steps: steps[5] == Counter([(None,)]) and changes(steps),
    ),
    "median_percentile_mode": Case(  # the mode of values that are there as often is the least
        "SELECT g, median(v) AS m, percentile(k, 0.25) AS p, mode() WITHIN GROUP (ORDER BY k) AS o,"
        " percentile_cont(0.5) WITHIN GROUP (ORDER BY k DESC) AS c FROM sales GROUP BY g",
        some_null(1),
    ),
    "approx_percentile": Case(
        "SELECT g, approx_percentile(k, array(0.1, 0.9)) AS p FROM sales GROUP BY g", some_null(1)
    ),
    "first_and_last_by_order": Case(
        "SELECT g, max_by(id, struct(v, id)) AS first, min_by(id, struct(v, id)) AS last"
        " FROM sales GROUP BY g",
        empties_and_returns(0, "b"),
    ),
    "collect_set": Case(
        "SELECT g, array_sort(collect_set(k)) AS ks FROM sales GROUP BY g",
        lambda steps: ("a", (1, 2)) in steps[0] and (None, ()) in steps[0],
    ),
    "collect_list": Case(  # duplicates stay, nulls do not come in
        "SELECT g, sort_array(collect_list(k)) AS ks FROM sales GROUP BY g",
        lambda steps: ("a", (1, 2, 2)) in steps[0] and (None, ()) in steps[1],
    ),
    "listagg": Case(
        "SELECT g, listagg(id, ',') WITHIN GROUP (ORDER BY id) AS ids FROM sales GROUP BY g",
        empties_and_returns(0, "b"),
    ),
    "approx_count_distinct": Case(
        "SELECT g, approx_count_distinct(k) AS n FROM sales GROUP BY g", empties_and_returns(0, "b")
    ),
    "aggregate_of_nothing": Case(
        "SELECT count(*) AS n, sum(v) AS x, max(d) AS d, avg(v) AS a FROM sales",
        lambda steps: steps[5] == Counter([(0, None, None, None)]),
    ),
    "grouping_sets": Case(
        "SELECT g, k, grouping_id() AS i, sum(v) AS x, count(*) AS n FROM sales"
        " GROUP BY GROUPING SETS ((g, k), (k), ())",
        ever(lambda bag: (None, None, 3) in {row[:3] for row in bag}),
    ),
    "rollup": Case(  # the null of a grouping beside the null of the data
        "SELECT g, k, max(v) AS x FROM sales GROUP BY ROLLUP (g, k)", duplicates
    ),
    "cube_of_distinct": Case(
        "SELECT g, b, count(DISTINCT k) AS n FROM sales GROUP BY CUBE (g, b)", duplicates
    ),
    "pivot": Case(
        "SELECT * FROM (SELECT g, k, v FROM sales)"
        " PIVOT (sum(v) AS total, count(v) AS n FOR g IN ('a' AS a, 'b' AS b))",
        some_null(1),
    ),
    "unpivot": Case(
        "SELECT * FROM (SELECT id, k, int(v) AS v FROM sales) UNPIVOT (x FOR name IN (k, v))",
        lambda steps: (3, "v") in pairs(steps[0]) and (3, "v") not in pairs(steps[3]),
    ),
}

WINDOWS = {
    "rank": Case(
        "SELECT id, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r,"
        " dense_rank() OVER (ORDER BY v DESC) AS d FROM sales WHERE g = 'a'",
        tied(1),
    ),
    "row_number": Case(
        "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v, id) AS r FROM sales", moves(0, 1)
    ),
    "ntile_and_distributions": Case(
        "SELECT id, ntile(2) OVER (PARTITION BY g ORDER BY id) AS n, percent_rank() OVER (ORDER BY k) AS p,"
        " cume_dist() OVER (ORDER BY k) AS c FROM sales",
        moves(0, 2),
    ),
    "lag_lead": Case(
        "SELECT id, lag(v) OVER (PARTITION BY g ORDER BY id) AS a,"
        " lead(v, 2, -1) OVER (PARTITION BY g ORDER BY id DESC) AS b FROM sales",
        some_null(1),
    ),
    "first_last_nth_value": Case(
        "SELECT id, first_value(v) OVER w AS a, last_value(v) IGNORE NULLS OVER w AS b,"
        " nth_value(v, 2) OVER w AS c FROM sales WINDOW w AS (PARTITION BY g ORDER BY id)",
        some_null(3),
    ),
    "running_sum_by_range": Case(  # rows that tie share a value
        "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY k) AS x FROM sales", tied(1)
    ),
    "framed_by_rows": Case(  # at both ends of a partition the frame is cut
        "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x,"
        " count(*) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS n FROM sales",
        ever(lambda bag: len(column(bag, 2)) > 1),
    ),
    "framed_by_interval": Case(
        "SELECT id, count(*) OVER (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND"
        " CURRENT ROW) AS n FROM sales",
        ever(lambda bag: len(column(bag, 1)) > 1),
    ),
    "without_partition": Case(
        "SELECT id, count(*) OVER () AS n, sum(v) OVER (ORDER BY id) AS x FROM sales", turns_empty
    ),
    "below_join": Case(
        "SELECT q.id, q.r, o.w FROM (SELECT id, k, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM sales) q"
        " JOIN other o ON q.k = o.k",
        turns_empty,
    ),
    "below_aggregate": Case(
        "SELECT r, count(*) AS n, sum(v) AS x FROM"
        " (SELECT v, dense_rank() OVER (PARTITION BY g ORDER BY v) AS r FROM sales) GROUP BY r",
        ever(lambda bag: max(column(bag, 1), default=0) > 1),
    ),
    "above_aggregate": Case(
        "SELECT g, k, sum(v) AS x, rank() OVER (PARTITION BY g ORDER BY sum(v) DESC NULLS LAST) AS r"
        " FROM sales GROUP BY g, k",
        ever(lambda bag: len({(row[0], row[3]) for row in bag}) < bag.total()),
    ),
    "first_of_each_group": Case(  # what QUALIFY says where a dialect has it
        "SELECT * FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM sales)"
        " WHERE r = 1",
        empties_and_returns(1, "b"),
    ),
    "window_collect_list": Case(
        "SELECT id, collect_list(k) OVER (PARTITION BY g ORDER BY id) AS ks FROM sales", moves(0, 1)
    ),
}

LIMITS = {
    "top_rows": Case(  # the first one goes, and later all of them
        "SELECT id, v FROM sales ORDER BY v DESC, id LIMIT 3",
        lambda steps: steps[1] - steps[2] and not steps[5] and bool(steps[6]),
    ),
    "top_rows_with_ties": Case(
        "SELECT v FROM sales ORDER BY v DESC NULLS LAST LIMIT 2", duplicates
    ),
    "top_rows_after_offset": Case(
        "SELECT id FROM sales ORDER BY id LIMIT 2 OFFSET 2", comes_back(0)
    ),
    "all_rows_but_the_first": Case(
        "SELECT id FROM sales ORDER BY id LIMIT 2147483646 OFFSET 1",
        lambda steps: (2,) in steps[1] and (2,) not in steps[2],
    ),
    "more_rows_than_there_are": Case(
        "SELECT id FROM sales ORDER BY id LIMIT 2147483647", turns_empty
    ),
    "offset_alone": Case("SELECT id FROM sales ORDER BY id DESC OFFSET 3", comes_back(0)),
    "top_groups": Case(
        "SELECT g, sum(v) AS x FROM sales GROUP BY g ORDER BY x DESC NULLS LAST, g LIMIT 2",
        comes_back(0),
    ),
    "ordered_by_what_is_not_shown": Case(
        "SELECT g FROM sales ORDER BY id DESC LIMIT 3", duplicates
    ),
    "limit_below_aggregate": Case(
        "SELECT g, count(*) AS n FROM (SELECT g FROM sales ORDER BY v DESC, id LIMIT 3) GROUP BY g",
        comes_back(0),
    ),
    "limit_in_subquery": Case(
        "SELECT id FROM sales WHERE k IN (SELECT k FROM other ORDER BY w DESC, o LIMIT 1)",
        turns_empty,
    ),
}

GENERATORS = {
    "explode": Case(
        "SELECT id, tag FROM sales LATERAL VIEW explode(tags) t AS tag", empties_and_returns(0, 2)
    ),
    "explode_outer": Case(  # an array without elements, and none at all
        "SELECT id, tag FROM sales LATERAL VIEW OUTER explode(tags) t AS tag",
        lambda steps: (2, None) in steps[1] and (2, "q") in steps[3] and (5, None) in steps[0],
    ),
    "posexplode": Case(
        "SELECT id, posexplode(tags) AS (place, tag) FROM sales", empties_and_returns(0, 2)
    ),
    "inline": Case(
        "SELECT id, inline(array(s)) AS (a, b) FROM sales",
        lambda steps: (6, None, None) in steps[0] and (6, None, None) not in steps[2],
    ),
    "stack": Case("SELECT id, stack(2, 'k', k, 'a', s.a) AS (name, x) FROM sales", some_null(2)),
    "explode_below_aggregate": Case(
        "SELECT tag, count(*) AS n FROM (SELECT explode(tags) AS tag FROM sales) GROUP BY tag",
        empties_and_returns(0, "x"),
    ),
}

RECURSIONS = {
    "recursion": Case(  # sales below a sale that is not there any more are gone with it
        "WITH RECURSIVE below AS (SELECT id, id AS top, 0 AS depth FROM sales WHERE k >= id OR k IS NULL"
        " UNION ALL SELECT s.id, b.top, b.depth + 1 FROM below b JOIN sales s ON s.k = b.id AND s.k < s.id)"
        " SELECT * FROM below",
        lambda steps: max(column(steps[1], 2)) > 1 and changes(steps),
    ),
    "recursion_below_aggregate": Case(
        "WITH RECURSIVE below(id, depth) AS (SELECT o, 0 FROM other UNION ALL SELECT s.id, b.depth + 1"
        " FROM sales s, below b WHERE s.k = b.id AND s.id > b.id)"
        " SELECT depth, count(*) AS n, max(id) AS last FROM below GROUP BY depth",
        turns_empty,
    ),
    "recursion_without_tables": Case(
        "WITH RECURSIVE days(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM days WHERE n < 3)"
        " SELECT n, count(id) AS sales FROM days LEFT JOIN sales ON id % 4 = n GROUP BY n",
        lambda steps: {0} == column(steps[5], 1),
    ),
    "recursion_read_twice": Case(
        "WITH RECURSIVE up(id, k) AS (SELECT id, k FROM sales WHERE g = 'a' UNION ALL"
        " SELECT up.id, s.k FROM up JOIN sales s ON s.id = up.k AND s.k < s.id)"
        " SELECT x.id, y.k FROM up x LEFT JOIN up y ON x.k = y.id",
        duplicates,
    ),
}

HIDDEN = {  # what would be stored with a view, and cannot be
    "having_of_an_interval": Case(
        "SELECT k FROM sales GROUP BY k HAVING max(d - DATE'2024-03-29') > INTERVAL 2 DAY",
        comes_back(0),
    ),
    "outer_join_of_a_map": Case(
        "SELECT s.id, m.m['a'] AS x FROM sales s LEFT JOIN (SELECT o, map('a', k) AS m FROM other) m"
        " ON s.id = m.o + 1",
        padded_and_matched(1),
    ),
    "outer_join_by_an_interval": Case(
        "SELECT s.id, o.w FROM sales s LEFT JOIN (SELECT w, DATE'2024-03-31' - DATE'2024-03-30' AS i FROM other"
        " WHERE k > 1) o ON s.d - DATE'2024-03-30' = o.i",
        padded_and_matched(1),
    ),
    "outer_join_by_a_collated_group": Case(
        "SELECT s.id, q.n FROM sales s LEFT JOIN (SELECT g COLLATE UTF8_LCASE AS g, count(*) AS n FROM sales"
        " GROUP BY 1 HAVING count(*) > 2) q ON s.g COLLATE UTF8_LCASE = q.g",
        padded_and_matched(1),
    ),
    "collated_subquery": Case(
        "SELECT id FROM sales x WHERE g COLLATE UTF8_LCASE >"
        " (SELECT min(t.g COLLATE UTF8_LCASE) FROM sales t WHERE t.k = x.k)",
        turns_empty,
    ),
    "order_by_a_hidden_interval": Case(
        "SELECT id FROM (SELECT id, d - DATE'2024-03-30' AS i FROM sales) ORDER BY i DESC, id LIMIT 2",
        changes,
    ),
    "order_by_a_hidden_collated_group": Case(
        "SELECT n FROM (SELECT g COLLATE UTF8_LCASE AS g, count(*) AS n FROM sales GROUP BY 1)"
        " ORDER BY g DESC LIMIT 1",
        comes_back(0),
    ),
}

OTHERS = {
    "group_by_typeof": Case(
        "SELECT typeof(k) AS t, g, count(*) AS n FROM sales GROUP BY typeof(k), g",
        empties_and_returns(1, "b"),
    ),
    "cte_used_twice": Case(
        "WITH t AS (SELECT g, count(*) AS n FROM sales GROUP BY g)"
        " SELECT a.g, a.n, b.n AS m FROM t a JOIN t b ON a.n < b.n",
        turns_empty,
    ),
    "nested_types": Case(
        "SELECT s.a AS a, s AS s, transform(tags, x -> upper(x)) AS tags, count(*) AS n FROM sales"
        " GROUP BY s, tags",
        some_null(1),
    ),
    "collation_in_group": Case(
        "SELECT min(g) AS g, count(*) AS n FROM sales GROUP BY g COLLATE UTF8_LCASE",
        lambda steps: ("A", 4) in steps[0] and ("a", 3) in steps[1],
    ),
    "collation_in_filter_and_order": Case(
        "SELECT id FROM sales WHERE g COLLATE UTF8_LCASE = 'A' ORDER BY g COLLATE UTF8_LCASE, id LIMIT 4",
        lambda steps: len(steps[0]) == 4,
    ),
    "time_zones": Case(  # the day of a moment is another one in another zone
        "SELECT to_date(from_utc_timestamp(ts, 'Asia/Tokyo')) AS day, count(*) AS n,"
        " max(CAST(ts AS TIMESTAMP_NTZ)) AS local FROM sales"
        " GROUP BY to_date(from_utc_timestamp(ts, 'Asia/Tokyo'))",
        comes_back(0),
    ),
    "windows_of_time": Case(
        "SELECT window.start AS at, count(*) AS n FROM sales GROUP BY window(ts, '1 hour')",
        lambda steps: (len(steps[1]), len(steps[2])) == (4, 2),
    ),
    "sessions": Case(  # two sessions are one as long as a sale lies between them
        "SELECT session_window.start AS a, session_window.end AS b, count(*) AS n, sum(v) AS x FROM sales"
        " GROUP BY session_window(ts, '25 minutes')",
        lambda steps: max(row[2] for row in steps[0]) >= 6 and len(steps[2]) > 1,
    ),
    "sessions_of_groups": Case(
        "SELECT g, session_window AS s, max(v) AS x FROM sales GROUP BY g, session_window(ts, '40 minutes')",
        comes_back(0),
    ),
    "pipes": Case("FROM sales |> WHERE v > 2 |> AGGREGATE sum(v) AS x GROUP BY g", comes_back(0)),
}

CASES: dict[str, Case] = {
    **SETS, **SUBQUERIES, **OUTER_JOINS, **AGGREGATES, **WINDOWS, **LIMITS, **GENERATORS, **RECURSIONS,
    **HIDDEN, **OTHERS,
}  # fmt: skip
