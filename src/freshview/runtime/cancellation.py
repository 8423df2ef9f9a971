"""Signals that ask the process to end: work stops at its next step, tidily, and then they are heard.

Raised in the middle of a call to the JVM, KeyboardInterrupt would leave the connection between a
question and its answer, and whatever is tidied up next would get the answers of others. So while
work runs, SIGINT and SIGTERM are only noted. A thread with a connection of its own cancels what Spark
is doing, the work stops at its next `check`, gives back its leases, and then the signal goes to whoever
would have got it: KeyboardInterrupt, the end of the process, or a handler of the program. A second
signal goes there at once.

Only the main thread gets signals, so work in other threads is not told to stop; but all jobs of the
session are cancelled, theirs too, as PySpark does by itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from freshview.errors import Cancelled

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PAUSE_S = 0.1
"""A job may start just after the others were cancelled, so they are cancelled again and again."""


class Interrupted(BaseException):
    """The work has to stop. No Exception, lest it be taken for the failure of one view."""


class _Work:
    """Work of the main thread, and the signal that came while it ran."""

    def __init__(self) -> None:
        self.noted: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self._ended = threading.Event()

    def watch(self) -> None:
        """Note signals from now on; the handlers that are set come into force at the end."""
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN, self._note):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def end(self) -> None:
        """Put the handlers back."""
        self._ended.set()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        """The first signal is noted; who sends a second one does not want to wait any longer."""
        if self.noted is not None:
            self.end()
            signal.raise_signal(number)
            return
        self.noted = signal.Signals(number)
        threading.Thread(target=self._cancel, name="freshview-cancel", daemon=True).start()

    def _cancel(self) -> None:
        # Leases are taken by commands that need no Spark, and those should not wait for its import.
        from pyspark import SparkContext

        from freshview.planner.small_plans import cancel_running

        while not self._ended.wait(_PAUSE_S):
            context = SparkContext._active_spark_context  # noqa: SLF001 - no public question
            if context is not None:
                cancel_running()
                context.cancelAllJobs()


_current: _Work | None = None


@contextmanager
def cancellable() -> Iterator[None]:
    """Let the block end tidily when a signal asks the process to end, then let the signal through.

    A handler of the program may return as if nothing had been; then Cancelled is raised.
    """
    global _current  # noqa: PLW0603 (signals are the process's, and so is this)
    if _current is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    work = _current = _Work()
    try:
        work.watch()
        yield
    except BaseException:
        if work.noted is None:
            raise
    finally:
        _current = None
        work.end()
    if work.noted is not None:
        signal.raise_signal(work.noted)
        raise Cancelled(signal=work.noted.name)


@contextmanager
def still_watching() -> Iterator[None]:
    """For a block that sets handlers of its own, as PySpark does when it starts."""
    try:
        yield
    finally:
        if _current is not None and threading.current_thread() is threading.main_thread():
            _current.watch()


def check() -> None:
    """Raise Interrupted if a signal has come; to be asked between two steps."""
    if noted() is not None:
        raise Interrupted


def noted() -> str | None:
    """The signal that has come to the work of this thread."""
    mine = threading.current_thread() is threading.main_thread()
    if _current is None or _current.noted is None or not mine:
        return None
    return _current.noted.name
