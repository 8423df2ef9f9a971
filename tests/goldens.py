"""Golden files: text that people review. ``FRESHVIEW_GOLDEN=write`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check_golden(case: str, text: str) -> None:
    """The text must be the golden file's; the flag makes it so."""
    file = FOLDER / f"{case}.txt"
    if os.environ.get("FRESHVIEW_GOLDEN") == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    assert file.exists(), f"{file} is missing; run with FRESHVIEW_GOLDEN=write"
    assert text + "\n" == file.read_text()
