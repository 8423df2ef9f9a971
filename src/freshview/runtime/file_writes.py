"""Writing our own small files: whole or not at all, and an error of ours where the disk refuses."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from freshview.errors import WriteFailed


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """What the system refuses in the block (no space, no right to write) named as an error of ours."""
    try:
        yield
    except OSError as problem:
        raise WriteFailed(path=str(path), reason=problem.strerror or str(problem)) from problem


def write_atomically(file: Path, text: str) -> None:
    """The file has the old or the new content, whatever happens, and the new one is on disk."""
    temporary = _beside(file)
    try:
        with writing(file):
            with written_through(temporary) as out:
                out.write(text.encode())
            temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def link_whole(file: Path, text: str) -> bool:
    """Make a file with this text, on disk before it can be seen; False if there is one."""
    temporary = _beside(file)
    try:
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            with written_through(temporary) as out:
                out.write(text.encode())
            try:
                os.link(temporary, file)
            except FileExistsError:
                return False
            return True
    finally:
        temporary.unlink(missing_ok=True)


def _beside(file: Path) -> Path:
    """A name that nobody else takes, and that `vacuum` knows as temporary."""
    return file.with_name(f".{uuid.uuid4().hex}.tmp")


@contextmanager
def written_through(file: Path) -> Iterator[BinaryIO]:
    """A new file to write to, which is on disk when the block ends."""
    with file.open("wb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())
