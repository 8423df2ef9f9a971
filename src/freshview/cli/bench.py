"""``freshview bench``: measure refreshes against recomputes on this machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from freshview.cli.answer import FAILED, console, fail, failures, json_text, refuse, succeed
from freshview.cli.options import AsJson

if TYPE_CHECKING:
    from freshview.bench.basics import Basics
    from freshview.bench.change_tables import ChangeTables


class BenchName(StrEnum):
    """The benchmarks there are."""

    basics = "basics"
    change_tables = "change-tables"


_ONLY_OF = {
    "sf": BenchName.basics,
    "memory": BenchName.basics,
    "sales": BenchName.change_tables,
    "rows": BenchName.change_tables,
}
"""Options that mean something to one benchmark alone."""


def bench(  # noqa: PLR0913, PLR0917 (each option of a command is an argument)
    context: typer.Context,
    name: Annotated[
        BenchName, typer.Argument(metavar="NAME", help="Which: basics or change-tables.")
    ],
    sf: Annotated[
        float,
        typer.Option("--sf", min=0.001, max=100, help="basics: TPC-H scale; 1 is 6,000,000 lines."),
    ] = 1.0,
    sales: Annotated[
        int, typer.Option("--sales", min=100, help="change-tables: rows of the table sales.")
    ] = 5_000_000,
    rows: Annotated[
        int, typer.Option("--rows", min=1, help="change-tables: sales inserted per round.")
    ] = 10_000,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, max=40, help="Measured rounds of each scenario.")
    ] = 7,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Other changes for another number.")
    ] = 1,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="basics: also memory, at two scales.")
    ] = True,
    data: Annotated[
        Path, typer.Option("--data", help="Where generated data is kept between runs.")
    ] = Path(".bench-data"),
    out: Annotated[
        Path | None, typer.Option("--out", dir_okay=False, help="Also write the JSON here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure refreshes against recomputes by the same Spark, interleaved, in one run.

    basics: a 3-way join aggregate over TPC-H after 10 and 1,000 changed rows and after none, the
    time of each stage, Spark jobs, and memory.

    change-tables: the views of Gupta and Mumick's Examples 1 and 2 after inserted sales, kept by
    change tables and by plain deltas, and what each reads.

    Ends with 1 if a view is wrong in the end.

    Example: freshview bench basics --sf 1 --repeat 7 --out basics.json
    """
    for option, only in _ONLY_OF.items():
        source = context.get_parameter_source(option)
        if only is not name and source is not None and source.name == "COMMANDLINE":
            refuse(f"--{option} is an option of {only.value}, not of {name.value}")
    with failures(as_json):
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
        shown = None if as_json else console()
        found: Basics | ChangeTables
        if name is BenchName.basics:
            from freshview.bench import basics

            measured = basics.Settings(data.absolute(), sf, repeat, seed, memory)
            found = basics.run_basics(measured, shown)
        else:
            from freshview.bench import change_tables

            compared = change_tables.Settings(data.absolute(), sales, rows, repeat, seed)
            found = change_tables.run_change_tables(compared, shown)
        if out is not None:
            out.write_text(json_text(found.summary(), indent=1) + "\n", encoding="utf-8")
    if as_json and found.ok:
        succeed(bench=found.summary())
    elif as_json:
        text = "a view differs from its definition"
        fail("VIEW_DIFFERS", text, as_json=True, bench=found.summary())
    elif not found.ok:
        raise typer.Exit(FAILED)
