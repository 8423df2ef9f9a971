"""Which folders can hold a table: those that both Delta libraries find under the same name.

The native library makes a URL of a path and a path of the URL again. On that way it decodes what
looks encoded (a folder `a%20b` becomes `a b`, `%2e%2e` the folder above), takes a backslash for a
slash, and ends the process's thread at brackets, `|` and `^`. A table there would be written to one
place and read from another, so such a folder is refused before anything is written.
"""

from __future__ import annotations

import os
import unicodedata

from freshview.errors import InvalidPath

_NOT_IN_A_PATH = frozenset("%[]|^\\")
_NO_CHARACTERS = ("Cc", "Cs")
_PART_BYTES_MAX = 255
_PATH_BYTES_MAX = 3072
"""The system allows 4096; the names of a table's files come behind it."""


def check_place(path: str) -> None:
    """Raise InvalidPath for a local path that the libraries do not take as it stands."""
    if not path:
        raise InvalidPath(path=path, reason="it is empty")
    found = sorted({sign for sign in path if _is_misread(sign)})
    if found:
        shown = " ".join(repr(sign) for sign in found)
        raise InvalidPath(path=path, reason=f"the Delta libraries cannot read a path with {shown}")
    encoded = os.fsencode(path)
    if len(encoded) > _PATH_BYTES_MAX or max(map(len, encoded.split(b"/"))) > _PART_BYTES_MAX:
        reason = f"a name has at most {_PART_BYTES_MAX} bytes and a path {_PATH_BYTES_MAX}"
        raise InvalidPath(path=path, reason=reason)


def _is_misread(sign: str) -> bool:
    return sign in _NOT_IN_A_PATH or unicodedata.category(sign) in _NO_CHARACTERS
