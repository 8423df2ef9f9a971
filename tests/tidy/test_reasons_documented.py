"""Every reason code that the source can give has its heading in docs/reasons.md, and no other has one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshview import errors
from freshview.runtime.recompute_reasons import WITHOUT_STATE
from freshview.runtime.suggesting import REFUSED

SOURCES = Path(__file__).parents[2] / "src" / "freshview"
PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"

ERRORS_AS_REASONS = {
    error.code for error in (*WITHOUT_STATE, *REFUSED) if error is not errors.ViewNotMaintainable
}
"""What ``reason_of`` is given; of ViewNotMaintainable the code of its own reason is kept."""


def sections() -> dict[str, str]:
    """The page's headings of the second level, each with the text below it."""
    parts = re.split(r"^## (\S+)$|^# .*$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {code: text for code, text in zip(parts[1::2], parts[2::2], strict=True) if code}


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def codes(tree: ast.AST, path: str = "") -> Iterator[str]:
    """The codes of the reasons that a module makes. A form that is not known here is an error."""
    for call in calls(tree, "Reason"):
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        code = call.args[0] if call.args else keywords["code"]
        match code:
            case ast.Constant(str() as text):
                yield text
            case ast.Attribute(ast.Name(error), "code") if hasattr(errors, error):
                yield getattr(errors, error).code
            case ast.Attribute(ast.Name("error"), "code") if path == "reasons.py":
                yield from ERRORS_AS_REASONS
            case ast.JoinedStr([ast.Constant("NOT_BY_"), _]):
                yield from techniques_refused(tree)
            case ast.JoinedStr([ast.Constant("SINGULARITY_"), _]):
                pass  # the calls of ``singularity`` have the rest of it
            case _:
                pytest.fail(
                    f"{path}:{call.lineno}: the code of this reason, {ast.unparse(code)}, cannot be"
                    " read off the source; write it as a string"
                )
    for call in calls(tree, "singularity"):
        assert isinstance(call.args[0], ast.Constant), f"{path}:{call.lineno}"
        yield f"SINGULARITY_{call.args[0].value}"


def techniques_refused(tree: ast.AST) -> Iterator[str]:
    """NOT_BY_… for each ``case Technique.X`` that can end in ``_not_for``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case) and isinstance(node.pattern, ast.MatchValue):
            value = node.pattern.value
            inside = ast.Module(node.body, [])
            if isinstance(value, ast.Attribute) and any(calls(inside, "_not_for")):
                yield f"NOT_BY_{value.attr}"


def given() -> dict[str, str]:
    """Each code in the source, with the module that it is in."""
    found = {}
    for module in sorted(SOURCES.rglob("*.py")):
        path = module.relative_to(SOURCES).as_posix()
        tree = ast.parse(module.read_text(encoding="utf-8"))
        found.update(dict.fromkeys(codes(tree, path), path))
    return found


def test_the_search_finds_every_form_of_a_code() -> None:
    text = """
Reason("PLAIN", a, b, c); Reason(code="NAMED", subject=a, why=b, do=c)
Reason(HistoryLost.code, a, b, c); Reason(f"NOT_BY_{t.name}", a, b, c)
singularity("ENDS", node, why)
match wanted:
    case Technique.COUNTING:
        raise NoRule(_not_for(wanted))
    case Technique.DELTA:
        pass
"""
    expected = {"PLAIN", "NAMED", "HISTORY_LOST", "NOT_BY_COUNTING", "SINGULARITY_ENDS"}
    assert set(codes(ast.parse(text))) == expected


def test_a_code_that_cannot_be_read_off_the_source_is_an_error() -> None:
    with pytest.raises(pytest.fail.Exception, match="write it as a string"):
        list(codes(ast.parse("Reason(some_code, a, b, c)"), "x.py"))


def test_every_code_has_a_heading_and_every_heading_a_code() -> None:
    found, written = given(), sections()
    missing = {code: path for code, path in found.items() if code not in written}
    assert not missing, (
        "docs/reasons.md lacks these codes of the source; add '## CODE' with **View.**,"
        f" **What happens.** and **Rewrite.** for each: {missing}"
    )
    left = sorted(set(written) - set(found))
    assert not left, f"docs/reasons.md has codes that nothing gives any more; remove them: {left}"


@pytest.mark.parametrize("code", sections())
def test_a_section_has_all_its_parts(code: str) -> None:
    text = sections()[code]
    places = [text.find(part) for part in ("**View.**", "**What happens.**", "**Rewrite.**")]
    assert min(places) > 0
    assert places == sorted(places)


def test_headings_are_unique() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(headings) == len(set(headings)) == len(sections())
