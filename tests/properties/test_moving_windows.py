"""Moving windows against the oracle: the clock is a table of one row that changes beside the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from freshview.algebra.clock import NOW, clocks_in, is_clock, is_moving, with_terms
from freshview.algebra.evaluate import Database, Table, evaluate
from freshview.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    Opaque,
    cast,
    conjunction,
    integer,
    null,
)
from freshview.algebra.relations import (
    Join,
    MarkJoin,
    OuterJoin,
    Relation,
    Select,
    Semijoin,
)
from freshview.algebra.schema import Attribute, Numbering
from freshview.algebra.traverse import expressions, tables, transform_up, walk
from freshview.delta.derivation import Derivation, Kind
from freshview.delta.derive import derive
from freshview.delta.semijoin import semijoin_delta
from freshview.delta.states import consolidate
from freshview.delta.transaction import Delta, Transaction
from freshview.planner.strategy import Strategy
from freshview.planner.techniques import strategy
from freshview.rewrite.read_clock import read_clock
from freshview.rewrite.rules import rewrite
from tests.properties.generators import Builder
from tests.properties.planned import defined, recomputed, run, visible
from tests.properties.random_tables import Dice, dice, states, transactions
from tests.properties.stepwise import with_temporaries
from tests.properties.test_delta_rules import check_step
from tests.properties.test_planned import named

CASES = 200
ANOTHER = "localtimestamp() in UTC"
CLOCKS = (NOW, ANOTHER)


class Clockwork(Builder):
    """Builds relations whose predicates ask the clock, as a function that no rule has touched yet."""

    def clock(self) -> Expression:
        table = self.dice.choice([NOW, NOW, ANOTHER])
        return cast(Opaque(table, (), "timestamp"), "bigint")

    def term(self) -> Expression:
        """An expression of the clock alone; a difference of it may be NULL."""
        kind = self.dice.randrange(5)
        if kind < 2:
            return self.clock()
        if kind == 2:
            shift = integer(self.dice.randint(0, 2))
            return Call(self.dice.choice(["+", "-"]), (self.clock(), shift), "bigint")
        odd = Call("<", (self.clock(), integer(2)), "boolean")
        if kind == 3:
            return Call("if", (odd, self.clock(), integer(1)), "bigint")
        unknown = Call("-", (cast(Call("if", (odd, integer(0), null("bigint")), "bigint"), "bigint"),
                             integer(0)), "bigint")  # fmt: skip
        return Call("+", (self.clock(), unknown), "bigint")

    def comparison(self, attributes: tuple[Attribute, ...]) -> Expression:
        sides = [Column(self.dice.choice(attributes)), self.term()]
        self.dice.shuffle(sides)
        operation = self.dice.choice(["=", "<=>", "<", "<=", ">", ">="])
        return Call(operation, tuple(sides), "boolean")

    def moving(self, attributes: tuple[Attribute, ...]) -> Expression:
        """One or two comparisons of one column, of several, in an OR, or the clock anywhere."""
        kind = self.dice.randrange(6)
        if kind == 0:
            one = self.dice.choice(attributes)
            return _and(self.comparison((one,)), self.comparison((one,)))
        if kind == 1:
            return _and(self.comparison(attributes), self.comparison(attributes))
        if kind == 2:
            parts = (self.comparison(attributes), self.predicate(attributes))
            return Call("or", parts, "boolean")
        if kind == 3:
            return Call("not", (self.comparison(attributes),), "boolean")
        if kind == 4:
            sides = (Call("+", (Column(self.dice.choice(attributes)), self.term()), "bigint"),
                     integer(3))  # fmt: skip
            return Call(self.dice.choice(["<", ">="]), sides, "boolean")
        return Call("<", (self.term(), integer(self.dice.randint(0, 3))), "boolean")

    def windowed(self, depth: int) -> Relation:
        child = self.relation(depth)
        parts = (self.moving(child.attributes), self.predicate(child.attributes))
        return Select(child, _and(*parts) if self.dice.random() < 0.5 else parts[0])


def _and(*parts: Expression) -> Expression:
    whole = conjunction(parts)
    assert whole is not None
    return whole


def build(shape: str, dice: Dice) -> Relation:
    b = Clockwork(dice, Numbering(0), everything=dice.random() < 0.5)
    return SHAPES[shape](b)


def _conditional(b: Clockwork, kind: str) -> Relation:
    """A join whose condition asks the clock about one side or both."""
    left, right = b.relation(1), b.relation(1)
    both = left.attributes + right.attributes
    sides = b.dice.choice([left.attributes, right.attributes, both])
    parts = [b.moving(sides)]
    equal = b.condition(left, right)
    if equal is not None:
        parts.append(equal)
    on = _and(*parts)
    match kind:
        case "join":
            return Join(left, right, on)
        case "semijoin" | "antijoin":
            return Semijoin(left, right, on, anti=kind == "antijoin")
        case "mark":
            mark = b.new.attribute("m", "boolean", nullable=False)
            return MarkJoin(left, right, on, mark)
        case _:
            return OuterJoin(left, right, on, kind != "right", kind != "left")


def _without(b: Clockwork, left: Relation, right: Relation) -> Relation:
    return Semijoin(left, right, b.condition(left, right), anti=True)


SHAPES: dict[str, Callable[[Clockwork], Relation]] = {
    "selection": lambda b: b.windowed(0),
    "above anything": lambda b: b.windowed(2),
    "below a join": lambda b: Join(b.windowed(0), b.windowed(1), None),
    "below an aggregate": lambda b: b.aggregate(b.windowed(1)),
    "having": lambda b: Select(made := b.grouped(2), b.moving(made.attributes)),
    "below another window": lambda b: Select(made := b.windowed(1), b.moving(made.attributes)),
    "negated": lambda b: _without(b, b.scan(), b.windowed(0)),
    **{
        f"in the condition: {kind}": lambda b, kind=kind: _conditional(b, kind)
        for kind in ("join", "left", "right", "full", "semijoin", "antijoin", "mark")
    },
}


def moments(dice: Dice) -> dict[str, Table]:
    """The clocks, which need not agree: a rule may not rest on that."""
    column = {NOW: "now", ANOTHER: "local_now"}
    return {n: Table((column[n],), Counter([(dice.randrange(4),)])) for n in CLOCKS}


def moved(state: dict[str, Table], dice: Dice) -> Transaction:
    """Some tables change, or none; and the clocks go on, stay or go back."""
    plain = {name: table for name, table in state.items() if not is_clock(name)}
    deltas = {}
    if dice.random() < 0.6:
        deltas = dict(dice.draw(transactions(plain)).deltas)
    for name, table in moments(dice).items():
        if dice.random() < 0.7 and table.rows != state[name].rows:
            deltas[name] = Delta(table.rows, state[name].rows)
    return Transaction(deltas)


def start(dice: Dice) -> dict[str, Table]:
    return {**dice.draw(states), **moments(dice)}


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=CASES)
@given(data=dice)
def test_the_delta_of_a_moving_window_is_the_minimal_difference(shape: str, data: Dice) -> None:
    view = rewrite(build(shape, data))
    assert not any(clocks_in(part) for part in expressions(view))
    state = start(data)
    for _ in range(3):
        transaction = moved(state, data)
        check_step(view, state, transaction)
        state = transaction.apply(state)


def as_written(view: Relation, state: dict[str, Table]) -> Relation:
    """The query as it is before any rule, with the clocks' values in the place of their functions."""
    values: dict[Expression, Expression] = {
        Opaque(clock, (), "timestamp"): Literal(value, "timestamp", str(value))
        for clock in CLOCKS
        for (value,) in state[clock].rows
    }

    def fixed(node: Relation) -> Relation:
        match node:
            case Select(child, predicate):
                return Select(child, with_terms(predicate, values))
            case Join() | OuterJoin() | Semijoin() | MarkJoin() if node.on is not None:
                return replace(node, on=with_terms(node.on, values))
            case _:
                return node

    return transform_up(view, fixed)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=CASES)
@given(data=dice)
def test_a_query_over_the_clock_means_what_is_written(shape: str, data: Dice) -> None:
    written = build(shape, data)
    state = start(data)
    expected = evaluate(as_written(written, state), Database(state))
    assert evaluate(read_clock(written), Database(state)) == expected
    assert evaluate(rewrite(written), Database(state)) == expected


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=CASES)
@given(data=dice)
def test_a_view_over_the_clock_is_its_recompute_whatever_a_range_leaves_out(
    shape: str, data: Dice
) -> None:
    kept = strategy("v", named(build(shape, data)))
    if kept.reason is None:
        check_moving(kept, data)
    else:
        assert kept.reason.code == "DISTINCT_AGGREGATE"


def check_moving(kept: Strategy, data: Dice) -> list[list[tuple[object, ...]]]:
    """Three transactions in which tables or clocks change, or both: the recompute each time.

    The visible rows after each step.
    """
    state = start(data)
    shown = []
    stored = recomputed(kept, state)
    for _ in range(3):
        transaction = moved(state, data)
        seed = data.randrange(2**32)
        stored = run(kept, stored, state, transaction, Dice(seed)).stored
        state = transaction.apply(state)
        assert stored == recomputed(kept, state)
        shown.append(visible(kept, stored))
        assert shown[-1] == defined(kept, state)
    return shown


@settings(max_examples=CASES)
@given(data=dice)
def test_the_rule_is_that_of_a_semijoin(data: Dice) -> None:
    """The general rule for ⋉ knows nothing of clocks and gives the same delta."""
    view = read_clock(build("selection", data))
    state = start(data)
    transaction = moved(state, data)
    database = transaction.database(state)
    for node in walk(view):
        if not isinstance(node, Semijoin) or not is_moving(node):
            continue
        found = []
        for general in (False, True):
            derivation = Derivation(view, dict.fromkeys(transaction.deltas, Kind.ANY))
            if general:
                sides = (derive(side, derivation) for side in (node.left, node.right))
                delta = semijoin_delta(node, *sides, derivation)
            else:
                delta = derive(node, derivation)
            if delta is None:
                assert not set(tables(node)) & set(transaction.deltas)
                return
            ready = with_temporaries(derivation.temporaries, database)
            found.append(evaluate(consolidate(delta.relation), ready))
        assert found[0] == found[1]


def reads_of_a_tick(view: Relation, rows: Counter[tuple[object, ...]], old: int, new: int) -> int:
    """How many rows of r a refresh reads when nothing but the clock moves."""
    kept = strategy("v", named(view))
    clocks = {NOW: Table(("now",), Counter([(old,)]))}
    state = {"r": Table(("a", "b", "c"), rows), **clocks}
    transaction = Transaction({NOW: Delta(Counter([(new,)]), Counter([(old,)]))})
    done = run(kept, recomputed(kept, state), state, transaction, None)
    assert done.stored == recomputed(kept, transaction.apply(state))
    return done.reads["r"]


def r_with(predicate: str) -> Relation:
    b = Clockwork(Dice(0), Numbering(0))
    scan = b.scan("r")
    a = Column(scan.attributes[0])
    now = cast(Opaque(NOW, (), "timestamp"), "bigint")
    month = Call(
        "if", (Call("<", (now, integer(70)), "boolean"), integer(0), integer(30)), "bigint"
    )
    window = {
        "a > now - 30": Call(">", (a, Call("-", (now, integer(30)), "bigint")), "boolean"),
        "a between": _and(
            Call(">", (a, Call("-", (now, integer(30)), "bigint")), "boolean"),
            Call("<=", (a, now), "boolean"),
        ),
        "a > month": Call(">", (a, month), "boolean"),
        "a + now > 99": Call(">", (Call("+", (a, now), "bigint"), integer(99)), "boolean"),
        "now < 70": Call("<", (now, integer(70)), "boolean"),
    }[predicate]
    return Select(scan, window)


@pytest.mark.parametrize(
    ("predicate", "old", "new", "read"),
    [
        ("a > now - 30", 50, 52, 3),
        ("a > now - 30", 52, 50, 3),
        ("a between", 50, 52, 6),
        ("a between", 50, 50 + 30, 61),
        ("a > month", 50, 52, 0),
        ("a > month", 69, 71, 31),
        ("a + now > 99", 50, 52, 100),
        ("now < 70", 50, 52, 0),
        ("now < 70", 69, 71, 100),
    ],
)
def test_a_tick_reads_the_range_that_can_turn(
    predicate: str, old: int, new: int, read: int
) -> None:
    rows = Counter((number, 0, 0) for number in range(100))
    assert reads_of_a_tick(r_with(predicate), rows, old, new) == read
