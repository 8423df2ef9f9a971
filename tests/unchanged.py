"""Asserting that bad input is refused with a whole error, and that it left nothing behind."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freshview.errors import FreshviewError

_LEASES = ("_freshview/leases/", "_freshview/transactions/lease")
LOG = "_freshview/refresh_log"
"""A refresh that fails is in the log, and that is all that it may leave."""


def fingerprint(root: Path, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Each file below a folder with its content's hash; leases leave a number when they are taken."""
    found = {}
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root).as_posix()
        if file.is_file() and not name.startswith((*_LEASES, *without)):
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


@contextmanager
def unchanged(root: Path, without: tuple[str, ...] = ()) -> Iterator[None]:
    """The block leaves every file of the folder as it was, and makes none."""
    before = fingerprint(root, without)
    yield
    assert fingerprint(root, without) == before


def refused(
    root: Path,
    code: str,
    act: Callable[[], object],
    *said: str,
    without: tuple[str, ...] = (),
) -> FreshviewError:
    """The error of an act that must be refused: its code, its three sentences, and no trace."""
    with unchanged(root, without), pytest.raises(FreshviewError) as caught:
        act()
    error = caught.value
    assert error.code == code, error
    assert all((error.what, error.why, error.do)), error
    for text in said:
        assert text in f"{error.what}\n{error.why}", (text, str(error))
    return error
