"""A process that forks while a warehouse is open: the native library cannot follow it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.integration import forking_child


def test_a_fork_is_refused_and_its_parent_goes_on(tmp_path: Path) -> None:
    child = [sys.executable, "-W", "ignore", "-m", forking_child.__name__, str(tmp_path)]
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines() == [
        "forked, freshview unused: FORKED_PROCESS",
        "forked, opened before: FORKED_PROCESS",
        "forked, opened after: FORKED_PROCESS",
        "forked, vacuum: FORKED_PROCESS",
        "spawned: [1, 2]",
        "parent: [1, 2, 3]",
    ]
