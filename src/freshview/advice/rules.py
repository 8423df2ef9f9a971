"""The rules in their order, and the check that each draft has to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from freshview.advice.comparable_columns import comparable_columns
from freshview.advice.named_columns import named_columns
from freshview.advice.split_views import split_views
from freshview.advice.suggestion import Case, Draft, Planning
from freshview.advice.typed_columns import typed_columns
from freshview.planner.strategy import Strategy

Rule = Callable[[Case, Planning], Iterator[Draft]]

RULES: tuple[Rule, ...] = (named_columns, typed_columns, comparable_columns, split_views)
"""What stands in the way of any view comes first, what only makes one faster last."""


def drafts(case: Case, planning: Planning) -> Iterator[tuple[Draft, tuple[Strategy, ...]]]:
    """The drafts of all rules whose views would all be kept incrementally, with their strategies."""
    for rule in RULES:
        for draft in rule(case, planning):
            made = planning.planned(draft.definitions)
            if made is not None and all(view.reason is None for view in made):
                yield draft, made
