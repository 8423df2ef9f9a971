"""Each example prints what the file of the same name beside it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example_prints_what_it_should(example):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == example.with_suffix(".txt").read_text()


def test_there_are_examples_and_each_has_its_output():
    assert EXAMPLES
    assert all(example.with_suffix(".txt").exists() for example in EXAMPLES)
