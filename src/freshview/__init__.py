"""freshview keeps materialized views on Spark and Delta Lake current, incrementally.

Start with ``freshview.open``: it gives a warehouse, in which ``sql`` defines views and ``refresh``
brings them up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from freshview.errors import FreshviewError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import SparkSession

    from freshview.runtime.catalog import Policy
    from freshview.runtime.table_changes import TableChanges
    from freshview.runtime.warehouse import Warehouse

__version__ = "0.1.0"
__all__ = ["FreshviewError", "Policy", "TableChanges", "Warehouse", "open"]

_LAZY = {
    "Policy": "freshview.runtime.catalog",
    "TableChanges": "freshview.runtime.table_changes",
    "Warehouse": "freshview.runtime.warehouse",
}


def open(
    path: str | Path,
    spark: SparkSession | None = None,
    *,
    create: bool = True,
    clock: Callable[[], datetime] | None = None,
) -> Warehouse:
    """Open a warehouse folder, making it one if it is none yet and ``create`` allows it.

    Without ``spark`` the active session is used, or an embedded one is started when it is needed.
    ``clock`` returns the moment, with its time zone, for which views that filter by
    ``current_date()`` or ``now()`` are refreshed; without it that is the time of the refresh.
    """
    from freshview.runtime.warehouse import open_warehouse

    return open_warehouse(path, spark, create=create, clock=clock)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
