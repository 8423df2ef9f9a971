"""Every error code has its place in the documents."""

import re
from pathlib import Path

from freshview import errors
from freshview.errors import FreshviewError

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, FreshviewError) and kind is not FreshviewError
]


def headings() -> list[str]:
    text = DOCUMENT.read_text(encoding="utf-8")
    return re.findall(r"^#+ ([A-Z][A-Z0-9_]+)$", text, flags=re.MULTILINE)


def test_every_code_has_a_heading() -> None:
    assert {kind.code for kind in KINDS} <= set(headings())


def test_codes_and_headings_are_unique() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(codes) == len(set(codes))
    assert len(headings()) == len(set(headings()))


def test_every_error_says_what_why_and_what_to_do() -> None:
    for kind in KINDS:
        assert kind.what_template, kind
        assert kind.why_template, kind
        assert kind.do_template, kind
