"""Signals during work: noted, heard at the end, and by whom they would have been heard before."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from freshview.errors import Cancelled
from freshview.runtime.cancellation import cancellable, check, still_watching

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in SIGNALS]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


def hearing(heard: list[object]) -> Callable[..., None]:
    return lambda number, _: heard.append(number)


def test_a_signal_is_heard_when_the_work_has_stopped() -> None:
    done = []

    @cancellable()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("the step goes on")
        try:
            check()
            done.append("never")
        finally:
            done.append("tidied up")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the step goes on", "tidied up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_work_that_ends_before_it_looks_is_done_and_the_signal_heard() -> None:
    with pytest.raises(KeyboardInterrupt), cancellable():
        signal.raise_signal(signal.SIGINT)


def test_a_handler_of_the_program_gets_it_and_the_work_is_cancelled() -> None:
    heard: list[object] = []
    signal.signal(signal.SIGTERM, hearing(heard))

    @cancellable()
    def work() -> None:
        signal.raise_signal(signal.SIGTERM)
        heard.append("before the check")
        check()
        heard.append("never")

    with pytest.raises(Cancelled) as cancelled:
        work()
    assert heard == ["before the check", signal.SIGTERM]
    assert cancelled.value.parameters == {"signal": "SIGTERM"}


def test_a_second_signal_does_not_wait() -> None:
    done = []

    @cancellable()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("first")
        signal.raise_signal(signal.SIGINT)
        done.append("second")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["first"]


def test_what_was_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with cancellable():
        signal.raise_signal(signal.SIGINT)
        check()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_error_of_the_work_passes_and_handlers_are_put_back() -> None:
    with pytest.raises(ZeroDivisionError), cancellable():
        _ = 1 / 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_set_meanwhile_counts_from_the_end_on() -> None:
    heard: list[object] = []

    @cancellable()
    def work() -> None:
        with still_watching():
            signal.signal(signal.SIGINT, hearing(heard))
        signal.raise_signal(signal.SIGINT)
        heard.append("before the end")

    with pytest.raises(Cancelled):
        work()
    assert heard == ["before the end", signal.SIGINT]


def test_other_threads_and_inner_work_are_not_concerned() -> None:
    done = []

    @cancellable()
    def other() -> None:
        check()
        done.append("thread")

    @cancellable()
    def work() -> None:
        with cancellable():
            signal.raise_signal(signal.SIGINT)
        done.append("inner")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "thread"]
