"""One writer at a time: an exclusive lock on a file, given back by the system if its holder dies."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from freshview.errors import Busy

_PAUSE_S = 0.02


@contextmanager
def lease(file: Path, wait_s: float = 60.0) -> Iterator[None]:
    """Hold the lock while the block runs; wait for another holder at most ``wait_s`` seconds."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as held:
        deadline = time.monotonic() + wait_s
        while not _locked(held.fileno()):
            if time.monotonic() > deadline:
                raise Busy(file=str(file), seconds=wait_s)
            time.sleep(_PAUSE_S)
        try:
            yield
        finally:
            fcntl.flock(held.fileno(), fcntl.LOCK_UN)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
