"""Trying again when another writer was faster: a bounded number of times, never in step with it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

ATTEMPTS = 12
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 1.0


def attempts(count: int = ATTEMPTS) -> Iterator[bool]:
    """Yields for each attempt whether it is the last one, pausing longer and longer in between.

    The pauses are random, so that two who collided do not collide again.
    """
    for number in range(count):
        if number:
            longest = min(_FIRST_PAUSE_S * 2**number, _LONGEST_PAUSE_S)
            time.sleep(random.uniform(0, longest))  # noqa: S311 (no secret)
        yield number == count - 1
