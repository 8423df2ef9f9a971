"""One writer at a time: a lease with a fencing number, and an end that needs no goodbye.

The lease of a folder is its file with the highest number, its fence. Whoever takes the lease links
the next number into place, which succeeds for one process only. The holder keeps the file locked
and touches it now and then; so a lease is free again

- when its holder gives it back (the file's time is set to zero),
- at once when its holder dies (the system drops the lock), and
- when its holder is paused or cut off: the file's time stands still for `EXPIRES_S` by the clock of
  the one who waits, whatever the clocks of other machines say.

A holder that wakes up late finds a higher fence, or its own lease too old, and must not write:
`Lease.check` raises LeaseLost. What slips between that check and a commit is refused by the commit
itself, whose number somebody else has taken by then.
"""

from __future__ import annotations

import fcntl
import os
import platform
import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from freshview.errors import Busy, LeaseLost
from freshview.runtime.cancellation import check
from freshview.runtime.file_writes import writing

EXPIRES_S = 20.0
_BEATS_PER_LEASE = 5
_PAUSE_S = 0.02
_GIVEN_BACK = 0


class Lease:
    """A lease that is held, until it is given back or lost."""

    def __init__(self, folder: Path, fence: int, descriptor: int, expires_s: float) -> None:
        self.folder, self.fence = folder, fence
        self.expires_s = expires_s
        self._descriptor = descriptor
        self._beaten = time.monotonic()
        self._lost = False
        self._guard = threading.Lock()

    def check(self) -> None:
        """Raise LeaseLost if somebody else may have taken over; to be asked before each write."""
        if self.is_lost():
            raise self.loss()

    def loss(self) -> LeaseLost:
        """The error of a holder that comes too late."""
        return LeaseLost(subject=self.folder.name, fence=self.fence, seconds=self.expires_s)

    def is_lost(self) -> bool:
        """Whether somebody else may have taken over."""
        self.beat()
        self._lost = self._lost or _highest(self.folder) > self.fence
        return self._lost

    def sleepers(self) -> list[int]:
        """Earlier fences that were neither given back nor their holders dead: they may wake up yet."""
        return [number for number in _numbers(self.folder) if number < self.fence]

    def forget(self, fence: int) -> None:
        """Let go of a sleeper, once nothing that it could still do does any harm."""
        _file(self.folder, fence).unlink(missing_ok=True)

    def beat(self) -> None:
        """Tell those who wait that the holder lives; too late is lost for good."""
        with self._guard:
            now = time.monotonic()
            if now - self._beaten > self.expires_s:
                self._lost = True
            elif not self._lost and self._descriptor >= 0:
                os.utime(self._descriptor)
                self._beaten = now

    def give_back(self) -> None:
        """Free the lease; the file stays, because its number must not come again."""
        with self._guard:
            os.utime(self._descriptor, ns=(_GIVEN_BACK, _GIVEN_BACK))
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def lease(folder: Path, *, wait_s: float = 60.0, expires_s: float | None = None) -> Iterator[Lease]:
    """Hold the lease of a folder while the block runs; wait for it at most ``wait_s`` seconds."""
    expires_s = EXPIRES_S if expires_s is None else expires_s
    with writing(folder):
        held = _taken(folder, wait_s, expires_s)
    ended = threading.Event()

    def beating() -> None:
        while not ended.wait(expires_s / _BEATS_PER_LEASE):
            held.beat()

    heart = threading.Thread(target=beating, name="freshview-lease", daemon=True)
    heart.start()
    try:
        yield held
    finally:
        ended.set()
        heart.join()
        held.give_back()


def view_lease(root: Path, view: str) -> Path:
    """The folder of a view's lease."""
    return root / "_freshview" / "leases" / "views" / view


def _taken(folder: Path, wait_s: float, expires_s: float) -> Lease:
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    seen: tuple[int, int] | None = None
    since = started
    while True:
        check()
        fence = _highest(folder)
        beat = _beat(folder, fence)
        now = time.monotonic()
        if (fence, beat) != seen:
            seen, since = (fence, beat), now
        free = beat == _GIVEN_BACK or _holder_is_dead(folder, fence)
        if free or now - since > expires_s:
            taken = _linked(folder, fence + 1, expires_s)
            if taken is not None:
                return taken
        elif now - started > wait_s:
            raise Busy(file=str(_file(folder, fence)), seconds=wait_s)
        else:
            # Two that wait must not look at the same moments for ever.
            time.sleep(_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 (no secret)


def _linked(folder: Path, fence: int, expires_s: float) -> Lease | None:
    """The lease with this fence, None if somebody else has it. Locked before it can be seen.

    Earlier ones go once they are free. That of a sleeper stays, so that whoever comes next knows of
    it too.
    """
    temporary = folder / f".{uuid.uuid4().hex}.tmp"
    descriptor = os.open(temporary, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, _MACHINE)
        with suppress(OSError):  # a file system without locks: then only time tells
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.link(temporary, _file(folder, fence))
    except OSError as problem:
        os.close(descriptor)
        if isinstance(problem, FileExistsError):
            return None
        raise
    finally:
        temporary.unlink()
    if _highest(folder) != fence:
        # This process slept since it saw that the lease is free, and others had the number and
        # forgot it meanwhile.
        _file(folder, fence).unlink(missing_ok=True)
        os.close(descriptor)
        return None
    for older in _numbers(folder):
        if older < fence and (
            _beat(folder, older) == _GIVEN_BACK or _holder_is_dead(folder, older)
        ):
            _file(folder, older).unlink(missing_ok=True)
    return Lease(folder, fence, descriptor, expires_s)


def _beat(folder: Path, fence: int) -> int:
    """When the holder touched the lease last, in its own clock; zero if it is free."""
    try:
        return _file(folder, fence).stat().st_mtime_ns
    except FileNotFoundError:
        return _GIVEN_BACK


def _holder_is_dead(folder: Path, fence: int) -> bool:
    """Whether the lock of the holder is gone. A sure sign on its own machine, and asked only there."""
    try:
        descriptor = os.open(_file(folder, fence), os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        if os.read(descriptor, len(_MACHINE) + 1) != _MACHINE:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def _machine() -> bytes:
    """What tells this machine, since it was started, from all others."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text(encoding="ascii").strip() if boot.is_file() else ""
    return f"{platform.node()} {started}".encode()


_MACHINE = _machine()


def _highest(folder: Path) -> int:
    return max(_numbers(folder), default=0)


def _numbers(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.iterdir() if file.name.isdecimal()]


def _file(folder: Path, fence: int) -> Path:
    return folder / f"{fence:012d}"
