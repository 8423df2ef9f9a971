"""Delta's own log objects inside Spark's JVM.

The public Python API answers "which version, which files, which transactions" with Spark jobs of a
tenth of a second each; the log object beside it answers from memory. Only the methods used here
are touched, all on the pinned Delta release. Nothing here imports pyspark: it works on the session
it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table as the JVM holds it."""

    version: int
    jvm: Any

    @property
    def metadata(self) -> Any:
        """The metadata action."""
        return self.jvm.metadata()

    def configuration(self) -> dict[str, str]:
        """The table's properties."""
        return _python_map(self.metadata.configuration())

    def listed_features(self) -> set[str]:
        """The protocol's reader and writer feature names."""
        protocol = self.jvm.protocol()
        names: set[str] = set()
        for features in (protocol.readerFeatures(), protocol.writerFeatures()):
            if features.isDefined():
                names.update(_python_list(features.get().toSeq()))
        return names

    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns."""
        return tuple(_python_list(self.metadata.partitionColumns()))

    def transaction(self, application: str) -> int | None:
        """The last number of an application."""
        found = self.jvm.transactions().get(application)
        return int(found.get()) if found.isDefined() else None


class DeltaLogs:
    """The logs of one session."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm  # noqa: SLF001 - PySpark gives no public way to its JVM
        self._session = spark._jsparkSession  # noqa: SLF001

    def log(self, path: str) -> Any:
        """The log of the table at a path."""
        return self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._session, path)

    def newest(self, path: str) -> Snapshot | None:
        """The newest snapshot, None when there is no table."""
        none = self._none()
        snapshot = self.log(path).update(False, none, none)
        version = int(snapshot.version())
        return Snapshot(version, snapshot) if version >= 0 else None

    def at(self, path: str, version: int) -> Snapshot:
        """The snapshot of a version. Raises a Py4JJavaError when it is lost."""
        none = self._none()
        return Snapshot(version, self.log(path).getSnapshotAt(version, none, none, False))

    def commit_lines(self, path: str, version: int) -> list[str]:
        """The lines of a commit's JSON file. Raises FileNotFoundError when it is gone."""
        log = self.log(path)
        names = self._jvm.org.apache.spark.sql.delta.util.FileNames
        file = names.unsafeDeltaFile(log.logPath(), version)
        configuration = log.newDeltaHadoopConf()
        if not file.getFileSystem(configuration).exists(file):
            raise FileNotFoundError(file.toString())
        return _python_list(log.store().read(file, configuration))

    def rows_of(self, path: str, snapshot: Snapshot, files: list[Any]) -> Any:
        """A JVM DataFrame over some files of a snapshot, with their deletion vectors applied."""
        gathered = self._jvm.java.util.ArrayList()
        for file in files:
            gathered.add(file)
        converters = self._jvm.scala.jdk.javaapi.CollectionConverters
        sequence = converters.asScala(gathered).toSeq()
        return self.log(path).createDataFrame(snapshot.jvm, sequence, False, self._none())

    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()


def files_by_identity(snapshot: Snapshot) -> dict[tuple[str, str | None], Any]:
    """The snapshot's files by path and deletion vector."""
    found = {}
    for file in snapshot.jvm.allFiles().collect():
        vector = file.deletionVector()
        found[(file.path(), vector.uniqueId() if vector is not None else None)] = file
    return found


def _python_list(sequence: Any) -> list[str]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _python_map(mapping: Any) -> dict[str, str]:
    pairs = mapping.toSeq()
    return {
        pairs.apply(index)._1(): pairs.apply(index)._2()  # noqa: SLF001 - Scala's names
        for index in range(pairs.size())
    }
