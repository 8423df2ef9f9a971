"""The embedded local Spark: quick to start, silent, and configured for Delta Lake."""

import atexit
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.java_gateway import JavaClass, JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from freshview.errors import SparkWithoutDelta
from freshview.runtime.cancellation import still_watching
from freshview.runtime.class_archive import archive_options
from freshview.runtime.jars import delta_jars
from freshview.runtime.java import find_java

_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_RESOLVER_SETTINGS = ("spark.jars.ivySettings", "spark.jars.repositories")
_GIB = 1024**3
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark logs a failed query as one line of many kilobytes; the exception says the same."""

# The JVM says this once per start because Spark asks for the vector module; nobody can act on it.
_JVM_NOISE = (b"WARNING: Using incubator modules: jdk.incubator.vector",)


def spark_session(
    *,
    master: str = "local[*]",
    memory: str | None = None,
    app_name: str = "freshview",
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active Spark session, or a new embedded one that can read and write Delta tables.

    `memory` is the driver's heap, such as "2g"; by default a quarter of the machine's memory, at
    most 4 GiB. `extra` are Spark settings that win over ours. A session that is already active is
    reused as it is; SparkWithoutDelta is raised when it lacks Delta Lake.
    """
    active = _active_session()
    if active is not None:
        check_delta(active)
        return active
    environment = _start_environment()
    settings = embedded_settings(master=master, memory=memory, app_name=app_name, extra=extra or {})
    with _environment(environment), still_watching():
        context = _start_context(settings)
    session = SparkSession.builder.getOrCreate()
    _check_delta_classes(context)
    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    return session


def check_delta(spark: SparkSession) -> None:
    """Raise SparkWithoutDelta unless the session has Delta's extension and catalog."""
    missing = []
    if _EXTENSION not in (spark.conf.get("spark.sql.extensions", None) or ""):
        missing.append("its extension is not in spark.sql.extensions")
    if spark.conf.get("spark.sql.catalog.spark_catalog", None) != _CATALOG:
        missing.append("spark.sql.catalog.spark_catalog is not its catalog")
    if missing:
        raise SparkWithoutDelta(missing=" and ".join(missing))


def embedded_settings(
    *, master: str, memory: str | None, app_name: str, extra: Mapping[str, str]
) -> dict[str, str]:
    """The Spark settings of an embedded session, the ones in `extra` last."""
    scratch = _scratch_folder()
    settings = {
        "spark.master": master,
        "spark.app.name": app_name,
        "spark.driver.memory": memory or default_memory(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": _EXTENSION,
        "spark.sql.catalog.spark_catalog": _CATALOG,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # The default of 50 made each read of a small table ten times slower.
        "spark.databricks.delta.snapshotPartitions": "1",
        # Delta's own queries, the views' and the small plans together need more than the 100 of Spark.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Each hash table, sort and broadcast takes a page at least. Spark's own choice for a heap of 4
        # GiB is 64 MiB, so that a plan of thirty small joins had the JVM do nothing but collect garbage.
        "spark.buffer.pageSize": "2m",
    }
    settings.update(extra)
    settings.update(_class_path_settings(master, scratch, extra))
    return settings


def _class_path_settings(master: str, scratch: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The jars and the Java options, each with what `extra` gives behind ours.

    In one process the jars go on the JVM's own class path, where the class archive covers them;
    executors of their own get them shipped.
    """
    jars = delta_jars({key: extra[key] for key in _RESOLVER_SETTINGS if key in extra})
    local = master.startswith("local") and not master.startswith("local-cluster")
    key, separator = ("spark.driver.extraClassPath", ":") if local else ("spark.jars", ",")
    ours = separator.join(str(jar) for jar in jars)
    given = extra.get("spark.driver.extraJavaOptions", "")
    options = [
        f'"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"',
        f'"-Dderby.system.home={scratch}"',
        *archive_options(find_java(), jars, given),
    ]
    if "GC" not in given:
        # Less work at start than G1 and as fast in large queries on few cores.
        options.append("-XX:+UseParallelGC")
    return {
        key: separator.join(filter(None, [ours, extra.get(key)])),
        "spark.driver.extraJavaOptions": " ".join([*options, given]).strip(),
    }


def default_memory() -> str:
    """A quarter of the memory this process may use, between 1 and 4 GiB, as Spark writes it."""
    quarter = _usable_memory() // 4
    return f"{max(_GIB, min(4 * _GIB, quarter)) // 1024**2}m"


def _usable_memory() -> int:
    """The machine's memory, or the limit of the container when that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file():
        text = limit.read_text(encoding="ascii").strip()
        if text.isdecimal():
            return min(machine, int(text))
    return machine


def _scratch_folder() -> Path:
    """A folder for what Spark would otherwise leave in the current one, removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="freshview-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _active_session() -> SparkSession | None:
    """The session of this process, also when it is not the active one of this thread."""
    if SparkContext._active_spark_context is None:  # noqa: SLF001 - PySpark has no public question
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _start_environment() -> dict[str, str]:
    """Variables that matter while the JVM and the context start."""
    wanted = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    missing = {key: value for key, value in wanted.items() if key not in os.environ}
    return {**missing, "JAVA_HOME": str(find_java().home)}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the time of the block."""
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def _start_context(settings: Mapping[str, str]) -> SparkContext:
    """A Spark context in a JVM of ours, or in the one that an earlier session left running."""
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    gateway = None if SparkContext._gateway else _launch_quietly(conf)  # noqa: SLF001
    return SparkContext(conf=conf, gateway=gateway)


def _launch_quietly(conf: SparkConf) -> JavaGateway:
    """Start the JVM with its standard error passed through, except for known noise."""
    reading, writing = os.pipe()
    threading.Thread(target=_pass_on, args=(reading,), name="jvm-stderr", daemon=True).start()
    try:
        return launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)


def _pass_on(reading: int) -> None:
    """Copy lines to standard error until the JVM ends."""
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            if not line.startswith(_JVM_NOISE):
                with suppress(OSError):  # a line is lost on a full disk, and the JVM goes on
                    os.write(2, line)


def _check_delta_classes(context: SparkContext) -> None:
    """Raise SparkWithoutDelta when the JVM, started by an earlier session, lacks the jars."""
    jvm = context._jvm  # noqa: SLF001 - the only way to the JVM
    assert jvm is not None
    if not isinstance(jvm.io.delta.sql.DeltaSparkSessionExtension, JavaClass):
        context.stop()
        raise SparkWithoutDelta(
            missing="its JVM was started by an earlier session without the jars"
        )
