"""How commands answer: tables and sentences for people, one JSON object for programs.

On success the object has ``"ok": true`` and what the command found; on failure ``"ok": false``, a
``code`` and the ``error`` text. It goes to standard output either way, and the exit code tells the
same: 0 done, 1 failed, 2 called wrongly, 130 and 143 cancelled by Ctrl-C and by SIGTERM.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer

from freshview.errors import FreshviewError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH = 100
FAILED = 1
USAGE = 2

UsageError: type[Exception] = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""What the parser raises when a command is called wrongly; Typer has no public name for it."""


@cache
def console() -> Console:
    """Standard output, at most 100 columns wide, in colour only on a terminal.

    Texts are printed as they are: most of them are names and values from outside, which may well
    contain what Rich would take for its marks, such as [/b] and :x:.
    """
    from rich.console import Console

    found = Console(highlight=False, markup=False, emoji=False)
    found.width = min(found.width, WIDTH) if found.is_terminal else WIDTH
    return found


def show(*parts: RenderableType) -> None:
    """Print tables and texts for people."""
    for part in parts:
        console().print(part)


def succeed(**found: object) -> None:
    """Print the JSON object of a command that did what it was asked to."""
    print(json_text({"ok": True, **found}))


def fail(code: str, text: str, *, as_json: bool, status: int = FAILED, **more: object) -> NoReturn:
    """Say what went wrong and end the command."""
    if as_json:
        print(json_text({"ok": False, "code": code, "error": text, "status": status, **more}))
    else:
        sys.stderr.write(text.rstrip() + "\n")
    raise typer.Exit(status)


def refuse(text: str) -> NoReturn:
    """End a command that was called wrongly, before anything is started."""
    raise UsageError(text)


@contextmanager
def failures(as_json: bool) -> Iterator[None]:
    """Turn errors of the block into an answer: the text of ours and of Spark's, no traceback."""
    try:
        yield
    except FreshviewError as error:
        fail(
            error.code,
            _with_notes(str(error), error),
            as_json=as_json,
            parameters=dict(error.parameters),
            why=error.why,
            do=error.do,
        )
    except (typer.Exit, typer.Abort, UsageError):
        raise
    except KeyboardInterrupt as stopped:
        number = signal.SIGTERM if isinstance(stopped, Terminated) else signal.SIGINT
        text = f"Cancelled by {number.name}; what was committed is whole, the rest is as it was."
        fail("CANCELLED", text, as_json=as_json, status=128 + number)
    except OSError as error:
        fail("FILE_ERROR", f"FILE_ERROR: {error}", as_json=as_json)
    except Exception as error:
        found = _of_spark(error)
        if found is None:
            if as_json:
                sys.stderr.write(traceback.format_exc())
                fail("UNEXPECTED", f"{type(error).__name__}: {error}", as_json=True)
            raise
        fail(found[0], _with_notes(found[1], error), as_json=as_json)


def _with_notes(text: str, error: Exception) -> str:
    """The text of an error and what was noted on its way, such as the view that it is about."""
    return "\n".join([text.rstrip(), *getattr(error, "__notes__", ())])


def _of_spark(error: Exception) -> tuple[str, str] | None:
    """The code and text of an error that Spark raised; None for any other."""
    errors, java = sys.modules.get("pyspark.errors"), sys.modules.get("py4j.protocol")
    if java is not None and isinstance(error, java.Py4JJavaError):
        return _of_java(error.java_exception)
    if errors is None or not isinstance(error, errors.PySparkException):
        return None
    code = error.getCondition() or "SPARK_ERROR"
    text = (error.getMessage() or str(error)).split("\n\nJVM stacktrace")[0].rstrip()
    return code, text if text.startswith((code, f"[{code}]")) else f"{code}: {text}"


def _of_java(error: Any) -> tuple[str, str]:
    """The same of an error that PySpark has no class for: a wrapper, so its last cause counts."""
    while (cause := error.getCause()) is not None:
        error = cause
    text = str(error.getMessage() or error.toString()).rstrip()
    named = re.match(r"\[([A-Z][A-Z0-9_.]*)\]", text)
    return (named[1], text) if named else ("SPARK_ERROR", f"SPARK_ERROR: {text}")


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def hear_termination() -> None:
    """Let SIGTERM end the command with an answer, as SIGINT does."""

    def terminated(*_: object) -> NoReturn:
        raise Terminated

    signal.signal(signal.SIGTERM, terminated)


def json_text(value: object, *, indent: int | None = None, ascii_only: bool = True) -> str:
    """A value as JSON: every kind of value has a text, and that text is always JSON."""
    found = _jsonable(value)
    return json.dumps(found, allow_nan=False, indent=indent, ensure_ascii=ascii_only)


def _jsonable(value: object) -> Any:
    """A value of nothing but what JSON has; numbers it has none for as Spark's to_json does."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if isfinite(value):
            return value
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {_key(key): _jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_jsonable(each) for each in value]
    return _jsonable(plain(value))


def _key(key: object) -> str:
    found = _jsonable(key)
    return found if isinstance(found, str) else json.dumps(found)


def plain(value: object) -> Any:
    """A value that JSON has no form for: exact numbers and times as text."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, dt.date | dt.datetime | dt.time):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)
