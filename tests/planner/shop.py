"""The shop schema as algebra, for planner tests that need no Spark."""

from __future__ import annotations

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Call, Column, Literal, equal
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    Output,
    Project,
    Relation,
    Scan,
    Select,
)
from freshview.algebra.schema import Numbering


def revenue() -> Relation:
    """Revenue per nation: lineitem ⋈ orders ⋈ customer, filtered, grouped."""
    new = Numbering(0)
    lineitem = Scan(
        "lineitem",
        (new.attribute("l_orderkey", "bigint"), new.attribute("l_price", "decimal(12,2)")),
    )
    orders = Scan(
        "orders",
        (
            new.attribute("o_orderkey", "bigint"),
            new.attribute("o_custkey", "bigint"),
            new.attribute("o_day", "date"),
        ),
    )
    customer = Scan(
        "customer", (new.attribute("c_custkey", "bigint"), new.attribute("c_nation", "int"))
    )
    l_orderkey, l_price = lineitem.attributes
    o_orderkey, o_custkey, o_day = orders.attributes
    c_custkey, c_nation = customer.attributes
    since = Call(
        ">=", (Column(o_day), Literal("1994-01-01", "date", "DATE '1994-01-01'")), "boolean"
    )
    joined = Join(
        Join(lineitem, Select(orders, since), equal(Column(l_orderkey), Column(o_orderkey))),
        customer,
        equal(Column(o_custkey), Column(c_custkey)),
    )
    rows = AggregateOutput(new.attribute("n", "bigint"), AggregateCall("count", (), "bigint"))
    total = AggregateOutput(
        new.attribute("revenue", "decimal(22,2)"),
        AggregateCall("sum", (Column(l_price),), "decimal(22,2)"),
    )
    grouped = Aggregate(joined, (c_nation,), (rows, total))
    nation = new.attribute("nation", "int")
    return Project(
        grouped,
        (
            Output(nation, Column(c_nation)),
            Output(rows.attribute, Column(rows.attribute)),
            Output(total.attribute, Column(total.attribute)),
        ),
    )
