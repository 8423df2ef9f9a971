"""Nothing that is read becomes code: no pickles, no evaluation of text."""

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "freshview"
MODULES = sorted(SOURCES.rglob("*.py"))
UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}


def unsafe(source: str) -> set[str]:
    """The names in a module's text by which data could become code."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & UNSAFE_MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").split(".")[0]} & UNSAFE_MODULES
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & UNSAFE_CALLS
    return found


def test_the_search_finds_what_it_looks_for() -> None:
    text = "import pickle\nfrom yaml import load\neval('1')"
    assert unsafe(text) == {"pickle", "yaml", "eval"}


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.relative_to(SOURCES).as_posix())
def test_no_data_becomes_code(module: Path) -> None:
    assert unsafe(module.read_text(encoding="utf-8")) == set()
