"""The scripts of the repository: they parse, they can be run, and they say what is missing."""

import os
import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = ["scripts/setup", "scripts/lock", ".ci/run"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_parses_and_can_be_run(script: str) -> None:
    assert os.access(REPOSITORY / script, os.X_OK)
    done = subprocess.run(
        ["bash", "-n", REPOSITORY / script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_setup_names_a_java_that_is_too_old(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    # A copy, so that a set-up of this checkout that is under way is not waited for.
    script = tmp_path / "scripts" / "setup"
    script.parent.mkdir()
    script.write_bytes((REPOSITORY / "scripts" / "setup").read_bytes())
    done = subprocess.run(
        ["bash", script],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"JAVA_TOO_OLD: {java} is Java 8, and Spark runs on Java 17")


def test_every_target_of_the_makefile_is_explained() -> None:
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)
    assert phony is not None
    explained = set(re.findall(r"^([a-z]+):.*## ", text, flags=re.MULTILINE))
    assert set(phony.group(1).split()) == explained
