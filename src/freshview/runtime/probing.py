"""Which rows of a table to look up, from the rows that are at hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from freshview.algebra.relations import Changes, Given, Relation, Scan
from freshview.algebra.schema import Attribute
from freshview.algebra.traverse import walk
from freshview.planner.bounds import Origin
from freshview.planner.lookups import Probe, Probes
from freshview.planner.lower_relations import TableLeaf
from freshview.storage.interface import Rows

Leaves = Mapping[TableLeaf, Rows]


def is_idle(leaves: Leaves, needs: Collection[Changes | Given]) -> bool:
    """Whether one of these leaves has turned out to be empty."""
    return any(
        isinstance(rows := leaves.get(leaf), pa.Table) and rows.num_rows == 0 for leaf in needs
    )


def best_keys(leaves: Leaves, probes: Probes) -> tuple[Probe, pa.Array] | None:
    """The probe to use, and its keys."""
    return next(iter(ways(leaves, probes)), None)


def ways(leaves: Leaves, probes: Probes) -> list[tuple[Probe, pa.Array]]:
    """The probes that can be used with their keys, one for each column, the best first.

    Of several ways to the same column the one with the fewest keys, for each of them reaches
    every row that matters; of several columns the one that tells rows apart best.
    """
    fewest: dict[Attribute, tuple[int, Probe, pa.Array]] = {}
    for probe in probes:
        values = _values(leaves, probe)
        if values is not None:
            keys = distinct(values)
            if probe.key not in fewest or variety(keys) < fewest[probe.key][0]:
                fewest[probe.key] = variety(keys), probe, keys
    found = sorted(fewest.values(), key=itemgetter(0), reverse=True)
    return [(probe, _asked(probe, keys)) for _, probe, keys in found]


def _asked(probe: Probe, keys: pa.Array) -> pa.Array:
    """The keys with a null where one is to find rows, and only there."""
    if not probe.null_safe:
        return keys.drop_null()
    if probe.origin.padded and not keys.null_count:
        return pa.concat_arrays([keys, pa.nulls(1, keys.type)])
    return keys


def read_by(relation: Relation, leaves: Leaves) -> dict[TableLeaf, Rows]:
    """The leaves that a relation reads."""
    wanted = [node for node in walk(relation) if isinstance(node, Scan | Changes | Given)]
    return {leaf: leaves[leaf] for leaf in dict.fromkeys(wanted)}


def distinct(values: pa.ChunkedArray) -> pa.Array:
    """Each value once; nested ones as they are, since Arrow cannot compare them."""
    return values.combine_chunks() if pa.types.is_nested(values.type) else pc.unique(values)


def variety(keys: pa.Array) -> int:
    """How well distinct keys tell rows apart; nested ones come last: only Spark can look them up."""
    return 0 if pa.types.is_nested(keys.type) else len(keys)


def _values(leaves: Leaves, probe: Probe) -> pa.ChunkedArray | None:
    """The values of a probe's origin, or None if it cannot be used."""
    for origin in probe.without_null:
        values = _column(leaves, origin)
        if values is None or values.null_count or origin.padded:
            return None
    return _column(leaves, probe.origin)


def _column(leaves: Leaves, origin: Origin) -> pa.ChunkedArray | None:
    parts: list[pa.ChunkedArray] = []
    for leaf, attribute in origin.columns:
        rows = leaves.get(leaf)
        if not isinstance(rows, pa.Table):
            return None
        column = rows[attribute.name]
        parts.append(column.cast(parts[0].type) if parts else column)
    if not parts:
        return None
    chunks = [chunk for part in parts for chunk in part.chunks]
    return pa.chunked_array(chunks, parts[0].type)
