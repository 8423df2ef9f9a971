"""The command ``freshview``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from freshview import __version__
from freshview.cli.answer import USAGE, WIDTH, UsageError, fail, hear_termination
from freshview.cli.bench import bench
from freshview.cli.check import check
from freshview.cli.demo import demo
from freshview.cli.explain import explain
from freshview.cli.init import init
from freshview.cli.refresh import refresh
from freshview.cli.register import register
from freshview.cli.sql import sql
from freshview.cli.status import status
from freshview.cli.suggest import suggest
from freshview.cli.vacuum import vacuum
from freshview.cli.why import why

# Plain help is read as well in a file as on a terminal, and needs a tenth of a second less.
app = typer.Typer(
    name="freshview",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": WIDTH},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"freshview {__version__}")
        raise typer.Exit


@app.callback()
def freshview(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Keep materialized views on Spark and Delta Lake current, incrementally.

    \b
    Try it:   freshview demo
    Start:    freshview init shop
              freshview register orders data/orders --warehouse shop
              freshview sql --warehouse shop "CREATE MATERIALIZED VIEW ..."
              freshview refresh --warehouse shop

    Each command answers with one JSON object when given --json, and ends with 0 (done), 1 (failed)
    or 2 (called wrongly); 130 and 143 after Ctrl-C and SIGTERM. The warehouse is named by --warehouse or FRESHVIEW_WAREHOUSE, and is the
    current folder otherwise.
    """  # noqa: D301 (the marks are Click's: they keep the lines as they are)


_ASKING = (explain, suggest, why, status, check)

for command in (init, demo, register, sql, refresh, *_ASKING, vacuum, bench):
    app.command()(command)


def main() -> None:
    """Run the command line of this process."""
    hear_termination()
    if "--json" not in sys.argv[1:]:
        app(prog_name="freshview")
    try:
        try:
            status = app(prog_name="freshview", standalone_mode=False)
        except UsageError as error:
            text = getattr(error, "format_message", error.__str__)()
            fail("USAGE", text, as_json=True, status=USAGE)
    except typer.Exit as ended:
        status = ended.exit_code
    sys.exit(status or 0)
