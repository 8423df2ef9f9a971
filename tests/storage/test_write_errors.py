"""Refusals of the system are told from errors that only quote the same words."""

from __future__ import annotations

import errno

import pytest
from deltalake.exceptions import DeltaError

from freshview.errors import WriteFailed
from freshview.storage.write_errors import native_writes, spark_writes


class Java:
    """A throwable of the JVM, as py4j shows it."""

    def __init__(self, text: str, cause: Java | None = None) -> None:
        self._text, self._cause = text, cause

    def toString(self) -> str:  # noqa: N802 (Java's name)
        return self._text

    def getCause(self) -> Java | None:  # noqa: N802 (Java's name)
        return self._cause


class OfJava(Exception):
    """An error that carries a throwable."""

    def __init__(self, java: Java) -> None:
        super().__init__(java.toString())
        self.java_exception = java


LOST = "org.apache.spark.SparkException: Job aborted: Lost task 0.0: {}\n\tat java.base/x.y(Z:1)"
REFUSED = {
    "itself": Java("java.io.IOException: No space left on device"),
    "with a file": Java("java.nio.file.FileSystemException: /a/b: Read-only file system"),
    "as a cause": Java("org.x.Failed: job", Java("java.io.IOException: File too large")),
    "in a task": Java(LOST.format("java.io.IOException: No space left on device")),
    "of Hadoop": Java("org.apache.hadoop.fs.FSError: java.io.IOException: File too large"),
}
OTHERS = {
    "a value": Java("[CAST_INVALID_INPUT] The value 'No space left on device' of the type STRING"),
    "a value in a task": Java(LOST.format("the value 'java.io.IOException: File too large' is")),
    "a user's message": Java("[USER_RAISED_EXCEPTION] No space left on device"),
    "a lost file": Java("java.io.FileNotFoundException: /a (No such file or directory)"),
    "a right": Java("java.io.FileNotFoundException: /a (Permission denied)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_java_was_refused(case: str) -> None:
    with pytest.raises(WriteFailed) as caught, spark_writes("/a/table"):
        raise OfJava(REFUSED[case])
    assert caught.value.parameters["path"] == "/a/table"
    assert isinstance(caught.value.__cause__, OfJava)


@pytest.mark.parametrize("case", OTHERS)
def test_other_errors_of_java_stay_what_they_are(case: str) -> None:
    with pytest.raises(OfJava), spark_writes("/a/table"):
        raise OfJava(OTHERS[case])


def test_what_python_was_refused() -> None:
    with pytest.raises(WriteFailed) as caught, spark_writes():
        raise OSError(errno.ENOSPC, "no matter")
    assert caught.value.parameters["reason"] == "No space left on device"
    with pytest.raises(FileNotFoundError), spark_writes():
        raise FileNotFoundError(errno.ENOENT, "gone")


def test_what_the_native_library_was_refused() -> None:
    with pytest.raises(WriteFailed) as caught, native_writes("/a/table"):
        raise DeltaError("Unable to copy data to file: File too large (os error 27)")
    assert caught.value.parameters == {"path": "/a/table", "reason": "File too large"}
    with pytest.raises(WriteFailed) as caught, native_writes("/a/table"):
        raise DeltaError('Error: Os { code: 13, kind: PermissionDenied, message: "denied" }')
    assert caught.value.parameters["reason"] == "Permission denied"
    for text in ("(os error 27) was the value", "No such file (os error 2)", "File too large"):
        with pytest.raises(DeltaError), native_writes("/a/table"):
            raise DeltaError(text)
