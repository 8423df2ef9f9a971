"""freshview keeps materialized views on Spark and Delta Lake current, incrementally.

Start with ``freshview.open``: it gives a warehouse, in which ``sql`` defines views and ``refresh``
brings them up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from freshview.errors import FreshviewError

if TYPE_CHECKING:
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


def open(path: str | Path, spark: SparkSession | None = None, *, create: bool = True) -> Warehouse:
    """Open a warehouse folder, making it one if it is none yet and ``create`` allows it.

    Without ``spark`` the active session is used, or an embedded one is started when it is needed.
    """
    from freshview.runtime.warehouse import open_warehouse

    return open_warehouse(path, spark, create=create)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
