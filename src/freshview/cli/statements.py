"""Splitting a file of SQL into its statements."""

from __future__ import annotations

import re

# What a semicolon does not end: quoted text and names, and comments. Spark reads both '' and \'
# as a quote within quotes; for finding the end of the text the two need no distinction.
_SKIPPED = re.compile(
    r"""
      '(?:[^'\\]|\\.)*'
    | "(?:[^"\\]|\\.)*"
    | `[^`]*`
    | --[^\n]*
    | /\*.*?\*/
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def split(text: str) -> list[str]:
    """The statements between semicolons, without those that are empty or only comments."""
    ends = [found.start() for found in _SKIPPED.finditer(text) if found["end"]]
    starts = [0, *(end + 1 for end in ends)]
    pieces = [text[a:b].strip() for a, b in zip(starts, [*ends, len(text)], strict=True)]
    return [piece for piece in pieces if _COMMENT.sub("", piece).strip()]
