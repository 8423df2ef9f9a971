"""Files with rising numbers, each written whole by one process and never changed again.

Whoever wants to write the next one links it into place, which succeeds for one process only. So no
lock is needed, nothing is ever half-written, and a process that was paused for an hour and wakes up
finds its number taken instead of overwriting what others did meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path

from freshview.runtime.file_writes import link_whole


class NumberedFiles:
    """The numbered JSON files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def numbers(self) -> list[int]:
        """The numbers that are there, rising."""
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 (this is asked at each refresh)
        except FileNotFoundError:
            return []
        stems = [name.removesuffix(".json") for name in names if name.endswith(".json")]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def read(self, number: int) -> str | None:
        """The text of a file, None if it is not or no longer there."""
        try:
            return self.file(number).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def write(self, number: int, text: str) -> bool:
        """Write the file with this number; False if somebody else has written one."""
        return link_whole(self.file(number), text)

    def file(self, number: int) -> Path:
        return self.folder / f"{number:012d}.json"
