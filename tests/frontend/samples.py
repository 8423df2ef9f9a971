"""Two small tables with nulls and duplicates, and queries that between them use the whole import."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DDL = {
    "orders": "o_id long, c_id long, day date, prio string, tags array<string>, js string, "
    "m map<string,int>, s struct<a:int,b:string>, ts timestamp",
    "lines": "o_id long, price decimal(12,2), qty int, shipped date, f double",
}
_moment = partial(dt.datetime, tzinfo=dt.UTC)
_EARLY, _LATE = dt.date(2020, 1, 1), dt.date(2020, 1, 5)
_NOTHING = (None,) * 3
ROWS = {
    "orders": [
        (
            1,
            10,
            _EARLY,
            "hi",
            ["a", "b"],
            '{"x":1}',
            {"k": 1},
            (1, "z"),
            _moment(2020, 1, 1, 3),
        ),
        (2, 10, _LATE, "lo", [], '{"x":null}', *_NOTHING),
        (2, 10, _LATE, "lo", [], '{"x":null}', *_NOTHING),
        (3, None, None, None, None, None, {"k": 2, "j": 3}, (2, None), _moment(2021, 5, 1)),
        (4, 11, dt.date(2021, 2, 3), "hi", ["c", None], "bad", {}, (None, "q"), None),
    ],
    "lines": [
        (1, Decimal("1.50"), 1, dt.date(2020, 1, 2), 1.5),
        (1, Decimal("1.50"), 1, dt.date(2020, 1, 2), 1.5),
        (1, None, 2, None, None),
        (2, Decimal("99999.99"), None, dt.date(2020, 1, 6), -0.0),
        (None, Decimal("5.00"), 3, dt.date(2020, 1, 6), 2.25),
        (7, Decimal("7.77"), 3, dt.date(2019, 1, 6), float("inf")),
    ],
}

QUERIES = {
    "all_columns": "select * from orders",
    "column_named_twice": "select o_id, c_id + 1 x, O_ID from orders where day > date'2020-01-01' or day is null",
    "self_join": (
        "select a.o_id, b.o_id, a.prio from orders a join orders b on a.c_id = b.c_id and "
        "a.o_id < b.o_id"
    ),
    "simple_aggregates": (
        "select prio, count(*) n, count(c_id) nc, sum(o_id) s, avg(o_id) a, min(day) mi, "
        "max(day) mx from orders group by prio"
    ),
    "counts": (
        "select count(*), count(1), count('x'), count(null), count(qty, price), count(distinct "
        "qty, price), count(distinct o_id) from lines"
    ),
    "filtered_aggregate_over_lambda": (
        "select prio, count(*) n, sum(price*2+1) filter (where day > date'2020-01-01') s, "
        "max(transform(tags, t -> concat(t,prio))[0])||'x' m from orders o join lines using "
        "(o_id) where size(tags) > 0 group by prio"
    ),
    "correlated_exists": (
        "select * from orders o where exists (select 1 from lines l where l.o_id = o.o_id and "
        "shipped between day and date_add(day, 3))"
    ),
    "except_all": "select o_id from orders except all select o_id from lines",
    "intersect_all": "select o_id from orders intersect all select o_id from lines",
    "except": "select o_id from orders except select o_id from lines",
    "intersect": "select o_id from orders intersect select o_id from lines",
    "union": "select o_id from orders union select o_id from lines",
    "union_all": "select o_id, prio from orders union all select o_id, cast(price as string) from lines",
    "correlated_scalar_in_where": (
        "select * from lines l where price > (select avg(price) from lines x where x.o_id = l.o_id)"
    ),
    "correlated_scalars_in_select": (
        "select o_id, (select count(*) from lines x where x.o_id = o.o_id) c, (select "
        "sum(price) from lines x where x.o_id = o.o_id) s from orders o"
    ),
    "uncorrelated_scalars": (
        "select o_id, (select max(price) from lines) c, (select o_id from orders where o_id = "
        "99) z from orders o"
    ),
    "uncorrelated_exists": (
        "select * from lines l where price >= (select max(price) from lines) and exists (select "
        "1 from orders)"
    ),
    "not_in_with_nulls": "select o_id from orders where o_id not in (select o_id from lines)",
    "not_in_without_nulls": (
        "select o_id from orders where o_id not in (select o_id from lines where o_id is not null)"
    ),
    "in_under_or": "select o_id from orders where o_id in (select o_id from lines) or prio = 'hi'",
    "existence_in_select": (
        "select o_id, o_id in (select o_id from lines where o_id is not null) isin, exists "
        "(select 1 from lines l where l.o_id = orders.o_id) ex, exists(select 1 from lines "
        "where qty > 100) no from orders"
    ),
    "uncorrelated_not_exists": "select o_id from orders where not exists (select 1 from lines where qty > 100)",
    "lateral_view": "select o_id, t from orders lateral view explode(tags) x as t",
    "lateral_view_outer": "select o_id, p, t from orders lateral view outer posexplode(tags) x as p, t",
    "explode_map": "select o_id, k, v from orders lateral view explode(m) x as k, v",
    "from_json_and_nested": (
        "select o_id, from_json(js, 'x int', map('mode','PERMISSIVE')) j, s.a, s.b, m['k'] mk "
        "from orders"
    ),
    "intervals": (
        "select o_id, day + interval 1 day d1, day - interval '1-2' year to month d2, ts + "
        "interval 3 hours t3, extract(year from day) y, date_trunc('month', ts) tm from orders"
    ),
    "grouping_sets": (
        "select prio, c_id, grouping(prio) g, grouping_id() gi, count(*) n from orders group by "
        "grouping sets ((prio), (c_id), (prio, c_id), ())"
    ),
    "rollup": "select prio, c_id, sum(o_id) from orders group by rollup(prio, c_id)",
    "cube_having": (
        "select prio, c_id, sum(o_id) from orders group by cube(prio, c_id) having sum(o_id) > 2"
    ),
    "windows": (
        "select o_id, price, row_number() over (partition by o_id order by price, qty) rn, "
        "sum(price) over (partition by o_id order by qty rows between 1 preceding and current "
        "row) sp, lag(price, 1, 0) over (order by price, qty) lg, avg(f) over (partition by "
        "qty) from lines"
    ),
    "distinct": "select distinct prio, c_id from orders",
    "order_limit": "select o_id, price from lines order by price desc nulls last, o_id limit 3",
    "order_limit_offset": "select o_id, price from lines order by price desc nulls last, o_id limit 2 offset 1",
    "left_join": "select * from orders o left join lines l on o.o_id = l.o_id and l.qty > 1",
    "right_join": "select o.o_id a, l.o_id b from orders o right join lines l on o.o_id = l.o_id",
    "full_join": (
        "select o.o_id a, l.o_id b from orders o full join lines l on o.o_id = l.o_id and "
        "o.o_id > 1"
    ),
    "range": "select o_id, r.id from orders join range(4, -1, -2) r on o_id = r.id",
    "cross_join": "select o.o_id a, l.o_id b from orders o cross join lines l",
    "semi_join": "select o.o_id a from orders o left semi join lines l on o.o_id = l.o_id",
    "anti_join": "select o.o_id a from orders o left anti join lines l on o.o_id = l.o_id",
    "cte_twice": (
        "with t as (select o_id, sum(price) p from lines group by o_id) select a.o_id, b.p from "
        "t a join t b on a.o_id <=> b.o_id and a.p >= b.p"
    ),
    "cte_correlated": (
        "with recent as (select * from orders where day > '2020-01-02') select r.o_id, (select "
        "max(price) from lines where lines.o_id = r.o_id) from recent r"
    ),
    "conditionals": (
        "select case when prio = 'hi' then 1 when prio is null then 2 else 3 end c, "
        "nvl(prio,'?') n, coalesce(c_id, 0) z, if(o_id > 2, 'big', 'small') b, nullif(o_id, 2), "
        "o_id between 2 and 3 from orders"
    ),
    "try_and_arithmetic": (
        "select try_add(o_id, 1), try_cast(prio as int), o_id % 2, o_id / 2, -o_id, abs(o_id - "
        "3), round(o_id * 1.25, 1) from orders"
    ),
    "lambdas": (
        "select transform(tags, x -> upper(x)) u, filter(tags, x -> x is not null and x <> "
        "prio) f, aggregate(tags, 0, (a, x) -> a + length(coalesce(x, prio))) g, exists(tags, x "
        "-> x = 'a'), map_filter(m, (k, v) -> v > 1), array_sort(tags, (a, b) -> case when a < "
        "b then 1 else -1 end) from orders"
    ),
    "collect_list": "select collect_list(qty) from lines where o_id = 1",
    "statistics": (
        "select percentile_approx(price, 0.5), percentile(qty, 0.5), "
        "approx_count_distinct(qty), max_by(qty, price), stddev(qty), bool_and(qty > 0), "
        "count_if(qty > 1), any_value(1) from lines"
    ),
    "group_by_expression": (
        "select o_id % 2 p, count(*) c, o_id % 2 + count(*) z from orders group by o_id % 2 "
        "order by p"
    ),
    "having_scalar": (
        "select prio p, sum(o_id) + 1 from orders group by prio having count(*) > 1 and "
        "sum(o_id) > (select min(o_id) from lines)"
    ),
    "no_from": "select 1 x, 'a' y",
    "values": (
        "values (1, timestamp'2020-01-01 00:00:00', null, array(1,2), true, 1.5, 2.5d, 'x', "
        "date'2020-01-01', 5L, 3S, timestamp_ntz'1970-01-01 00:00:01', x'0102'), (2, "
        "timestamp'1970-01-01 00:00:01', interval 3 seconds, null, false, null, 1e300, null, "
        "null, null, null, null, null)"
    ),
    "values_join": "select * from values (1,'a'),(2,'b') as t(a,b) join orders on a = o_id",
    "lateral_aggregate": (
        "select o.o_id, x.p from orders o, lateral (select sum(price) p from lines l where "
        "l.o_id = o.o_id) x"
    ),
    "lateral_top": (
        "select o.o_id, x.p from orders o left join lateral (select price p, qty from lines l "
        "where l.o_id = o.o_id order by qty desc limit 1) x"
    ),
    "lateral_inequality": (
        "select o.o_id, x.p from orders o, lateral (select price p from lines l where l.o_id > "
        "o.o_id) x"
    ),
    "stack": "select o_id, stack(2, o_id, c_id) as v from orders",
    "inline": (
        "select inline(array(struct(o_id as a, prio as b), struct(c_id as a, 'z' as b))) from "
        "orders"
    ),
    "pivot": (
        "select * from (select o_id, qty, price from lines) pivot (sum(price) for qty in (1,2,3))"
    ),
    "unpivot": "select * from (select o_id, c_id from orders) unpivot (v for n in (o_id, c_id))",
    "constructors": (
        "select o_id, named_struct('a', o_id, 'b', prio) ns, array(o_id, c_id) ar, map(o_id, "
        "prio) mp, to_json(s) tj from orders"
    ),
    "listagg": "select listagg(prio, ',') within group (order by o_id, prio) from orders",
    "distinct_aggregates": (
        "select sum(distinct qty), sum(qty), count(distinct price) filter (where qty > 1), "
        "avg(distinct price) from lines group by o_id"
    ),
    "named_window": (
        "select o_id, sum(qty) over w, rank() over w from lines window w as (partition by o_id "
        "order by price)"
    ),
    "pipe": "from orders |> where o_id > 1 |> aggregate count(*) c group by prio",
    "single_join": (
        "select o_id, (select l.price from lines l where l.o_id = o.o_id and l.qty = 3) from "
        "orders o"
    ),
    "union_of_three": "select o_id from orders union all select qty from lines union all select 5",
    "aggregate_of_nothing": "select sum(qty) from lines where false",
    "window_over_aggregate": "select o_id, sum(sum(price)) over (partition by o_id) from lines group by o_id, qty",
    "nested_subqueries": (
        "select o_id from orders where o_id > (select avg(o_id) from lines where lines.qty in "
        "(select qty from lines where price > 2))"
    ),
    "natural_join": "select * from orders natural join lines",
    "nested_access": (
        "select s.*, get(tags,0), element_at(m, 'k'), try_element_at(tags, 5) from orders where "
        "o_id in (1,2,null)"
    ),
    "group_by_scalar": (
        "select o_id + (select count(*) from orders) c, count(*) from lines group by o_id + "
        "(select count(*) from orders)"
    ),
    "ranking_windows": (
        "select first_value(price) over (partition by o_id order by qty), nth_value(qty, 2) "
        "over (partition by o_id order by qty), ntile(2) over (order by qty, price), "
        "cume_dist() over (partition by o_id order by qty) from lines"
    ),
    "group_by_map": "select m, count(*) from orders group by m",
    "group_by_struct": "select s, tags, count(*) from orders group by s, tags",
}


def schemas() -> dict[str, StructType]:
    return {name: StructType.fromDDL(ddl) for name, ddl in DDL.items()}


def tables(session: SparkSession) -> dict[str, DataFrame]:
    """The tables with their rows, also as temporary views of the session."""
    made = {
        name: session.createDataFrame(ROWS[name], schema).coalesce(1)
        for name, schema in schemas().items()
    }
    for name, table in made.items():
        table.createOrReplaceTempView(name)
    return made


def bag(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Rows as a bag of plain values, in which NaN equals NaN and -0.0 differs from 0.0."""
    columns = [column.to_pylist() for column in table.columns]
    return Counter(tuple(_plain(value) for value in row) for row in zip(*columns, strict=True))


def _plain(value: object) -> object:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _plain(item)) for key, item in value.items())
    return value
