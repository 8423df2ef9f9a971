from __future__ import annotations

import pytest

from freshview.cli.statements import split


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT \";\", `a;b`", ["SELECT ';'", 'SELECT ";", `a;b`']),
        ("SELECT 'it''s; here'; X", ["SELECT 'it''s; here'", "X"]),
        (r"SELECT 'a\';b'; X", [r"SELECT 'a\';b'", "X"]),
        ("-- one; two\nSELECT 1; -- end;", ["-- one; two\nSELECT 1"]),
        ("/* a; b */ SELECT 1; /* c; */", ["/* a; b */ SELECT 1"]),
        ("  ;; ; ", []),
    ],
)
def test_split(text, statements):
    assert split(text) == statements
