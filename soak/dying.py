"""Processes that stop themselves at a fault point, or some milliseconds after it.

A place is ``POINT:NUMBER`` for the NUMBERth time a point is met, and ``POINT:NUMBER+MS`` for the
middle of what follows it.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable


def stopping_at(place: str, sent: int = signal.SIGKILL) -> Callable[[str], None]:
    """A handler of fault points that sends this process a signal at a place."""
    point, _, rest = place.partition(":")
    number, _, delay = rest.partition("+")
    left, timed = int(number), False

    def handler(name: str) -> None:
        nonlocal left, timed
        if timed:
            time.sleep(60)  # what was to be interrupted is over, and the signal is on its way
        left -= name == point
        if left or name != point:
            return
        left = -1
        if delay:
            timed = True
            threading.Timer(float(delay) / 1000, os.kill, (os.getpid(), sent)).start()
        else:
            os.kill(os.getpid(), sent)

    return handler
