import io

import pytest
from rich.console import Console

from freshview.runtime.progress import Progress, progress


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_nothing_is_shown_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("Reading", total=3, delay_s=0) as shown:
        shown.advance()
        shown.describe("Writing")
    assert capfd.readouterr() == ("", "")
    assert shown.completed == 1


def test_rare_work_is_announced_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("Fetching", announce=True):
        pass
    assert capfd.readouterr() == ("", "Fetching\n")


def test_the_announcement_can_be_turned_off(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRESHVIEW_PROGRESS", "0")
    with progress("Fetching", announce=True):
        pass
    assert capfd.readouterr() == ("", "")


def test_quick_work_stays_invisible() -> None:
    console = terminal()
    with Progress("Reading", 3, console=console, delay_s=3600) as shown:
        shown.advance(3)
        assert not shown.visible
    assert written(console) == ""


def test_a_bar_counts_steps_and_says_what_is_done() -> None:
    console = terminal()
    with Progress("Reading", 3, console=console, delay_s=3600) as shown:
        shown.advance()
        shown._show()
        assert shown.visible
        shown.describe("Writing")
        shown.advance(2)
    assert not shown.visible
    assert "Writing" in written(console)
    assert "3/3" in written(console)


def test_a_line_that_comes_too_late_does_not_come() -> None:
    console = terminal()
    with Progress("Reading", None, console=console, delay_s=3600) as shown:
        pass
    shown._show()
    assert not shown.visible
    assert written(console) == ""
