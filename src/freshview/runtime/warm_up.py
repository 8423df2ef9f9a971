"""Makes the archive of Spark's classes: start once, do what a refresh does, keep the classes.

Run as `python -m freshview.runtime.warm_up`, once per machine and Spark version; `make warm`
does it. It costs about a minute of processor time, and each later start needs half as much.
"""

import contextlib
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from freshview.algebra.schema import quoted
from freshview.errors import FreshviewError
from freshview.runtime.class_archive import archive_path, drop_old_archives
from freshview.runtime.jars import delta_jars
from freshview.runtime.java import find_java
from freshview.runtime.progress import progress
from freshview.runtime.session import spark_session

_EXIT_S_MAX = 180


def warm_up() -> Path:
    """The path of the archive, made now if it does not exist.

    Needs a process without a Spark session. The file gets its name only after the JVM has ended
    well, so that no other process can see half of it.
    """
    path = archive_path(find_java(), delta_jars())
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=path.parent, prefix="making-") as scratch,
        progress("Preparing Spark for quick starts (only the first time)", announce=True),
    ):
        unfinished = Path(scratch) / "classes.jsa"
        # The quick compiler is enough for a short run; compiled code is not part of the archive.
        record = f"-XX:ArchiveClassesAtExit={unfinished} -Xlog:disable -XX:TieredStopAtLevel=1"
        spark = spark_session(extra={"spark.driver.extraJavaOptions": record})
        _do_what_a_refresh_does(spark, Path(scratch))
        _end_jvm(spark)
        if unfinished.is_file():
            unfinished.replace(path)
    drop_old_archives(path.parent)
    return path


def _do_what_a_refresh_does(spark: SparkSession, folder: Path) -> None:
    """Touch the parts of Spark and Delta that nearly every process of ours uses."""
    base, view = str(folder / "base"), str(folder / "view")
    rows = spark.range(100).selectExpr("id", "id % 7 AS k", "CAST(id AS STRING) AS s")
    rows.write.format("delta").save(base)
    spark.read.format("delta").load(base).createOrReplaceTempView("base")
    joined = spark.sql(
        "SELECT a.k, count(*) AS n, sum(b.id) AS total FROM base a "
        "LEFT JOIN base b ON a.id = b.id WHERE a.s > '1' GROUP BY a.k"
    )
    joined.write.format("delta").save(view)
    small = spark.createDataFrame(joined.toArrow())
    small.createOrReplaceTempView("small")
    spark.sql(
        f"MERGE INTO delta.{quoted(view)} v USING small c ON v.k <=> c.k "
        "WHEN MATCHED THEN UPDATE SET n = c.n WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM delta.{quoted(view)} WHERE k = 1")  # noqa: S608 - a path of ours
    spark.sql("SELECT *, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM small").collect()
    spark.read.format("delta").option("versionAsOf", 0).load(view).collect()


def _end_jvm(spark: SparkSession) -> None:
    """Stop Spark and wait until its JVM has written what it has to write."""
    spark.stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - the JVM is ours to end
    assert gateway is not None
    process = gateway.proc
    gateway.shutdown()
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.wait(timeout=_EXIT_S_MAX)


def main() -> int:
    """Make the archive; a failure is told in full and is never fatal to anything else."""
    try:
        warm_up()
    except FreshviewError as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is a command
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
