"""Running the command line in a process of its own, and in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from freshview.cli.main import app

SOURCES = Path(__file__).parents[2] / "src"
COMMANDS = (
    *("init", "demo", "register", "sql", "refresh", "explain", "suggest", "why", "status"),
    *("check", "vacuum", "bench"),
)


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def in_process(*arguments: str | Path) -> Ended:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return Ended(found.exit_code, found.stdout, found.stderr)


def own_process(*arguments: str | Path, before: str = "", **variables: str) -> Ended:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), **variables}
    code = f"{before}; from freshview.cli.main import main; main()".lstrip("; ")
    command = [sys.executable, "-c", code, *(str(argument) for argument in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)
