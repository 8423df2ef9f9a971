"""Refreshes a warehouse in a process of its own, to be killed: ``python -m … PATH``."""

import sys

from freshview.runtime.session import spark_session
from freshview.runtime.warehouse import open_warehouse
from tests.interpreted import INTERPRETED

if __name__ == "__main__":
    warehouse = open_warehouse(
        sys.argv[1], spark_session(memory="1g", extra=INTERPRETED), create=False
    )
    for view in warehouse.catalog.views():
        warehouse.explain(view.name)
    sys.stdout.write("refreshing\n")
    sys.stdout.flush()
    warehouse.refresh()
    sys.stdout.write("done\n")
    sys.stdout.flush()
