"""Telling that the system refused a write (disk full, no right) from every other failure.

Each library wraps the system's error in texts of its own: the native one keeps its number, Java the
sentence behind the name of an exception. Both are taken only where a text ends with them, because
texts of errors also quote values.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from freshview.errors import FreshviewError, WriteFailed

_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS})
_NO_RIGHT = frozenset({errno.EACCES, errno.EPERM})
_NUMBER = re.compile(r"(?:\(os error (?P<said>\d+)\)|\bOs \{ code: (?P<shown>\d+),[^{}]*\})\s*$")
_SENTENCE = re.compile(
    r"\bjava\.\S*(?:IOException|FileSystemException): (?:[^\n]*: )?("
    + "|".join(re.escape(os.strerror(code)) for code in sorted(_NO_ROOM))
    + r")\s*$",
    re.MULTILINE,
)


@contextmanager
def native_writes(path: str) -> Iterator[None]:
    """Turn the system's refusals, as the native library tells them, into ours."""
    try:
        yield
    except Exception as problem:
        found = _NUMBER.search(str(problem))
        number = int(found["said"] or found["shown"]) if found else 0
        if number not in _NO_ROOM | _NO_RIGHT:
            raise
        raise WriteFailed(path=path, reason=os.strerror(number)) from problem


@contextmanager
def spark_writes(path: str = "a temporary file of Spark") -> Iterator[None]:
    """Turn the system's refusals into ours where Spark writes a table, or its own temporary files.

    A missing right is not among them: with lazy rows it may be one to read.
    """
    try:
        yield
    except FreshviewError:
        raise
    except Exception as problem:
        said = _refusal(problem)
        if said is None:
            raise
        raise WriteFailed(path=path, reason=said) from problem


def _refusal(problem: Exception) -> str | None:
    if isinstance(problem, OSError):
        return os.strerror(problem.errno) if problem.errno in _NO_ROOM else None
    java = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    while java is not None:
        found = _SENTENCE.search(str(java.toString()))
        if found is not None:
            return found[1]
        java = java.getCause()
    return None
