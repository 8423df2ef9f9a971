"""Progress for people: one line on a terminal while something takes longer than a moment.

Nothing is shown when standard error is not a terminal or FRESHVIEW_PROGRESS is 0, and nothing is
left behind on the screen when the work is done.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as RichProgress

DELAY_S = 1.0


class Progress:
    """A piece of work that may show itself; safe to call whether or not it is shown.

    `total` is the number of steps, None when it is not known. The line appears only after
    `delay_s`, so that quick work stays invisible.
    """

    def __init__(
        self, description: str, total: int | None, *, console: Console | None, delay_s: float
    ) -> None:
        self._lock = threading.Lock()
        self._description = description
        self._total = total
        self._completed = 0
        self._console = console
        self._timer = threading.Timer(delay_s, self._show) if console is not None else None
        self._shown: tuple[RichProgress, TaskID] | None = None
        self._ended = False

    def advance(self, steps: int = 1) -> None:
        """Say that so many more steps are done."""
        with self._lock:
            self._completed += steps
            self._update()

    def describe(self, description: str) -> None:
        """Say what is being done now."""
        with self._lock:
            self._description = description
            self._update()

    @property
    def completed(self) -> int:
        """The number of steps done so far."""
        return self._completed

    @property
    def visible(self) -> bool:
        """Whether a line is on the screen now."""
        return self._shown is not None

    def __enter__(self) -> "Progress":
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._shown is not None:
                self._shown[0].stop()
                self._shown = None

    def _update(self) -> None:
        if self._shown is not None:
            line, task = self._shown
            line.update(task, description=self._description, completed=self._completed)

    def _show(self) -> None:
        """Put the line on the screen; called by the timer once the work has lasted."""
        with self._lock:
            if self._ended:
                return
            columns = [SpinnerColumn(), TextColumn("{task.description}")]
            if self._total is not None:
                columns += [BarColumn(bar_width=24), MofNCompleteColumn()]
            line = RichProgress(
                *columns, TimeElapsedColumn(), console=self._console, transient=True
            )
            task = line.add_task(self._description, total=self._total, completed=self._completed)
            line.start()
            self._shown = (line, task)


def wanted() -> bool:
    """Whether progress may be shown at all."""
    return os.environ.get("FRESHVIEW_PROGRESS") != "0" and sys.stderr.isatty()


@contextmanager
def progress(
    description: str,
    total: int | None = None,
    *,
    announce: bool = False,
    delay_s: float = DELAY_S,
) -> Iterator[Progress]:
    """Show `description` while the block runs, with a bar of `total` steps when that is known.

    With `announce` the description is printed as one plain line where no progress can be shown
    (unless FRESHVIEW_PROGRESS is 0): for rare work that would otherwise look like a hang.
    """
    console = Console(stderr=True) if wanted() else None
    if announce and console is None and os.environ.get("FRESHVIEW_PROGRESS") != "0":
        sys.stderr.write(f"{description}\n")
        sys.stderr.flush()
    with Progress(description, total, console=console, delay_s=delay_s) as shown:
        yield shown
