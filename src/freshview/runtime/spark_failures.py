"""What goes wrong inside Spark and has no condition of its own, as errors that can be read.

An expression that fails raises Spark's own error with its condition, and that goes on as it is. A
lost task, a full heap or a JVM that is gone come as whatever the bridge to Java makes of them, with a
trace of many lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError

from freshview.errors import FreshviewError, OutOfMemory, SparkFailed, SparkGone, first_line
from freshview.frontend.scala import JavaObject

_NO_MEMORY = "java.lang.OutOfMemoryError"
_CAUSES_MAX = 20
_WAITED = "Exception thrown in awaitResult:"
"""All that Spark says where one thread waited for another; the cause says what happened."""
_NEWLINE = "\n"


@contextmanager
def spark_failures(view: str) -> Iterator[None]:
    """Tell failures of Spark in the block as failures of work on a view."""
    try:
        yield
    except Py4JJavaError as error:
        raise _of_java(view, error) from error
    except (Py4JError, ConnectionError) as error:
        raise SparkGone(name=view, reason=first_line(error)) from error


def _of_java(view: str, error: Py4JJavaError) -> FreshviewError:
    """The error by its causes: what a task died of is at the end of a chain of them, or its text."""
    causes = list(itertools.islice(_causes(error.java_exception), _CAUSES_MAX))
    told = next((one for one in causes if _message(one) != _WAITED), causes[0])
    reason = f"{told.getClass().getSimpleName()}: {_message(told).partition(_NEWLINE)[0]}"
    kinds = [one.getClass().getName() for one in causes]
    if _NO_MEMORY in kinds or _NO_MEMORY in reason:
        return OutOfMemory(name=view, reason=reason)
    return SparkFailed(name=view, reason=reason)


def _causes(error: JavaObject | None) -> Iterator[JavaObject]:
    while error is not None:
        yield error
        error = error.getCause()


def _message(error: JavaObject) -> str:
    return str(error.getMessage() or "").strip()
