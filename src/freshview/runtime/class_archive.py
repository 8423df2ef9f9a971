"""Where the JVM finds Spark's classes already parsed and verified, so that a start costs half.

Java can store the classes that a run has loaded in a file and map it at the next start (class data
sharing). The file holds for exactly one Java and one class path, so its name carries a digest of
both: after an upgrade the old file is simply not found. `warm_up` makes it; without it everything
works, only slower.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from freshview.runtime.jars import freshview_home, spark_home
from freshview.runtime.java import Java

KEPT_ARCHIVES = 3


def archive_path(java: Java, jars: Iterable[Path]) -> Path:
    """The file for this Java, this Spark and these jars, whether or not it exists yet."""
    digest = hashlib.sha256()
    for line in _identity(java, jars):
        digest.update(line.encode())
    return freshview_home() / "classes" / f"{digest.hexdigest()[:24]}.jsa"


def archive_options(java: Java, jars: Iterable[Path], given: str) -> tuple[str, ...]:
    """Java options that use the archive, none when there is none or the caller names one.

    A file that does not fit after all is ignored by the JVM, and its remarks about that are
    turned off. FRESHVIEW_CLASS_ARCHIVE=0 starts without.
    """
    if os.environ.get("FRESHVIEW_CLASS_ARCHIVE") == "0" or "Archive" in given:
        return ()
    path = archive_path(java, jars)
    if not path.is_file():
        return ()
    return (f'"-XX:SharedArchiveFile={path}"', "-Xshare:auto", "-Xlog:cds*=off")


def drop_old_archives(folder: Path) -> None:
    """Keep the newest few archives: each is some 180 MB, and an upgrade leaves one behind."""
    archives = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[KEPT_ARCHIVES:]:
        old.unlink(missing_ok=True)


def _identity(java: Java, jars: Iterable[Path]) -> Iterator[str]:
    """What the JVM compares before it trusts an archive: itself and each file of the class path."""
    release = java.home / "release"
    yield f"{java.home} {java.version}\n"
    yield release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    for jar in [*jars, *sorted((spark_home() / "jars").iterdir())]:
        status = jar.stat()
        yield f"{jar} {status.st_size} {int(status.st_mtime)}\n"
