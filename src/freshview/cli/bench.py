"""``freshview bench``: measure refreshes against recomputes on this machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from freshview.cli.answer import FAILED, console, fail, failures, json_text, succeed
from freshview.cli.options import AsJson


class BenchName(StrEnum):
    """The benchmarks there are."""

    basics = "basics"


def bench(
    name: Annotated[BenchName, typer.Argument(metavar="NAME", help="Which: basics.")],
    sf: Annotated[
        float, typer.Option("--sf", min=0.001, max=100, help="TPC-H scale; 1 is 6,000,000 lines.")
    ] = 1.0,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="Pairs of refresh and recompute per scenario.")
    ] = 7,
    seed: Annotated[int, typer.Option("--seed", help="Other changes for another number.")] = 1,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Also measure memory at two scales.")
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
    time of each stage, Spark jobs, and memory. Ends with 1 if the view is wrong in the end.

    Example: freshview bench basics --sf 1 --repeat 7 --out basics.json
    """
    with failures(as_json):
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
        from freshview.bench.basics import Settings, run_basics

        assert name is BenchName.basics
        settings = Settings(data.absolute(), sf, repeat, seed, memory)
        found = run_basics(settings, None if as_json else console())
        if out is not None:
            out.write_text(json_text(found.summary(), indent=1) + "\n", encoding="utf-8")
    if as_json and found.ok:
        succeed(bench=found.summary())
    elif as_json:
        fail("VIEW_DIFFERS", "the view differs", as_json=True, bench=found.summary())
    elif not found.ok:
        raise typer.Exit(FAILED)
