"""Views over the shop of ``test_why.py``, each with a key and the base rows that its rows come from."""

from __future__ import annotations

MORE = {
    "a window's partition": (
        "SELECT id, cust, rank() OVER (PARTITION BY cust ORDER BY amount) AS place FROM orders",
        {"id": 1},
        {"orders": [(1, 1, 1), (2, 1, 1)]},
    ),
    "a window without partition": (
        "SELECT id, row_number() OVER (ORDER BY id, amount) AS place FROM orders WHERE id < 4",
        {"place": 2},
        {"orders": [(1, 1, 1), (2, 1, 1), (3, 2, 1)]},
    ),
    "grouping sets": (
        "SELECT region, since, count(*) AS n FROM customers GROUP BY ROLLUP (region, since)",
        {"region": "EU", "since": "2024-01-04"},
        {"customers": [(None, "EU", 1)]},
    ),
    "the total of grouping sets": (
        "SELECT cust, grouping(cust) AS g, count(*) AS n FROM orders GROUP BY CUBE (cust)",
        {"g": 1},
        {"orders": [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 2), (5, None, 1)]},
    ),
    "an exploded array": (
        "SELECT id, e FROM orders LATERAL VIEW explode(sequence(id, id + 1)) AS e",
        {"e": 3},
        {"orders": [(2, 1, 1), (3, 2, 1)]},
    ),
    "the first rows": (
        "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 1",
        {},
        {"orders": [(5, None, 1)]},
    ),
    "in under or": (
        (
            "SELECT cust, cust IN (SELECT cust FROM orders WHERE cust IS NOT NULL) OR cust = 7 AS y"
            " FROM customers WHERE cust IS NOT NULL"
        ),
        {"cust": 2},
        {"customers": [(2, "EU", 1)], "orders": [(3, 2, 1)]},
    ),
    "copies taken off": (
        "SELECT id FROM orders EXCEPT ALL SELECT cust + 1 FROM customers WHERE cust = 3",
        {"id": 4},
        {"orders": [(4, 3, 2)], "customers": [(3, "US", 1)]},
    ),
    "an intersection": (
        "SELECT cust FROM customers INTERSECT SELECT cust FROM orders",
        {"cust": None},
        {"customers": [(None, "EU", 1)], "orders": [(5, None, 1)]},
    ),
    "a self-join": (
        "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.cust = b.cust AND a.id < b.id",
        {},
        {"orders": [(1, 1, 1)], "orders'": [(2, 1, 1)]},
    ),
    "a scalar subquery": (
        "SELECT id FROM orders WHERE amount = (SELECT max(amount) FROM orders WHERE id < 3)",
        {},
        {"orders": [(2, 1, 1)], "orders'": [(1, 1, 1), (2, 1, 1)]},
    ),
    "a padded row beside a global aggregate": (
        (
            "SELECT c.cust, m.most FROM customers c LEFT JOIN"
            " (SELECT max(cust) AS most FROM orders) m ON c.cust = m.most"
        ),
        {"cust": 7},
        {
            "customers": [(7, None, 1)],
            "orders": [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 2), (5, None, 1)],
        },
    ),
    "a computed column": (
        "SELECT upper(region) || '!' AS shout, count(*) AS n FROM customers GROUP BY upper(region)",
        {"shout": "US!"},
        {"customers": [(3, "US", 1)]},
    ),
    "a recursion": (  # orders 2, 3 and 4 lead from customer 1 to customer 4
        (
            "WITH RECURSIVE up(cust, depth) AS (SELECT cust, 0 FROM customers WHERE region = 'EU' UNION ALL"
            " SELECT o.id, depth + 1 FROM up JOIN orders o ON o.cust = up.cust AND o.id > up.cust)"
            " SELECT * FROM up"
        ),
        {"cust": 4, "depth": 3},
        {"customers": [(1, "EU", 1)], "orders": [(2, 1, 1), (3, 2, 1), (4, 3, 2)]},
    ),
    "a group of a recursion without tables": (
        (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3)"
            " SELECT x, count(id) AS orders FROM n LEFT JOIN orders ON cust = x GROUP BY x"
        ),
        {"x": 2},
        {"orders": [(3, 2, 1)]},
    ),
    "a key that is not shown": (
        "SELECT sum(CAST(amount AS DOUBLE)) / 3 AS third, min(id) AS first FROM orders GROUP BY cust",
        {"first": 1},
        {"orders": [(1, 1, 1), (2, 1, 1)]},
    ),
}
