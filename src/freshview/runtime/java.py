"""Finding the Java that Spark will run on, before Spark fails without saying why."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from freshview.errors import JavaMissing, JavaTooOld

JAVA_NEEDED = 17
_USUAL_FOLDER = Path("/usr/lib/jvm")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its executable and its feature version, such as 17."""

    executable: Path
    version: int

    @property
    def home(self) -> Path:
        """The folder that JAVA_HOME should name, with symbolic links followed."""
        return self.executable.resolve().parent.parent


def find_java() -> Java:
    """The Java that Spark's start script would take, or else one in the usual folder.

    Raises JavaMissing when there is none and JavaTooOld when the one that would be taken cannot
    run Spark.
    """
    executable = _executable()
    if executable is None:
        searched = (
            f"JAVA_HOME ({_named_home() or 'unset'}) names no Java, java is not on PATH "
            f"and {_USUAL_FOLDER} holds none"
        )
        raise JavaMissing(needed=JAVA_NEEDED, searched=searched)
    version = _version(executable)
    if version < JAVA_NEEDED:
        raise JavaTooOld(java=str(executable), found=version, needed=JAVA_NEEDED)
    return Java(executable, version)


def _named_home() -> str:
    return os.environ.get("JAVA_HOME", "")


def _executable() -> Path | None:
    """JAVA_HOME first and PATH second, in the order of Spark's own script."""
    named = Path(_named_home()) / "bin" / "java"
    if _named_home() and os.access(named, os.X_OK):
        return named
    on_path = shutil.which("java")
    if on_path is not None:
        return Path(on_path)
    usual = sorted(_USUAL_FOLDER.glob("*/bin/java"), reverse=True)
    return next((java for java in usual if os.access(java, os.X_OK)), None)


def _version(executable: Path) -> int:
    """The feature version, from the release file if there is one: asking Java takes 0.1 s."""
    release = executable.resolve().parent.parent / "release"
    if release.is_file():
        found = parse_version(release.read_text(encoding="utf-8", errors="replace"))
        if found is not None:
            return found
    answer = subprocess.run(  # noqa: S603 - the Java that Spark itself would start
        [str(executable), "-version"], capture_output=True, text=True, check=False
    )
    return parse_version(answer.stderr) or 0


def parse_version(text: str) -> int | None:
    """The feature version in a release file or in the answer to `java -version`.

    Java 8 and older call themselves 1.8 and so on.
    """
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None
