"""Numbers that stay right on Spark and Delta: sums of doubles, averages, functions of the row order."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

import freshview as fv
from freshview.algebra.exact_sums import exact_sum
from freshview.errors import NotIncremental, StrictImpossible
from freshview.runtime.report import FULL, INCREMENTAL

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [("id", pa.int32()), ("g", pa.string()), ("x", pa.float64()), ("f", pa.float32()),
     ("i", pa.int64()), ("s", pa.string()), ("m", pa.map_(pa.string(), pa.int64()))]
)  # fmt: skip
NAN, INFINITY = math.nan, math.inf
GROUPS: dict[str, list[float | None]] = {
    "large": [1e20, 1.0],
    "far": [1e300, 1.0, 1e-300],
    "over": [1e308, 1e308, -1e308],
    "nan": [NAN, 0.5],
    "both": [INFINITY, -INFINITY, 0.25],
    "zero": [-0.0, None],
    "small": [5e-324, 5e-324, 1.0, -1.0],
    "null": [None],
    "drift": [0.1] * 10 + [1e15, 0.7],
    "limit": [2.0**80, math.nextafter(2.0**80, 0), 2.0**-100, 2.0**-101],
}
MOST = 2**63 - 1
VIEWS = {
    "sums": "SELECT g, sum(x) AS s, avg(x) AS a, sum(f) AS f, sum(DISTINCT x) AS d, count(*) AS n"
    " FROM t GROUP BY g",
    "narrow": "SELECT g, sum(x) AS s, avg(x) AS a, sum(x) FILTER (WHERE i > 0) AS p, max(x) AS m"
    " FROM t GROUP BY g",
    "whole": "SELECT sum(x) AS s, avg(x) AS a FROM t WHERE x > 0 AND x < 1e10",
    "averages": "SELECT g, avg(i) AS a, avg(DISTINCT i) AS d FROM t GROUP BY g",
    "average": "SELECT avg(i) AS a, avg(id) AS b FROM t",
    "spread": "SELECT g, stddev(i) AS a, var_pop(x) AS b, skewness(id) AS c, kurtosis(id) AS d,"
    " covar_samp(x, i) AS e, approx_percentile(x, 0.5) AS p FROM t GROUP BY g",
    "picked": "SELECT g, first(s) AS a, last(s) AS b, any_value(i) AS c, max_by(s, i) AS d,"
    " collect_list(s) AS e, collect_set(s) AS f, mode(s) AS h, listagg(s, '-') AS l,"
    " array_agg(x) AS x, count(DISTINCT i) AS n, collect_list(DISTINCT s) AS k FROM t GROUP BY g",
    "all_rows": "SELECT count(DISTINCT s) AS a, median(i) AS b, stddev(id) AS c, first(s) AS d,"
    " sum(DISTINCT id) AS e FROM t",
    "joined": "SELECT q.g, q.s, q.a, n.name FROM (SELECT g, sum(x) AS s, avg(i) AS a FROM t GROUP BY g) q"
    " JOIN names n ON q.g = n.g",
    "having": "SELECT g, sum(x) AS s, stddev(id) AS d FROM t GROUP BY g HAVING sum(x) > 1",
}  # fmt: skip
BY_CHANGE_TABLE = {"narrow", "whole", "average", "joined", "having"}


class Rows:
    """What the table holds, and changes of it."""

    def __init__(self) -> None:
        self.dice = random.Random(3)
        self.held: dict[int, dict[str, object]] = {}

    def made(self, g: str | None, x: float | None) -> dict[str, object]:
        number = len(self.held) + 1
        single = x if x is not None and abs(x) < 1e38 else None
        whole = self.dice.choice((MOST, MOST - 1, -MOST, 2**53 + 1, 1, 7, None))
        letter = self.dice.choice("aAbcé")
        return {"id": number, "g": g, "x": x, "f": single, "i": whole, "s": letter, "m": [("k", 1)]}

    def insert(self, g: str | None, *values: float | None) -> list[dict[str, object]]:
        found = []
        for x in values:
            row = self.made(g, x)
            self.held[len(self.held) + 1] = row
            found.append(row)
        return found

    def delete(self, g: str | None, *values: float | None) -> list[dict[str, object]]:
        found = []
        for x in values:
            place = next(
                n
                for n, row in self.held.items()
                if row and (row["g"], repr(row["x"])) == (g, repr(x))
            )
            found.append({"id": self.held[place]["id"]})
            self.held[place] = {}
        return found

    def groups(self) -> Iterator[tuple[str | None, list[dict[str, object]]]]:
        rows = [row for row in self.held.values() if row]
        for g in dict.fromkeys(row["g"] for row in rows):
            yield g, [row for row in rows if row["g"] == g]  # type: ignore[misc]


def table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def added(values: list[float]) -> float | None:
    return exact_sum((x, 1) for x in values) if values else None


def mean(values: list[float]) -> float | None:
    return None if not values else exact_sum((x, 1) for x in values) / len(values)


def integer_mean(values: list[int]) -> float | None:
    return float(sum(values)) / len(values) if values else None


def expected_sums(rows: Rows) -> set[str]:
    found = set()
    for g, group in rows.groups():
        doubles = [x for row in group if (x := row["x"]) is not None]
        singles = [x for x in table(group)["f"].to_pylist() if x is not None]
        once = {repr(x + 0.0): x for x in doubles}
        found.add(
            repr(
                (
                    g,
                    added(doubles),
                    mean(doubles),
                    added(singles),
                    added([*once.values()]),
                    len(group),
                )
            )
        )
    return found


def expected_averages(rows: Rows) -> set[str]:
    found = set()
    for g, group in rows.groups():
        whole = [i for row in group if (i := row["i"]) is not None]
        found.add(repr((g, integer_mean(whole), integer_mean([*set(whole)]))))
    return found


def shown(warehouse: fv.Warehouse, view: str) -> set[str]:
    return {repr(tuple(row)) for row in warehouse.read(view).collect()}


def test_every_number_is_that_of_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Values arrive and leave; every view is kept by rule, and is what its rows say, to the last bit."""
    warehouse, rows = fv.open(tmp_path, spark), Rows()
    first = [row for g, values in GROUPS.items() for row in rows.insert(g, *values)]
    warehouse.create_table("t", table(first))
    names = pa.table({"g": [*GROUPS, None], "name": [*(g.upper() for g in GROUPS), "NONE"]})
    warehouse.create_table("names", names)
    for name, query in VIEWS.items():
        warehouse.create_view(name, query, policy="STRICT")
    assert shown(warehouse, "sums") == expected_sums(rows)
    batches = [
        (
            [("large", 1e20), ("far", 1e300), ("over", 1e308), ("nan", NAN), ("both", INFINITY),
             ("small", 1.0), ("drift", 1e15), ("limit", 2.0**80)],
            [("null", 3.0), ("new", -1e300), ("zero", -0.0), (None, 0.1)],
        ),
        (
            [("far", 1.0), ("over", -1e308), ("both", -INFINITY), ("small", -1.0), ("new", -1e300),
             ("limit", 2.0**-101), *[("drift", 0.1)] * 9],
            [("nan", INFINITY), ("both", 0.1), (None, -0.3), ("new", 1e-320), ("large", NAN)],
        ),
        (
            [("nan", INFINITY), ("new", 1e-320), ("null", None), ("large", NAN), ("large", 1.0)],
            [("nan", NAN), ("new", 2e-320), ("far", 1e-300), ("drift", 1e300), ("drift", -1e300)],
        ),
    ]  # fmt: skip
    for gone, come in batches:
        deleted = [key for g, x in gone for key in rows.delete(g, x)]
        inserted = table([row for g, x in come for row in rows.insert(g, x)])
        changes = fv.TableChanges(insert=inserted, delete=deleted, key=["id"])
        warehouse.apply({"t": changes})
        report = warehouse.refresh()
        assert {report[name].mode for name in VIEWS} == {INCREMENTAL}
        assert shown(warehouse, "sums") == expected_sums(rows)
        assert shown(warehouse, "averages") == expected_averages(rows)
    assert [name for name in VIEWS if not warehouse.check(name).ok] == []
    assert {n for n in VIEWS if report[n].technique == "change table"} == BY_CHANGE_TABLE
    assert "all rows" in str(warehouse.explain("all_rows"))
    for name in ("sums", "narrow", "picked"):
        assert warehouse.check(name, repair_groups=True).repaired == 0
    in_another_order(warehouse, rows)


def in_another_order(warehouse: fv.Warehouse, rows: Rows) -> None:
    """A second table with the same rows in other files and another order gives the same views."""
    live = [row for row in rows.held.values() if row]
    warehouse.create_table("u", SCHEMA)
    for part in range(3):
        warehouse.apply({"u": fv.TableChanges(insert=table(live[part::3][::-1]))})
    for name in ("spread", "picked", "all_rows"):
        query = VIEWS[name].replace("FROM t", "FROM u")
        warehouse.create_view(f"{name}_again", query, policy="STRICT")
        assert shown(warehouse, f"{name}_again") == shown(warehouse, name)


def test_a_map_has_no_order(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, rows = fv.open(tmp_path, spark), Rows()
    warehouse.create_table("t", table(rows.insert("a", 1.0, 2.0)))
    unordered = "SELECT g, first(m) AS m FROM t GROUP BY g"
    with pytest.raises(StrictImpossible) as impossible:
        warehouse.create_view("w", unordered, policy="STRICT")
    assert impossible.value.parameters["reason"] == "NO_ORDER_OF_ROWS"
    warehouse.create_view("w", unordered)
    query = "SELECT g, first(map_entries(m)) AS m FROM t GROUP BY g"
    warehouse.create_view("v", query, policy="STRICT")
    warehouse.apply({"t": fv.TableChanges(insert=table(rows.insert("a", 3.0)))})
    recomputed = warehouse.refresh("w")["w"]
    assert (recomputed.mode, recomputed.reason) == (FULL, "NO_ORDER_OF_ROWS")
    assert warehouse.refresh("v")["v"].mode == INCREMENTAL
    assert warehouse.check("v").ok


def test_an_overflow_on_the_way_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """2⁶³−1 + 1 − 1 in one batch is no overflow; +1 alone is one, and leaves the view as it was."""
    warehouse = fv.open(tmp_path, spark)

    def rows(*pairs: tuple[int, int]) -> pa.Table:
        keys, values = zip(*pairs, strict=True)
        many = pa.array([Decimal(v) for v in values], pa.decimal128(38, 0))
        return pa.table({"k": keys, "i": pa.array(values, pa.int64()), "d": many})

    warehouse.create_table("t", rows((1, MOST)))
    warehouse.create_view("v", "SELECT sum(i) AS s, sum(d) AS d FROM t", policy="STRICT")
    warehouse.create_view("g", "SELECT k % 1 AS g, sum(i) AS s FROM t GROUP BY 1", policy="STRICT")
    warehouse.apply({"t": fv.TableChanges(insert=rows((2, 1), (3, -1), (4, MOST), (5, -MOST)))})
    warehouse.refresh()
    assert shown(warehouse, "v") == {repr((MOST, Decimal(MOST)))}
    assert shown(warehouse, "g") == {repr((0, MOST))}
    warehouse.apply({"t": fv.TableChanges(insert=rows((6, 1)))})
    with pytest.raises(NotIncremental) as refused:
        warehouse.refresh()
    assert refused.value.parameters["reason"] == "EVALUATION_FAILED"
    with pytest.raises(ArithmeticException):
        warehouse.refresh(policy="INCREMENTAL")  # which may recompute, and that overflows too
    assert shown(warehouse, "g") == {repr((0, MOST))}
    assert shown(warehouse, "v") == {repr((MOST, Decimal(MOST)))}
    warehouse.apply({"t": fv.TableChanges(delete=[{"k": 6}], key=["k"])})
    warehouse.refresh()
    assert shown(warehouse, "g") == {repr((0, MOST))}


def test_a_sum_that_is_null_on_overflow_meets_its_rows_in_one_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    """max − 1 + 1 is max, and max + 1 − 1 is NULL: Spark's answer hangs on the order of files, ours does not."""
    warehouse, most = fv.open(tmp_path, spark), 10**38 - 1
    query = "SELECT g, try_sum(d) AS s, try_avg(d) AS a FROM {} GROUP BY g"

    def rows(*values: int) -> pa.Table:
        many = pa.array([Decimal(v) for v in values], pa.decimal128(38, 0))
        return pa.table({"g": [1] * len(values), "d": many})

    for name, values in {"up": (-1, 1, most), "down": (most, 1, -1)}.items():
        warehouse.create_table(name, rows(values[0]))
        warehouse.create_view(f"{name}_kept", query.format(name), policy="STRICT")
        for value in values[1:]:
            warehouse.apply({name: fv.TableChanges(insert=rows(value))})
        assert warehouse.refresh(f"{name}_kept")[f"{name}_kept"].mode == INCREMENTAL
        warehouse.create_view(f"{name}_made", query.format(name), policy="STRICT")
        for view in (f"{name}_kept", f"{name}_made"):
            assert [row.s for row in warehouse.read(view).collect()] == [Decimal(most)]
            assert warehouse.check(view).ok
    assert shown(warehouse, "up_kept") == shown(warehouse, "down_made")


def test_a_sum_of_38_digits_moves_from_one_end_to_the_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The change of such a sum has more digits than Spark; what is then inserted arrives all the same."""
    warehouse, most = fv.open(tmp_path, spark), 10**38 - 1

    def rows(*pairs: tuple[int, int]) -> pa.Table:
        keys, values = zip(*pairs, strict=True)
        many = pa.array([Decimal(v) for v in values], pa.decimal128(38, 0))
        return pa.table({"id": keys, "g": [id % 2 for id in keys], "d": many})

    warehouse.create_table("t", rows((1, most), (2, 7)))
    views = {
        "groups": "SELECT g, sum(d) AS s, avg(d - d) AS a FROM t GROUP BY g",
        "whole": "SELECT sum(d) AS s FROM t WHERE g = 1",
        "above": "SELECT max(s) AS m FROM (SELECT g, sum(d) AS s FROM t GROUP BY g)",
        "joined": "SELECT a.g, a.s FROM (SELECT g, sum(d) AS s FROM t GROUP BY g) a JOIN t ON a.g = t.g",
    }
    for name, query in views.items():
        warehouse.create_view(name, query, policy="STRICT")
    for change in (
        fv.TableChanges(update=rows((1, -most)), key=["id"]),
        fv.TableChanges(insert=rows((3, 1), (4, most - 7))),
        fv.TableChanges(update=rows((4, -most)), delete=[{"id": 1}], key=["id"]),
    ):
        warehouse.apply({"t": change})
        assert {view.mode for view in warehouse.refresh().views} == {INCREMENTAL}
        assert [name for name in views if not warehouse.check(name).ok] == []
    assert shown(warehouse, "groups") == {
        repr((1, Decimal(1), Decimal("0.0000"))),
        repr((0, Decimal(7 - most), Decimal("0.0000"))),
    }
