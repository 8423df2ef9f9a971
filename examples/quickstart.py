"""A view kept current: define it, change its table, refresh, read, and prove it right."""

import tempfile

import pyarrow as pa

import freshview as fv

with tempfile.TemporaryDirectory() as folder:
    wh = fv.open(folder)
    ids, cities, amounts = [1, 2, 3], ["Oslo", "Rome", "Oslo"], [10, 20, 30]
    wh.create_table("orders", pa.table({"id": ids, "city": cities, "amount": amounts}))
    wh.sql("""
        CREATE MATERIALIZED VIEW sales AS
        SELECT city, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY city
    """)
    wh.read("sales").orderBy("city").show()

    new, gone = [{"id": 4, "city": "Rome", "amount": 5}], [{"id": 1}]
    wh.apply({"orders": fv.TableChanges(insert=new, delete=gone, key=["id"])})

    refreshed = wh.refresh(policy="INCREMENTAL")["sales"]
    print(f"{refreshed.mode}: {refreshed.rows_in} rows in, {refreshed.rows_out} rows out")
    wh.read("sales").orderBy("city").show()
    print("equal to a recompute:", wh.check("sales").ok)
