"""The two Delta Lake jars that Spark lacks: cached in a folder of ours and checked by hash.

Delta's package names 33 jars, and Spark has all the others that we need. The first start copies
the two from an ivy or Maven cache of this user if they are there, and else lets Spark's own
resolver fetch them, with its hundred lines of output kept away from the user.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.find_spark_home import _find_spark_home

from freshview.errors import JarsCorrupt, JarsUnreachable
from freshview.runtime.progress import progress


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar with the hash of the file that this version was tested with."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name under which the jar is cached."""
        return f"{self.name}-{self.version}.jar"


DELTA_JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.1_2.13",
        "4.4.0",
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)

# What Delta's package names beyond the two. These serve Delta's kernel readers and the Unity
# Catalog, which we do not use; everything below them falls away with them.
_EXCLUDED = (
    "io.delta:delta-kernel-api",
    "io.delta:delta-kernel-defaults",
    "io.delta:delta-kernel-unitycatalog",
    "io.unitycatalog:*",
)


def freshview_home() -> Path:
    """The folder for what freshview keeps per user: $FRESHVIEW_HOME, or one in the user's cache."""
    named = os.environ.get("FRESHVIEW_HOME")
    if named:
        return Path(named).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().absolute() / "freshview"


def spark_home() -> Path:
    """The folder of the Spark that PySpark starts."""
    return Path(_find_spark_home())  # type: ignore[no-untyped-call]


def delta_jars(resolver_settings: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Paths of the Delta Lake jars, each with the expected hash; fetched when they are not cached.

    `resolver_settings` are Spark settings for the resolver, such as spark.jars.ivySettings. Raises
    JarsUnreachable when a jar is nowhere and cannot be fetched, JarsCorrupt when a cached or
    fetched file has another hash.
    """
    folder = freshview_home() / "jars"
    missing = [jar for jar in DELTA_JARS if not _cached(folder, jar) and not _seed(folder, jar)]
    if missing:
        with progress("Fetching the Delta Lake jars (only the first time)", announce=True):
            _resolve(folder, missing, resolver_settings or {})
    return tuple(folder / jar.file_name for jar in DELTA_JARS)


def _cached(folder: Path, jar: Jar) -> bool:
    path = folder / jar.file_name
    if not path.is_file():
        return False
    _check(path, jar)
    return True


def _check(path: Path, jar: Jar) -> None:
    found = _sha256(path)
    if found != jar.sha256:
        raise JarsCorrupt(jar=str(path), found=found, expected=jar.sha256)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seed(folder: Path, jar: Jar) -> bool:
    """Copy the jar from a cache of another tool, if one has exactly this file."""
    for candidate in _other_caches(jar):
        if candidate.is_file() and _sha256(candidate) == jar.sha256:
            _place(candidate, folder / jar.file_name)
            return True
    return False


def _other_caches(jar: Jar) -> Iterator[Path]:
    home = Path.home()
    for ivy in (home / ".ivy2.5.2", home / ".ivy2"):
        yield ivy / "jars" / f"{jar.group}_{jar.file_name}"
        yield ivy / "cache" / jar.group / jar.name / "jars" / jar.file_name
    group = Path(*jar.group.split("."))
    yield home / ".m2" / "repository" / group / jar.name / jar.version / jar.file_name


def _place(source: Path, target: Path) -> None:
    """Copy so that a reader beside us sees the whole file or none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as scratch:
        scratch_path = Path(scratch.name)
    shutil.copyfile(source, scratch_path)
    scratch_path.chmod(0o644)
    scratch_path.replace(target)


def _resolve(folder: Path, missing: list[Jar], settings: Mapping[str, str]) -> None:
    """Let Spark's resolver fetch the missing jars into a scratch folder, then take them over."""
    with tempfile.TemporaryDirectory(prefix="freshview-ivy-") as scratch:
        ivy = Path(scratch)
        answer = _run_resolver(ivy, settings)
        for jar in missing:
            fetched = ivy / "jars" / f"{jar.group}_{jar.file_name}"
            if not fetched.is_file():
                raise JarsUnreachable(
                    jars=", ".join(jar.file_name for jar in missing),
                    folder=str(folder),
                    reason=_reason(answer),
                )
            _check(fetched, jar)
            _place(fetched, folder / jar.file_name)


def _run_resolver(ivy: Path, settings: Mapping[str, str]) -> str:
    """Start Spark's gateway with the packages named and its input closed.

    The gateway resolves the packages, starts to listen, reads the end of its input and ends.
    """
    main = DELTA_JARS[0]
    conf = {
        "spark.jars.packages": f"{main.group}:{main.name}:{main.version}",
        "spark.jars.excludes": ",".join(_EXCLUDED),
        "spark.driver.extraJavaOptions": " ".join(_proxy_options()),
        **settings,
        "spark.jars.ivy": str(ivy),
    }
    ivy_settings = os.environ.get("FRESHVIEW_IVY_SETTINGS")
    if ivy_settings:
        conf["spark.jars.ivySettings"] = ivy_settings
    command = [str(spark_home() / "bin" / "spark-submit")]
    for key, value in conf.items():
        command += ["--conf", f"{key}={value}"]
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(ivy / "connection"),
    }
    answer = subprocess.run(  # noqa: S603 - Spark's own script from the installed package
        [*command, "pyspark-shell"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return answer.stdout


def _proxy_options() -> Iterator[str]:
    """Java options for the proxy in the environment, which Java does not read by itself."""
    for scheme in ("http", "https"):
        named = os.environ.get(f"{scheme}_proxy") or os.environ.get(f"{scheme.upper()}_PROXY")
        proxy = urlsplit(named or "")
        if proxy.hostname:
            yield f"-D{scheme}.proxyHost={proxy.hostname}"
            yield f"-D{scheme}.proxyPort={proxy.port or 80}"


def _reason(answer: str) -> str:
    """The line of the resolver's answer that says most about why it failed."""
    lines = [line.strip() for line in answer.splitlines()]
    for telling in ("Server access error", "UnknownHost", "Exception", "not found", "unresolved"):
        for line in lines:
            if telling in line:
                return f"the resolver of Spark said: {line}"
    return "the resolver of Spark said: " + (lines[-1] if lines else "nothing")
