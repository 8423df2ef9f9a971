"""Small plans: rows change, the plan stays; errors, threads and empty leaves leave it usable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from freshview.algebra.aggregates import AggregateCall
from freshview.algebra.expressions import Call, Column, Literal, cast
from freshview.algebra.relations import (
    Aggregate,
    AggregateOutput,
    Changes,
    Join,
    OuterJoin,
    Output,
    Project,
    Relation,
    Scan,
    Window,
    keep,
)
from freshview.algebra.schema import Attribute
from freshview.algebra.windows import Frame, Ordering, WindowCall, WindowOutput
from freshview.frontend.scala import items
from freshview.planner import small_plans
from freshview.planner.small_plans import SmallPlans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

K, V, W = Attribute("k", 1, "bigint"), Attribute("v", 2, "string"), Attribute("w", 3, "bigint")
T, U = Scan("t", (K, V)), Scan("u", (W,))
N, X = Attribute("n", 10, "bigint"), Attribute("x", 11, "int")
COUNT = AggregateOutput(N, AggregateCall("count", (), "bigint"))


@pytest.fixture(scope="module")
def plans(spark: SparkSession) -> SmallPlans:
    return SmallPlans(spark)


def table(*rows: tuple[int | None, str | None]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table({"k": pa.array(columns[0], pa.int64()), "v": pa.array(columns[1], pa.string())})


def test_each_run_sees_its_own_rows(plans: SmallPlans) -> None:
    plan = plans.prepare(Aggregate(T, (V,), (COUNT,)))
    assert plan.runs_in_driver
    assert plan.run({T: table((1, "a"), (2, "a"))}).to_pylist() == [{"v": "a", "n": 2}]
    assert plan.run({T: table((1, None))}).to_pylist() == [{"v": None, "n": 1}]
    assert plan.run({T: table()}).num_rows == 0
    assert plan.run({T: table()}).schema == plan.schema


def test_a_leaf_without_columns_still_has_rows(plans: SmallPlans) -> None:
    leaf = Scan("t", ())
    relation = Aggregate(leaf, (), (COUNT,))
    assert plans.run(relation, {leaf: table((1, "a"), (2, "b"))}).to_pylist() == [{"n": 2}]


def test_columns_are_found_by_name_and_cast_to_the_leaf_s_types(plans: SmallPlans) -> None:
    given = pa.table({"other": ["x"], "v": pa.array(["a"], pa.string_view()), "k": pa.array([7])})
    assert plans.run(T, {T: given}).to_pylist() == [{"k": 7, "v": "a"}]


def test_a_delta_is_a_leaf(plans: SmallPlans) -> None:
    changes = Changes("t", (K,))
    rows = pa.table({"k": [1], "__n": [-1]})
    assert plans.run(changes, {changes: rows}).to_pylist() == [{"k": 1, "__n": -1}]


def test_rows_by_file_and_with_compiled_code(
    plans: SmallPlans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_plans, "COMPILED_FROM_ROWS", 1_000)
    rows = [(number % 7, f"text {number}") for number in range(5_000)]
    result = plans.run(Aggregate(T, (K,), (COUNT,)), {T: table(*rows)})
    assert sorted(row["n"] for row in result.to_pylist()) == [714] * 5 + [715] * 2
    whole = plans.run(T, {T: table(*rows)})
    assert sorted(whole["v"].to_pylist()) == sorted(text for _, text in rows)


def test_what_comes_back_is_aligned(plans: SmallPlans) -> None:
    """Arrow's joins and groups print a warning over anything else."""
    found = plans.run(T, {T: table((1, "a"), (2, None), (None, "c"))})
    buffers = [b for column in found.columns for chunk in column.chunks for b in chunk.buffers()]
    addresses = [buffer.address for buffer in buffers if buffer is not None and buffer.size]
    assert len(addresses) >= 3
    assert all(address % 8 == 0 for address in addresses)


def test_an_error_of_spark_arrives_and_leaves_the_plan_usable(plans: SmallPlans) -> None:
    from pyspark.errors import NumberFormatException

    plan = plans.prepare(Project(T, (Output(X, cast(Column(V), "int")),)))
    for _ in range(2):
        with pytest.raises(NumberFormatException):
            plan.run({T: table((1, "no number"))})
        assert plan.run({T: table((1, "12"))}).to_pylist() == [{"x": 12}]


def test_spark_works_as_before_beside_small_plans(spark: SparkSession, plans: SmallPlans) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    plans.run(T, {T: table((1, "a"))})
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    assert spark.range(10).selectExpr("sum(id)").collect()[0][0] == 45


def test_threads_share_a_plan(plans: SmallPlans) -> None:
    plan = plans.prepare(Aggregate(T, (V,), (COUNT,)))
    wrong: list[object] = []

    def run(name: str, copies: int) -> None:
        for _ in range(5):
            found = plan.run({T: table(*[(1, name)] * copies)}).to_pylist()
            if found != [{"v": name, "n": copies}]:
                wrong.append(found)

    threads = [threading.Thread(target=run, args=(f"t{i}", i + 1)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


LESS = Call("<", (Column(K), Column(W)), "boolean")
EQUAL = Call("=", (Column(K), Column(W)), "boolean")


@pytest.mark.parametrize(
    ("relation", "in_driver", "expected"),
    [
        (Join(T, U, EQUAL), True, {(7, 7)}),
        (Join(T, U, LESS), True, {(1, 5), (1, 7)}),
        (OuterJoin(T, U, LESS, True, False), False, {(1, 5), (1, 7), (7, None)}),
    ],
    ids=["equal", "less", "outer less"],
)
def test_a_join_that_needs_a_broadcast_is_a_query(
    plans: SmallPlans, relation: Relation, in_driver: bool, expected: set[tuple[int, int | None]]
) -> None:
    plan = plans.prepare(relation)
    assert plan.runs_in_driver is in_driver

    def pairs(*numbers: int) -> set[tuple[int, int | None]]:
        given = {T: table((1, "a"), (7, "b")), U: pa.table({"w": numbers})}
        return {(row["k"], row["w"]) for row in plan.run(given).to_pylist()}

    pairs(9)
    assert pairs(5, 7) == expected


def test_settings_that_decide_meaning_are_the_session_s(spark: SparkSession) -> None:
    lenient = spark.newSession()
    lenient.conf.set("spark.sql.ansi.enabled", "false")
    relation = Project(T, (keep(K), Output(X, cast(Column(V), "int"))))
    assert SmallPlans(lenient).run(relation, {T: table((1, "no"))}).to_pylist() == [
        {"k": 1, "x": None}
    ]


def test_a_sort_lets_go_of_its_memory(plans: SmallPlans) -> None:
    """A page of memory is up to 64 MB, and plans are kept by the hundred."""
    order = (Ordering(Column(K)),)
    numbered = WindowOutput(N, WindowCall("count", (), "bigint", Frame(True, None, 0)))
    plan = plans.prepare(Window(T, (numbered,), (Column(V),), order))
    assert plan.runs_in_driver
    assert plan.run({T: table((2, "a"), (1, "a"))})["n"].to_pylist() == [1, 2]
    assert [sort.rowSorter() for sort in plan._sorts] == [None]


def test_a_task_may_push_stored_blocks_out(spark: SparkSession, plans: SmallPlans) -> None:
    """Spark locks a block by the number of the task that needs its memory, and forgets no lock."""
    stored = spark.range(5).persist()
    stored.count()
    blocks = plans._driver._blocks
    entries = items(blocks.blockInfoManager().entries().toSeq())
    block = next(entry._1() for entry in entries if entry._1().isRDD())
    with plans._driver.task(compiled=False):
        assert blocks.blockInfoManager().lockForWriting(block, False).isDefined()
    assert blocks.blockInfoManager().lockForWriting(block, False).isDefined()  # it was given back
    blocks.blockInfoManager().unlock(block, plans._driver.scala.none)
    stored.unpersist(blocking=True)


def test_constants_and_leaves_together(plans: SmallPlans) -> None:
    one = Output(X, Literal(1, "int", "1"))
    assert plans.run(Project(T, (one,)), {T: table((1, "a"), (2, "b"))}).to_pylist() == [
        {"x": 1},
        {"x": 1},
    ]
