"""SQL views for the dispatch table on Spark: each text with the techniques by which it is kept."""

from __future__ import annotations

from freshview.planner.strategy import Technique

COUNTING, DELTA = Technique.COUNTING, Technique.DELTA
CHANGE, GROUPS = Technique.CHANGE_TABLE, Technique.GROUP_RECOMPUTE

_JOINS_AND_UNIONS = {
    "SELECT r.id AS id, s.w AS w FROM r JOIN s ON r.k = s.k": (COUNTING, DELTA),
    (
        "SELECT r.g, s.h, upper(t.name) AS name FROM r JOIN s ON r.k <=> s.k JOIN t ON s.h = t.h"
        " WHERE r.v > 0 OR r.g IS NULL"
    ): (COUNTING, DELTA),
    (
        "SELECT a.id AS x, b.k AS y FROM r a JOIN r b ON a.k = b.id"
        " UNION ALL SELECT k, h FROM s WHERE w > 0 OR k IS NULL"
    ): (COUNTING, DELTA),
    "SELECT g AS x, id AS y FROM r WHERE length(g) < 2 UNION ALL SELECT name, big FROM t": (
        COUNTING, DELTA,
    ),
}  # fmt: skip

_AGGREGATES = {
    "SELECT DISTINCT g, month(day) AS m FROM r": (COUNTING, DELTA, CHANGE, GROUPS),
    "SELECT DISTINCT r.g, s.h FROM r JOIN s ON r.k = s.k AND s.w > 0": (COUNTING, DELTA, GROUPS),
    "SELECT k FROM r UNION SELECT k FROM s": (COUNTING, DELTA, CHANGE, GROUPS),
    "SELECT r.g, count(*) AS n, avg(s.w) AS a FROM r JOIN s ON r.k = s.k GROUP BY r.g": (
        COUNTING, DELTA, CHANGE, GROUPS,
    ),
    (
        "SELECT x, count(*) AS n, sum(y) AS total FROM (SELECT g AS x, id AS y FROM r WHERE v > 0"
        " UNION ALL SELECT name, h FROM t) GROUP BY x"
    ): (COUNTING, DELTA, GROUPS),
    "SELECT h, count(k) AS n, sum(w) FILTER (WHERE k > 1) AS total FROM s GROUP BY h": (
        COUNTING, GROUPS,
    ),
    "SELECT g, max(v) AS m, min(day) AS d, count(*) AS n FROM r GROUP BY g": (
        COUNTING, DELTA, CHANGE, GROUPS,
    ),
    "SELECT s.h, min(r.v) AS m FROM s JOIN r ON s.k = r.k WHERE r.g <> 'b' GROUP BY s.h": (
        COUNTING, DELTA, GROUPS,
    ),
    "SELECT max(v) AS m, min(day) AS d FROM r": (COUNTING, CHANGE),
    "SELECT t.name, min(s.w) AS m, count(*) AS n FROM s LEFT JOIN t ON s.h = t.h GROUP BY t.name": (
        DELTA, CHANGE, GROUPS,
    ),
    "SELECT g, max(v) AS m, count(DISTINCT k) AS n FROM r GROUP BY g": (DELTA, GROUPS),
    "SELECT h, sum(DISTINCT k) AS x FROM s GROUP BY h": (DELTA, GROUPS),
    "SELECT t.name, bit_xor(s.k) AS x FROM s JOIN t ON s.h = t.h GROUP BY t.name": (DELTA, GROUPS),
}  # fmt: skip

_OUTER_JOINS = {
    (
        "SELECT r.id AS id, q.total, q.flag FROM r LEFT JOIN (SELECT k, coalesce(sum(w), 0) AS total,"
        " 'has some' AS flag FROM s GROUP BY k) q ON r.k = q.k"
    ): (DELTA, CHANGE),
    "SELECT r.id AS id, s.w AS w FROM r LEFT JOIN s ON r.k = s.k": (CHANGE,),
    "SELECT r.id AS id, s.w AS w FROM r RIGHT JOIN s ON r.k = s.k AND s.h > 1": (CHANGE,),
    "SELECT r.id AS id, s.w AS w FROM r FULL JOIN s ON r.k = s.k": (DELTA, CHANGE),
    "SELECT r.id AS id, r.k AS rk, s.k AS sk, s.w AS w FROM r FULL JOIN s ON r.k = s.k": (CHANGE,),
    "SELECT r.id AS id, s.w AS w FROM r FULL JOIN s ON r.k < s.k": (CHANGE,),
    "SELECT r.id, s.w, t.name FROM r LEFT JOIN s ON r.k = s.k LEFT JOIN t ON s.h = t.h": (
        DELTA, CHANGE,
    ),
    "SELECT r.id, s.w, t.name FROM r FULL JOIN s ON r.k = s.k FULL JOIN t ON s.h <=> t.h": (CHANGE,),
    "SELECT r.id, s.w FROM r RIGHT JOIN s ON r.k = s.k WHERE s.h > 0 OR s.w IS NULL": (CHANGE,),
    "SELECT r.id, s.h FROM r FULL JOIN s ON r.k = s.k WHERE s.h IS NULL OR s.h > 1": (CHANGE,),
    "SELECT r.id, s.w FROM r FULL JOIN s ON r.k = s.k WHERE s.w IS NULL OR s.w < 6": (CHANGE,),
    "SELECT r.id, s.w FROM r FULL JOIN s ON r.k = s.k WHERE r.id IS NULL OR r.id < 6": (CHANGE,),
    "SELECT r.g, s.w, t.name FROM r LEFT JOIN s ON r.k = s.k JOIN t ON r.k = t.h": (CHANGE,),
    "SELECT r.id, (SELECT max(w) FROM s WHERE s.k = r.k) AS m FROM r": (CHANGE,),
}  # fmt: skip

_OVER_AGGREGATES = {
    (
        "SELECT q.g, q.n, q.a, s.w FROM (SELECT g, k, count(*) AS n, avg(v) AS a FROM r GROUP BY g, k) q"
        " JOIN s ON q.k = s.k"
    ): (DELTA, CHANGE),
    "SELECT q.g, s.h, s.w FROM (SELECT DISTINCT g, k FROM r) q JOIN s ON q.k = s.k": (CHANGE,),
    (
        "SELECT t.name, sum(q.total) AS total FROM (SELECT h, sum(w) AS total FROM s GROUP BY h) q"
        " JOIN t ON q.h = t.h GROUP BY t.name"
    ): (CHANGE,),
    (
        "SELECT q.n + 1 AS n, s.w FROM (SELECT k, count(*) AS n FROM r GROUP BY k) q"
        " RIGHT JOIN s ON q.k = s.k WHERE s.h < 3"
    ): (CHANGE,),
    (
        "SELECT q.k, q.n, p.m FROM (SELECT k, sum(v) AS n FROM r GROUP BY k) q"
        " FULL JOIN (SELECT k, sum(w) AS m FROM s GROUP BY k) p ON q.k = p.k"
    ): (CHANGE,),
    (
        "SELECT q.g, q.m, s.w FROM (SELECT g, k, max(v) AS m FROM r GROUP BY g, k) q"
        " LEFT JOIN s ON q.k = s.k"
    ): (CHANGE,),
    "SELECT k, sum(v) AS x FROM r GROUP BY k UNION ALL SELECT h, sum(w) FROM s GROUP BY h": (CHANGE,),
    "SELECT g AS x, count(*) AS n FROM r GROUP BY g UNION ALL SELECT name, h FROM t": (CHANGE,),
    (
        "SELECT h, count(w) AS n FROM s GROUP BY h"
        " UNION ALL SELECT t.h, r.id FROM t LEFT JOIN r ON t.h = r.k"
    ): (CHANGE,),
    "SELECT g, count(*) AS n FROM r GROUP BY g HAVING count(*) > 2": (DELTA,),
    "SELECT id, v FROM r WHERE v > (SELECT avg(v) FROM r)": (DELTA,),
}  # fmt: skip

_BY_DELTA_ONLY = (
    "SELECT k, h FROM s WHERE EXISTS (SELECT 1 FROM r WHERE r.k = s.k)",
    "SELECT k, h FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND r.v > 0)",
    "SELECT k, h FROM s WHERE k NOT IN (SELECT k FROM r WHERE k > 5)",
    "SELECT k, h FROM s WHERE k IN (SELECT k FROM r) OR h = 2",
    "SELECT k FROM r INTERSECT SELECT k FROM s",
    "SELECT k FROM r INTERSECT ALL SELECT k FROM s",
    "SELECT r.k, t.h FROM r CROSS JOIN t INTERSECT ALL SELECT k, h FROM s",
    "SELECT k FROM r EXCEPT SELECT k FROM s",
    "SELECT k FROM r EXCEPT ALL SELECT k FROM s",
    "SELECT r.k, s.h FROM r JOIN s ON r.k = s.k EXCEPT ALL SELECT k, h FROM s",
)

_WINDOWS_AND_LIMITS = {
    "SELECT g, v, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r FROM r": (DELTA,),
    (
        "SELECT q.g, q.x, s.w FROM (SELECT g, k, sum(v) OVER (PARTITION BY k ORDER BY day) AS x FROM r) q"
        " JOIN s ON q.k = s.k"
    ): (DELTA,),
    "SELECT h, count(*) OVER () AS n, max(w) OVER (PARTITION BY h) AS m FROM s": (DELTA,),
    "SELECT g, k, sum(v) AS x, count(*) AS n FROM r GROUP BY ROLLUP (g, k)": (DELTA, CHANGE, GROUPS),
    "SELECT h, k, grouping_id() AS i, max(w) AS m FROM s GROUP BY CUBE (h, k)": (DELTA,),
    (
        "SELECT t.name, count(DISTINCT s.k) AS n FROM s JOIN t ON s.h = t.h"
        " GROUP BY GROUPING SETS ((t.name), ())"
    ): (DELTA,),
    "SELECT id, x FROM r LATERAL VIEW OUTER explode(array_except(array(k, id, 3), array(3))) q AS x": (
        DELTA,
    ),
    "SELECT h, posexplode(split(name, '')) AS (place, letter) FROM t": (DELTA,),
    (
        "SELECT x, count(*) AS n FROM (SELECT explode(array(k, h)) AS x FROM s WHERE w > 0) GROUP BY x"
    ): (DELTA,),
    "SELECT id, v FROM r ORDER BY v DESC NULLS LAST, id LIMIT 3": (DELTA, GROUPS),
    "SELECT k, sum(w) AS x FROM s GROUP BY k ORDER BY x, k LIMIT 2 OFFSET 1": (DELTA, GROUPS),
    "SELECT r.g FROM r LEFT JOIN s ON r.k = s.k ORDER BY s.w, r.g LIMIT 4": (DELTA, GROUPS),
}  # fmt: skip

_RECURSIONS = (
    (
        "WITH RECURSIVE p AS (SELECT id, k, 0 AS depth FROM r WHERE v > 0 OR v IS NULL UNION ALL"
        " SELECT p.id, s.h, depth + 1 FROM p JOIN s ON p.k = s.k WHERE depth < 3) SELECT * FROM p"
    ),
    (
        "WITH RECURSIVE p(h, name, depth) AS (SELECT h, name, 0 FROM t UNION ALL"
        " SELECT t.h, p.name, depth + 1 FROM p LEFT SEMI JOIN s ON p.h = s.k JOIN t ON t.h > p.h WHERE depth < 2)"
        " SELECT name, count(*) AS n, max(depth) AS deepest FROM p GROUP BY name"
    ),
    (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5)"
        " SELECT x, s.w FROM n LEFT JOIN s ON s.k = x"
    ),
)

_MOVING_WINDOWS = (
    "SELECT id, day FROM r WHERE day <= current_date() AND (v > 0 OR g IS NULL)",
    "SELECT g, count(*) AS n, sum(v) AS x FROM r WHERE day > current_date() - 36500 GROUP BY g",
    "SELECT r.id, s.w FROM r JOIN s ON r.k = s.k WHERE CAST(r.day AS TIMESTAMP) < now() AND s.w > 0",
)
"""Through which rows come and go; windows that move are in ``test_clock.py``, where the clock is set."""

VIEWS: dict[str, tuple[Technique, ...]] = {
    **_JOINS_AND_UNIONS,
    **_AGGREGATES,
    **_OUTER_JOINS,
    **_OVER_AGGREGATES,
    **_WINDOWS_AND_LIMITS,
    **dict.fromkeys((*_BY_DELTA_ONLY, *_RECURSIONS, *_MOVING_WINDOWS), (DELTA,)),
}
"""What a technique is asked for; which pairs that makes is found by planning."""
