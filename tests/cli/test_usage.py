from __future__ import annotations

import subprocess
import sys

import pytest

from freshview import __version__
from tests.cli.run import COMMANDS, in_process, own_process


def test_help_lists_every_command():
    found = in_process("--help")
    assert found.status == 0
    assert all(f"\n  {command} " in found.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_an_example_and_json(command):
    found = in_process(command, "--help")
    assert found.status == 0
    assert f"Example: freshview {command}" in found.out
    assert "--json" in found.out
    assert max(map(len, found.out.splitlines())) <= 100


def test_version():
    found = own_process("--version")
    assert (found.status, found.out) == (0, f"freshview {__version__}\n")


def test_help_and_init_load_no_spark(tmp_path):
    code = (
        "import sys; from typer.testing import CliRunner; from freshview.cli.main import app;"
        f"done = [CliRunner().invoke(app, a).exit_code for a in (['--help'], ['init', {str(tmp_path)!r}])];"
        "heavy = {'pyspark', 'pyarrow', 'pandas', 'deltalake', 'rich'} & set(sys.modules);"
        "sys.exit(f'{done} {heavy}' if any(done) or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("refresh", "--full", "--policy", "auto"),
        ("refresh", "--policy", "sometimes"),
        ("check", "--sample", "0"),
        ("check", "--sample", "1.5"),
        ("check", "--sample", "0.5", "--repair"),
        ("suggest",),
        ("suggest", "SELECT 1", "--view", "sales"),
        ("sql",),
        ("sql", "SELECT 1", "--file", __file__),
        ("sql", " ; -- nothing\n"),
        ("sql", "SELECT '\udcff'"),
        ("why",),
        ("why", "sales", "--key", "city"),
        ("why", "sales", "--key", "=Oslo"),
        ("why", "sales", "--key", "city=Oslo", "--key", "City=Rome"),
        ("why", "sales", "--limit", "0"),
        ("bench", "unknown"),
        ("bench", "basics", "--repeat", "0"),
        ("bench", "basics", "--sales", "1000"),
        ("bench", "change-tables", "--no-memory"),
        ("demo", "--path", "/"),
        ("vacuum", "--older-than", "0.9"),
        ("vacuum", "--older-than", "nan"),
        ("refresh", "--unknown"),
        ("unknown",),
    ],
)
def test_wrong_calls_end_with_2_and_say_why(arguments):
    found = in_process(*arguments)
    assert (found.status, found.out) == (2, "")
    assert "Error" in found.err


def test_wrong_calls_answer_in_json_too():
    found = own_process("refresh", "--full", "--policy", "auto", "--json")
    assert (found.status, found.err) == (2, "")
    assert found.answer == {
        "ok": False,
        "code": "USAGE",
        "error": "--full is --policy full: give one of them",
        "status": 2,
    }
    assert own_process("refresh", "--unknown", "--json").answer["code"] == "USAGE"


def test_no_arguments_show_the_help():
    found = own_process()
    assert found.status == 2
    assert "Usage: freshview" in found.out + found.err
