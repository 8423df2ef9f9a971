"""The views of the demo: an aggregate of joins, a join, a view on a view, and one in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from freshview.runtime.warehouse import Warehouse

REVENUE = """
SELECT c_nationkey AS nation, trunc(o_orderdate, 'MM') AS month,
       count(*) AS lines, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
GROUP BY c_nationkey, trunc(o_orderdate, 'MM')
""".strip()

OPEN_LINES = """
SELECT l_orderkey, l_linenumber, l_quantity, l_shipdate, l_shipmode, o_orderdate, o_custkey
FROM lineitem JOIN orders ON l_orderkey = o_orderkey
WHERE l_linestatus = 'O' AND o_orderpriority = '1-URGENT'
""".strip()

NATION_REVENUE = """
SELECT n_name, sum(lines) AS lines, sum(revenue) AS revenue
FROM revenue JOIN nation ON nation = n_nationkey
GROUP BY n_name
""".strip()

SQL_VIEWS = {"revenue": REVENUE, "open_lines": OPEN_LINES, "nation_revenue": NATION_REVENUE}


def big_orders(warehouse: Warehouse) -> DataFrame:
    """Orders above 400,000, with the customer who placed them."""
    orders = warehouse.table("orders").where("o_totalprice > 400000")
    customers = warehouse.table("customer")
    placed = orders.join(customers, orders["o_custkey"] == customers["c_custkey"])
    return placed.select("o_orderkey", "o_orderdate", "o_totalprice", "c_name")


def create_views(warehouse: Warehouse) -> None:
    """Define and compute the four views."""
    for name, query in SQL_VIEWS.items():
        warehouse.create_view(name, query)
    warehouse.view(big_orders)
