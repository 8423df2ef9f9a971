"""Leases: one holder, a rising fence, and an end for holders that die, pause or are cut off."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import pytest

from freshview.errors import Busy, LeaseLost
from freshview.runtime import lease as module
from freshview.runtime.lease import Lease, lease

SHORT_S = 0.5


def _hold(folder: str, expires_s: float, pipe: Connection) -> None:
    """Takes the lease, says so, and on each word from the pipe tries to write."""
    with lease(Path(folder), expires_s=expires_s) as held:
        pipe.send(held.fence)
        while pipe.recv() == "write":
            try:
                held.check()
                pipe.send("written")
            except LeaseLost as lost:
                pipe.send(str(lost))


@contextmanager
def holder(folder: Path, expires_s: float) -> Iterator[tuple[int, int, Connection]]:
    """Another process that holds the lease: its process, its fence, and the way to talk to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(str(folder), expires_s, theirs))
    process.start()
    try:
        assert ours.poll(60)
        assert process.pid is not None
        yield process.pid, ours.recv(), ours
    finally:
        process.kill()
        process.join()


def test_it_excludes_and_each_holder_has_a_higher_fence(tmp_path: Path) -> None:
    with lease(tmp_path) as first:
        first.check()
        with pytest.raises(Busy) as busy, lease(tmp_path, wait_s=0.05):
            pass
        assert busy.value.parameters["seconds"] == 0.05
    with lease(tmp_path) as second:
        second.check()
        assert second.fence > first.fence
        with pytest.raises(LeaseLost):
            first.check()
    assert [file.name for file in tmp_path.iterdir()] == [f"{second.fence:012d}"]


def test_an_error_inside_gives_it_back(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lease(tmp_path):
        _ = 1 / 0
    with lease(tmp_path, wait_s=0.05):
        pass


def test_many_threads_hold_it_one_at_a_time(tmp_path: Path) -> None:
    inside, most, fences = 0, 0, []

    def work() -> None:
        nonlocal inside, most
        for _ in range(10):
            with lease(tmp_path) as held:
                inside += 1
                most = max(most, inside)
                fences.append(held.fence)
                time.sleep(0.001)
                held.check()
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert fences == sorted(set(fences))
    assert len(fences) == 60


def test_a_killed_holder_frees_it_at_once(tmp_path: Path) -> None:
    with holder(tmp_path, expires_s=600) as (process, fence, _):
        with pytest.raises(Busy), lease(tmp_path, wait_s=0.1):
            pass
        os.kill(process, signal.SIGKILL)
        with lease(tmp_path, wait_s=10, expires_s=600) as held:
            assert held.fence > fence


def test_a_paused_holder_loses_it_and_cannot_write_when_it_wakes(tmp_path: Path) -> None:
    with holder(tmp_path, SHORT_S) as (process, fence, pipe):
        pipe.send("write")
        assert pipe.recv() == "written"
        with pytest.raises(Busy), lease(tmp_path, wait_s=3 * SHORT_S, expires_s=SHORT_S):
            pass  # it lives, however long one waits
        os.kill(process, signal.SIGSTOP)
        with lease(tmp_path, wait_s=60, expires_s=SHORT_S) as held:
            assert held.fence > fence
            os.kill(process, signal.SIGCONT)
            pipe.send("write")
            assert pipe.recv().startswith("LEASE_LOST")
            held.check()
        pipe.send("end")
        with lease(tmp_path, wait_s=1) as after:
            assert after.fence > held.fence


def test_a_holder_that_paused_too_long_loses_it_even_if_nobody_came(tmp_path: Path) -> None:
    with holder(tmp_path, SHORT_S) as (process, fence, pipe):
        os.kill(process, signal.SIGSTOP)
        time.sleep(2 * SHORT_S)
        os.kill(process, signal.SIGCONT)
        pipe.send("write")
        assert pipe.recv().startswith("LEASE_LOST")
        pipe.send("end")
        with lease(tmp_path, wait_s=60, expires_s=SHORT_S) as held:
            assert held.fence > fence


@pytest.mark.parametrize("elsewhere", [True, False])
def test_without_locks_or_on_another_machine_only_time_tells(
    elsewhere: bool, tmp_path: Path
) -> None:
    left = tmp_path / f"{7:012d}"
    left.write_bytes(b"another machine" if elsewhere else b"")
    with patch("freshview.runtime.lease.fcntl.flock", side_effect=None if elsewhere else OSError):
        started = time.monotonic()
        with lease(tmp_path, wait_s=60, expires_s=SHORT_S) as held:
            assert time.monotonic() - started >= SHORT_S
            assert held.fence == 8
        with lease(tmp_path, wait_s=0.1, expires_s=60) as again:
            assert again.fence == 9


def test_a_number_that_others_had_meanwhile_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw that the lease is free, and slept while others had the next two numbers."""
    with lease(tmp_path):
        pass
    linked = module._linked

    def late(folder: Path, fence: int, expires_s: float) -> Lease | None:
        monkeypatch.setattr(module, "_linked", linked)
        with lease(tmp_path):
            pass
        with lease(tmp_path) as current:
            assert linked(folder, fence, expires_s) is None
            current.check()
        return None

    monkeypatch.setattr(module, "_linked", late)
    with lease(tmp_path) as held:
        assert held.fence == 4
    assert [file.name for file in tmp_path.iterdir()] == [f"{4:012d}"]
