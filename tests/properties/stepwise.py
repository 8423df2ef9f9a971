"""A derived expression with its temporaries, evaluated by the oracle step by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from freshview.algebra.evaluate import Bag, Database, evaluate
from freshview.algebra.relations import Relation
from freshview.delta.derivation import Temporary


def with_temporaries(temporaries: Iterable[Temporary], database: Database) -> Database:
    """The database in which the temporaries are known, each computed once."""
    for temporary in temporaries:
        rows = evaluate(temporary.relation, database)
        database = replace(database, given={**database.given, temporary.leaf.name: rows})
    return database


def stepwise(relation: Relation, temporaries: Iterable[Temporary], database: Database) -> Bag:
    return evaluate(relation, with_temporaries(temporaries, database))
