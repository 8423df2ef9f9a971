"""The join of a correlated scalar subquery that may give several rows, which is an error.

Catalyst's LeftSingle join looks for a partner of each left row and fails where it finds two. With
equalities as its condition it is an outer join with the right side grouped by their columns:

    l ⟕! r on k  =  π_{l, v if n ≤ 1 else error}(l ⟕_k π_{k, count(*) as n, min(v) as v}(r))

The error is raised when a left row meets such a group, as Spark raises it, and not before. With any
other condition p(a, r), a the columns of l that it reads, the partners are found for each value of a:

    l ⟕! r on p  =  l ⟕_{a≡} π_{a, single(v)}(π_a(l) ⋈_p r)        single: the one value, or the error
"""

from __future__ import annotations

from collections.abc import Mapping

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    Opaque,
    all_same,
    conjuncts,
    either,
    integer,
    references,
)
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    keep,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.frontend.scala import CATALYST, JavaObject, Scala

UNORDERED = ("map", "variant", "interval", "geo")
"""Types that MIN does not take. A field of such a name is taken for one: the other form has all types."""
UNGROUPED = ("map<", "variant")
ERROR = "SCALAR_SUBQUERY_TOO_MANY_ROWS"


def single_join(
    scala: Scala, numbering: Numbering, left: Relation, right: Relation, on: Expression | None
) -> tuple[Relation, dict[Attribute, Attribute]] | None:
    """The join and the attributes that now hold the right side's; None if it has no such form."""
    keys = _keys(left, right, on)
    values = [attribute for attribute in right.attributes if attribute not in keys]
    if not keys or any(unordered in value.type for value in values for unordered in UNORDERED):
        return None
    rows = numbering.attribute("rows", "bigint")
    calls = [AggregateOutput(rows, AggregateCall("count", (), "bigint"))]
    outputs = [keep(attribute) for attribute in left.attributes]
    held: dict[Attribute, Attribute] = {}
    for value in values:
        one = numbering.attribute(value.name, value.type)
        held[value] = numbering.attribute(value.name, value.type)
        calls.append(AggregateOutput(one, AggregateCall("min", (Column(value),), value.type)))
        several = Call(">", (Column(rows), integer(1)), "boolean")
        checked = either(several, _failure(scala, value.type), Column(one))
        outputs.append(Output(held[value], checked))
    for key in keys:
        held[key] = numbering.attribute(key.name, key.type)
        outputs.append(Output(held[key], Column(key)))
    grouped = Aggregate(right, keys, tuple(calls))
    joined = OuterJoin(left, grouped, on, keeps_left=True, keeps_right=False)
    return Project(joined, tuple(outputs)), held


def single_join_by_values(
    numbering: Numbering,
    left: Relation,
    again: Relation,
    same: Mapping[Attribute, Attribute],
    right: Relation,
    on: Expression | None,
) -> tuple[Relation, dict[Attribute, Attribute]] | None:
    """The join by the values of the left columns that the condition reads; None if no group has them.

    ``again`` is the left side once more, with attributes of its own for those of the left that ``same``
    names; ``on`` reads these.
    """
    reads = frozenset[Attribute]() if on is None else references(on)
    read = tuple(attribute for attribute in same if attribute in reads)
    if any(ungrouped in attribute.type for attribute in read for ungrouped in UNGROUPED):
        return None
    held = {value: numbering.attribute(value.name, value.type) for value in right.attributes}
    calls = (
        AggregateOutput(one, AggregateCall("single_value", (Column(value),), value.type))
        for value, one in held.items()
    )
    found = Aggregate(Join(Aggregate(again, read, ()), right, on), read, tuple(calls))
    met = all_same((same[attribute] for attribute in read), read)
    joined = OuterJoin(left, found, met, keeps_left=True, keeps_right=False)
    shown = (*left.attributes, *held.values())
    return Project(joined, tuple(keep(attribute) for attribute in shown)), held


def _keys(left: Relation, right: Relation, on: Expression | None) -> tuple[Attribute, ...]:
    """The right side's columns if the condition says that each equals something of the left."""
    keys: dict[Attribute, None] = {}
    for part in conjuncts(on):
        match part:
            case Call("=" | "<=>", (Column(key), other)) if key in right.attributes:
                pass
            case Call("=" | "<=>", (other, Column(key))) if key in right.attributes:
                pass
            case _:
                return ()
        if not references(other) <= set(left.attributes):
            return ()
        keys.setdefault(key)
    return tuple(keys)


def _failure(scala: Scala, type_name: str) -> Opaque:
    """Spark's error for a scalar subquery with several rows, as a value of some type."""
    parser = scala.singleton(CATALYST + "parser.CatalystSqlParser")
    create = scala.singleton(CATALYST + "expressions.Literal").create
    text = parser.parseDataType("string")
    nothing: JavaObject = parser.parseExpression("CAST(map() AS map<string,string>)")
    kind = parser.parseDataType(type_name)
    template = scala.expression("RaiseError", create(ERROR, text), nothing, kind)
    return Opaque(f"RaiseError({ERROR})", (), type_name, True, template)
