"""The dispatch table and the operators' pages say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshview.planner.dispatch import TABLE, TECHNIQUES, Hole, Rule

FOLDER = Path(__file__).parents[2] / "docs" / "operators"
PAGED = [name for name, row in TABLE.items() if any(isinstance(c, Rule) for c in row.values())]
OTHERS = {"README", "counting", "recompute"}


def page(operator: str) -> str:
    return (FOLDER / f"{operator.replace(' ', '-')}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("operator", PAGED)
def test_every_operator_has_its_page_with_all_it_needs(operator: str) -> None:
    text = page(operator)
    for part in ("**Class:**", "**Code:**", "**Example", "**Plan.**", "**Limits.**"):
        assert part in text, part


@pytest.mark.parametrize("operator", PAGED)
def test_the_page_has_the_rules_of_the_table(operator: str) -> None:
    lines = page(operator).splitlines()
    for technique in TECHNIQUES:
        cell = TABLE[operator][technique]
        if isinstance(cell, Rule):
            assert f"| {technique.value} | {cell.formula} | {cell.source} |" in lines
        else:
            assert f"| {technique.value} | none | {cell.why} |" in lines


def test_no_page_is_left_over_and_none_is_missing_in_the_overview() -> None:
    pages = {file.stem for file in FOLDER.glob("*.md")}
    assert pages == {name.replace(" ", "-") for name in PAGED} | OTHERS
    overview = (FOLDER / "README.md").read_text(encoding="utf-8")
    for operator, row in TABLE.items():
        target = operator.replace(" ", "-") if operator in PAGED else "recompute"
        marks = " | ".join("—" if isinstance(row[t], Hole) else "yes" for t in TECHNIQUES)
        assert f"| [{operator}]({target}.md) | {marks} |" in overview.splitlines()


def test_the_code_that_a_page_names_is_there() -> None:
    source = FOLDER.parents[1] / "src" / "freshview"
    for operator in PAGED:
        line = next(x for x in page(operator).splitlines() if "**Code:**" in x)
        named = line.split("**Code:**")[1].replace("`", "").rstrip(".").split(",")
        for path in named:
            assert (source / path.strip()).exists(), path
