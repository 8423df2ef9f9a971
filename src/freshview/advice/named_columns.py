"""Column names that a Delta table cannot have, or that come twice: others in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from freshview.advice.suggestion import Case, Definition, Draft, Planning
from freshview.algebra.schema import Attribute
from freshview.frontend.statements import with_columns, without_end

RULE = "named columns"


def named_columns(case: Case, _: Planning) -> Iterator[Draft]:
    """``count(1)`` becomes ``count_1``; the second ``a`` becomes ``a_2``.

    INVALID_COLUMN: ``SELECT * FROM (query) AS name(a, count_1, …)``, which is what CREATE MATERIALIZED
    VIEW name (a, count_1, …) makes of it.
    """
    if case.code != "INVALID_COLUMN" or not case.columns:
        return
    given = case.definition
    names = storable_names(case.columns)
    query = with_columns(given.name, names, without_end(given.query).strip())
    why = "a Delta column has a plain name of its own, none with __ in front"
    yield Draft(RULE, why, (Definition(given.name, query),))


def storable_names(columns: Sequence[Attribute]) -> tuple[str, ...]:
    """A name for each column that Delta takes: its own as far as that goes."""
    found: list[str] = []
    taken: set[str] = set()
    for place, column in enumerate(columns, start=1):
        plain = column.name
        if re.search(r"[\s,;{}()=]", plain) or plain.startswith("__") or not plain:
            plain = re.sub(r"\W+", "_", plain).strip("_") or f"column_{place}"
        name, number = plain, 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.lower())
        found.append(name)
    return tuple(found)
