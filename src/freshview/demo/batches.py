"""What happens in the demo: four transactions, then a refresh with nothing to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from freshview.demo.changes import LineChanges, OrderChanges, moved_customers
from freshview.demo.tpch import KEYS
from freshview.runtime.table_changes import TableChanges


@dataclass(frozen=True, slots=True)
class Batch:
    """One transaction: what it is for, and what it does to each table."""

    title: str
    changes: Mapping[str, TableChanges]


def demo_batches(folder: Path, seed: int) -> tuple[Batch, ...]:
    """The transactions of the demo, the same for the same seed."""
    lines = LineChanges(folder, 10 + 1_000 + 4 * 50 + 200, seed)
    orders = OrderChanges(folder, 50 + 100 + 20, seed)
    placed = orders.inserted(50)
    repriced = orders.updated(100)
    cancelled, their_lines = orders.cancelled(20)
    order_key, line_key = KEYS["orders"], KEYS["lineitem"]
    return (
        Batch("10 lines inserted", {"lineitem": lines.insert_only(10)}),
        Batch(
            "1,000 lines: 400 inserted, 300 updated, 300 deleted", {"lineitem": lines.mixed(1_000)}
        ),
        Batch(
            "200 lines shipped another way: a column that only open_lines reads",
            {"lineitem": TableChanges(update=lines.reshipped(200), key=line_key)},
        ),
        Batch(
            "one transaction: 50 orders placed, 100 repriced, 20 cancelled, 25 customers moved",
            {
                "orders": TableChanges(
                    insert=placed, update=repriced, delete=cancelled, key=order_key
                ),
                "lineitem": TableChanges(
                    insert=lines.of_orders(placed), delete=their_lines, key=line_key
                ),
                "customer": TableChanges(
                    update=moved_customers(folder, 25, seed), key=KEYS["customer"]
                ),
            },
        ),
        Batch("nothing", {}),
    )
