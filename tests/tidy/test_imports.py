"""The package tree: who may import whom, and where Spark may be imported."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "freshview"

# A folder imports only from itself and from what stands before it.
ORDER = (
    "errors",
    "faults",
    "reasons",
    "algebra",
    "frontend",
    "rewrite",
    "lineage",
    "delta",
    "counting",
    "change_table",
    "group_recompute",
    "filtering",
    "spatial",
    "storage",
    "sources",
    "planner",
    "advice",
    "sweep",
    "runtime",
    "advisor",
    "demo",
    "bench",
    "server",
    "cli",
)

PYSPARK_ALLOWED = ("frontend/", "planner/lower", "spatial/lower", "storage/spark", "sources/")
# The packages below the command line that run whole refreshes, and what measures and shows them.
PYSPARK_ALLOWED += ("runtime/", "demo/", "bench/")

STARTING = ("freshview.runtime.session", "freshview.runtime.progress")
MAY_START = ("runtime", "demo", "bench", "server", "cli")

MODULES = sorted(SOURCES.rglob("*.py"))


def name(module: Path) -> str:
    return module.relative_to(SOURCES).as_posix()


def part(module: Path) -> str:
    return module.relative_to(SOURCES).with_suffix("").parts[0]


def imports(module: Path, *, at_run_time: bool = False) -> Iterator[str]:
    """Every imported module; with `at_run_time` without those that only type checkers see."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    typing_only = {
        inner
        for node in ast.walk(tree)
        if at_run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 or part(module) != name(module), "no relative imports at the top"
            yield from [node.module or "", *(f"{node.module}.{a.name}" for a in node.names)]


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_folder_imports_only_from_folders_above_it(module: Path) -> None:
    if part(module) == "__init__":
        return
    assert part(module) in ORDER, f"{part(module)} has no place in the order of the tree"
    allowed = ORDER[: ORDER.index(part(module)) + 1]
    for imported in imports(module):
        if imported.startswith("freshview."):
            target = imported.split(".")[1]
            assert target in allowed or target not in ORDER, f"{name(module)} imports {imported}"


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_spark_is_imported_only_where_it_may_be(module: Path) -> None:
    if name(module).startswith(PYSPARK_ALLOWED):
        return
    for imported in imports(module, at_run_time=True):
        assert imported.split(".")[0] not in {"pyspark", "py4j"}, f"{name(module)}: {imported}"


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_only_what_runs_starts_spark_or_shows_progress(module: Path) -> None:
    if part(module) in {*MAY_START, "__init__"}:
        return
    for imported in imports(module):
        assert not imported.startswith(STARTING), f"{name(module)} imports {imported}"
