"""What every tracked file must keep to."""

import re
import subprocess
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LINES_MAX = 500
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "core", "manager"}

# Written in pieces so that this file does not contain what it looks for.
MACHINE_PATHS = [
    "/" + folder for folder in ("root/", "home/", "Users/", "work/", "opt/wheels", "tmp/fv")
]
REGISTRIES = [
    ".".join(host)
    for host in (
        ("pypi", "org"),
        ("files", "pythonhosted"),
        ("repo1", "maven"),
        ("repo", "maven"),
        ("registry", "npmjs"),
        ("repos", "spark-packages"),
        ("conda", "anaconda"),
    )
]


@cache
def tracked() -> tuple[Path, ...]:
    """The files in git, or those in the folders of the project where there is no git."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        names = [REPOSITORY / line for line in listed if line]
    except (OSError, subprocess.CalledProcessError):
        names = [p for top in ("src", "tests", "docs") for p in (REPOSITORY / top).rglob("*")]
    return tuple(path for path in names if path.is_file() and not path.is_symlink())


def texts() -> list[tuple[str, str]]:
    found = []
    for path in tracked():
        raw = path.read_bytes()
        if b"\0" not in raw[:8000]:
            found.append((path.relative_to(REPOSITORY).as_posix(), raw.decode("utf-8", "replace")))
    return found


def test_no_python_file_is_too_long() -> None:
    long = {
        name: len(text.splitlines())
        for name, text in texts()
        if name.endswith(".py") and len(text.splitlines()) > LINES_MAX
    }
    assert not long


def test_there_are_no_drawers() -> None:
    names = [path.relative_to(REPOSITORY) for path in tracked() if path.suffix == ".py"]
    drawers = [
        name.as_posix()
        for name in names
        if DRAWERS & {*name.parts[:-1], name.stem} and name.parts[0] in {"src", "tests", "bench"}
    ]
    assert not drawers


def test_no_machine_path_is_written_down() -> None:
    pattern = re.compile(r"(?<![\w.$}~-])(?:" + "|".join(map(re.escape, MACHINE_PATHS)) + ")")
    found = [
        f"{name}:{number}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


def test_no_registry_is_written_down() -> None:
    found = [
        f"{name}: {host}" for name, text in texts() for host in REGISTRIES if host in text.lower()
    ]
    assert not found


def test_locks_carry_hashes_and_no_addresses() -> None:
    for lock in ("requirements.lock", "bootstrap.lock"):
        text = (REPOSITORY / lock).read_text(encoding="utf-8")
        assert "://" not in text
        assert not re.search(
            r"^\s*-", re.sub(r"^ +--hash=.*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE
        )
        pins = re.findall(
            r"^[a-z0-9][\w.-]*==[^\s]+.*\\\n +--hash=sha256:", text, flags=re.MULTILINE
        )
        assert len(pins) == len(re.findall(r"^[a-z0-9]", text, flags=re.MULTILINE))


def test_the_bootstrap_is_part_of_the_lock() -> None:
    def pins(lock: str) -> set[str]:
        text = (REPOSITORY / lock).read_text(encoding="utf-8")
        return set(re.findall(r"^[a-z0-9][\w.-]*==[^\s;]+", text, flags=re.MULTILINE))

    assert pins("bootstrap.lock") <= pins("requirements.lock")
