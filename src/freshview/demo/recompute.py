"""What a refresh is compared with: Spark evaluates the whole view and overwrites a table with it.

It is the way a user would do it without freshview, in the same Spark, with its settings, over the
newest versions of the tables; that these are the versions the view has consumed is checked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from freshview.runtime.catalog import ViewEntry
from freshview.runtime.definitions import ViewFunction, call, tables_read_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from freshview.runtime.warehouse import Warehouse


class Recompute:
    """Recomputes views of a warehouse into scratch Delta tables."""

    def __init__(
        self,
        warehouse: Warehouse,
        scratch: Path,
        functions: Mapping[str, ViewFunction] | None = None,
    ) -> None:
        self._warehouse = warehouse
        self._functions = functions or {}
        self._scratch = scratch
        self._session = warehouse.spark.newSession()

    def run(self, view: str) -> float:
        """Recompute one view and return the milliseconds it took."""
        entry = self._warehouse.catalog.view(view)
        started = time.perf_counter()
        rows = self._evaluated(entry)
        rows.write.format("delta").mode("overwrite").save(str(self._scratch / view))
        return (time.perf_counter() - started) * 1000

    def same_versions(self, view: str) -> bool:
        """Whether the view has consumed the versions that a recompute reads."""
        status = next(found for found in self._warehouse.status() if found.view == view)
        return not status.pending

    def _evaluated(self, entry: ViewEntry) -> DataFrame:
        for source in entry.sources:
            self._read(source).createOrReplaceTempView(source)
        if entry.sql is not None:
            return self._session.sql(entry.sql)
        with tables_read_by(self._session.table):
            return call(self._functions[entry.name], self._warehouse)

    def _read(self, source: str) -> DataFrame:
        catalog = self._warehouse.catalog
        found = catalog.get(source)
        rows = self._session.read.format("delta").load(catalog.path(found))
        if isinstance(found, ViewEntry):
            assert not found.counted, "a stored row would have to be copied by its count"
            return rows.select(*found.columns)
        return rows
