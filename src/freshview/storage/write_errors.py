"""Telling that the system refused a write (disk full, no right) from every other failure.

Both libraries wrap the system's error in texts of their own; what it said is somewhere in them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from freshview.errors import WriteFailed

_REFUSALS = tuple(
    os.strerror(code)
    for code in (
        errno.ENOSPC,
        errno.EFBIG,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EIO,
    )
)


def refused_by_system(text: str) -> str | None:
    """What the system said, if this text tells that it refused a write."""
    return next((said for said in _REFUSALS if said in text), None)


@contextmanager
def native_writes(path: str) -> Iterator[None]:
    """Turn the system's refusals, as the native library tells them, into ours."""
    try:
        yield
    except Exception as problem:
        said = refused_by_system(str(problem))
        if said is None:
            raise
        raise WriteFailed(path=path, reason=said) from problem
