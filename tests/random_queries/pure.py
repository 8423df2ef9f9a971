"""Random views in plain Python: nested to depth 4, kept by every technique that has a rule for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from freshview.algebra.evaluate import Database, evaluate
from freshview.algebra.relations import Aggregate, Limit, Relation, Scan
from freshview.algebra.render import render
from freshview.algebra.schema import Numbering
from freshview.algebra.traverse import walk
from freshview.group_recompute.top_rows import SPARE_LEAST
from freshview.planner.dispatch import TECHNIQUES
from freshview.planner.strategy import Technique
from freshview.planner.techniques import strategy
from tests.properties.generators import Builder
from tests.properties.planned import spare_rows
from tests.properties.random_tables import Dice, states
from tests.properties.test_planned import check_strategy, history, named

DEPTH = 4
LEAVES = range(2, 7)
TRIES = 8
"""How many histories are drawn until one changes the view; some views are the same over any tables."""


@dataclass
class Outcome:
    """What a number of cases came to."""

    cases: int = 0
    by_technique: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    """How many views had other rows after some transaction than before, that which empties all left out."""
    wrong: dict[int, str] = field(default_factory=dict)


def view_of(data: Dice) -> Relation:
    """A view of some tables, of any operator over any other."""
    while True:
        builder = Builder(data, Numbering(0), everything=True)
        view = builder.relation(DEPTH)
        if data.random() < 0.2:
            view = builder.aggregate(view)
        if sum(isinstance(node, Scan) for node in walk(view)) in LEAVES:
            return named(view)


def changes(view: Relation, batches: int) -> bool:
    """Whether the definition's rows are others after some transaction that is not the last."""
    data = Dice(batches)
    state = data.draw(states)
    first = evaluate(view, Database(state))
    *steps, _ = history(data, state)
    for step in steps:
        state = step.apply(state)
        if evaluate(view, Database(state)) != first:
            return True
    return False


def check_case(seed: int) -> tuple[Relation, list[Technique], bool]:
    """Every technique gives the definition's rows after each of four transactions, the last empties all.

    Whether one of the others changed them is the last of what is returned.
    """
    data = Dice(seed)
    view = view_of(data)
    tries = [data.randrange(2**32) for _ in range(TRIES)]
    batches = next((seed for seed in tries if changes(view, seed)), tries[0])
    best = strategy("v", view)
    assert best.reason is None, f"not incremental: {best.reason}"
    others = [strategy("v", view, way) for way in TECHNIQUES if way is not best.technique]
    ways = [best, *(way for way in others if way.reason is None)]
    with spare_rows(data.choice([1, 2, SPARE_LEAST])):
        shown = [check_strategy(way, Dice(batches)) for way in ways]
    assert all(one == shown[0] for one in shown), "techniques differ"
    *steps, _ = shown[0]
    return view, [way.technique for way in ways], any(step != steps[0] for step in steps)


def run(seeds: Iterable[int], progress: Callable[[int], None] = lambda _: None) -> Outcome:
    outcome = Outcome()
    for seed in seeds:
        try:
            view, techniques, changed = check_case(seed)
        except Exception as problem:
            outcome.wrong[seed] = f"{type(problem).__name__}: {str(problem)[:500]}"
        else:
            outcome.changed += changed
            outcome.by_technique.update(way.value for way in techniques)
            outcome.operators.update({kind_of(node) for node in walk(view)})
        outcome.cases += 1
        progress(outcome.cases)
    return outcome


def kind_of(node: Relation) -> str:
    """The operator's name; aggregates without groups and limits are told apart."""
    if isinstance(node, Aggregate) and not node.group:
        return "Aggregate of all"
    if isinstance(node, Limit) and node.count is None:
        return "Offset"
    return type(node).__name__


def shown(seed: int) -> str:
    """The view of a seed, for a person."""
    return render(view_of(Dice(seed)))
