"""``freshview check``: compare views with their definitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from freshview.cli.answer import FAILED, fail, failures, plain, refuse, show, succeed
from freshview.cli.options import HERE, AsJson, At, WarehousePath, opened, version_text
from freshview.cli.tables import table

if TYPE_CHECKING:
    from rich.table import Table

    from freshview.runtime.check import CheckResult
    from freshview.runtime.warehouse import Warehouse


def check(
    views: Annotated[
        list[str] | None, typer.Argument(metavar="[VIEW]...", help="The views; all if none given.")
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option(
            "--sample", metavar="F", help="Compare this fraction of the groups, 0 < F ≤ 1."
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Set what differs, then compare again.")
    ] = False,
    at: At = None,
    warehouse: WarehousePath = HERE,
    as_json: AsJson = False,
) -> None:
    """Compare views with their definitions, at the versions and the moment they were computed for.

    A repair keeps these, unless the view has to be computed anew: then it is for --at. Ends with 1 when a view differs (with --repair: when it still does).

    Example: freshview check revenue --sample 0.1 --warehouse shop
    """
    if sample is not None and not 0 < sample <= 1:
        refuse("--sample takes a fraction above 0 and up to 1")
    if sample is not None and repair:
        refuse("--repair compares every group: give it without --sample")
    with failures(as_json):
        opened_warehouse = opened(warehouse, at)
        names = views or [view.name for view in opened_warehouse.catalog.views()]
        for name in names:
            opened_warehouse.catalog.view(name)
        results = [_checked(opened_warehouse, name, sample, repair) for name in names]
    _answer(results, as_json)


def _checked(warehouse: Warehouse, name: str, sample: float | None, repair: bool) -> CheckResult:
    """The result of one view; after a repair that of the repaired view."""
    if not repair:
        return warehouse.check(name, sample=sample)
    found = warehouse.check(name, repair_groups=True)
    if found.repaired == 0:
        return found
    return replace(warehouse.check(name), repaired=found.repaired)


def _answer(results: list[CheckResult], as_json: bool) -> None:
    wrong = [result.view for result in results if not result.ok]
    found = [{**plain(result), "ok": result.ok} for result in results]
    if not as_json and not results:
        print("There are no views yet: make one with CREATE MATERIALIZED VIEW.")
    elif not as_json:
        show(check_table(results), *examples(results))
    if wrong and as_json:
        text = f"{', '.join(wrong)} differ from their definitions"
        fail("VIEW_DIFFERS", text, as_json=True, views=found)
    elif wrong:
        raise typer.Exit(FAILED)
    elif as_json:
        succeed(views=found)


def check_table(results: list[CheckResult]) -> Table:
    """One line per view: the rows it lacks and has too many, and what was compared."""
    rows = [
        (
            result.view,
            ("equal" if result.ok else "differs") + (", repaired" if result.repaired else ""),
            f"{result.missing:,}",
            f"{result.extra:,}",
            f"{result.ms:,.0f}",
            "all" if result.sampled is None else f"{result.sampled:.0%} of the groups",
            ", ".join(f"{name}@{version_text(name, v)}" for name, v in result.versions.items()),
        )
        for result in results
    ]
    columns = ("view", "result", "missing", "extra", "ms", "compared", "at versions")
    return table(columns, rows, right=("missing", "extra", "ms"))


def examples(results: list[CheckResult]) -> list[str]:
    """Some of the rows in which views differ."""
    return [f"  {result.view}: {example}" for result in results for example in result.examples]
