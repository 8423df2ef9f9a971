import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from freshview.errors import JavaMissing, SparkWithoutDelta
from freshview.runtime import java, session
from freshview.runtime.class_archive import archive_options, archive_path, drop_old_archives
from freshview.runtime.jars import delta_jars
from freshview.runtime.session import check_delta, default_memory, embedded_settings, spark_session

START = """
from freshview.runtime.session import spark_session
spark = spark_session(memory="1g")
spark.sql("CREATE TABLE t (a INT) USING delta")
assert spark.table("t").count() == 0
assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
"""


class Session:
    """A session that only answers for its settings."""

    def __init__(self, **settings: str) -> None:
        self.conf = self
        self._settings = {key.replace("__", "."): value for key, value in settings.items()}

    def get(self, key: str, default: str | None) -> str | None:
        return self._settings.get(key, default)


def settings(master: str = "local[2]", **extra: str) -> dict[str, str]:
    given = {key.replace("__", "."): value for key, value in extra.items()}
    return embedded_settings(master=master, memory=None, app_name="test", extra=given)


@pytest.fixture
def jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "delta_jars", lambda _: (Path("a.jar"), Path("b.jar")))
    monkeypatch.setattr(session, "find_java", lambda: java.Java(Path("bin/java"), 17))
    monkeypatch.setattr(session, "archive_options", lambda *_: ())


@pytest.mark.spark
def test_a_start_says_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    delta_jars()
    sources = str(Path(session.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", START],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_an_active_session_is_reused(spark: Any) -> None:
    found = spark_session(app_name="another")
    assert found.sparkContext is spark.sparkContext
    assert found.sparkContext.appName == "freshview-tests"


@pytest.mark.spark
def test_workers_run_the_same_python(spark: Any) -> None:
    assert spark.sparkContext.pythonExec == os.environ.get("PYSPARK_PYTHON", sys.executable)


def test_a_session_without_delta_is_refused() -> None:
    with pytest.raises(SparkWithoutDelta) as raised:
        check_delta(Session(spark__sql__extensions="other"))
    assert raised.value.code == "SPARK_WITHOUT_DELTA"
    assert "extension" in str(raised.value.parameters["missing"])
    assert "catalog" in str(raised.value.parameters["missing"])


def test_a_session_with_delta_among_others_is_accepted() -> None:
    check_delta(
        Session(
            spark__sql__extensions="some.Other,io.delta.sql.DeltaSparkSessionExtension",
            spark__sql__catalog__spark_catalog="org.apache.spark.sql.delta.catalog.DeltaCatalog",
        )
    )


def test_one_process_has_the_jars_on_its_class_path(jars: None) -> None:
    found = settings()
    assert found["spark.driver.extraClassPath"] == "a.jar:b.jar"
    assert "spark.jars" not in found


def test_executors_of_their_own_get_the_jars_shipped(jars: None) -> None:
    found = settings("local-cluster[2,1,1024]", spark__jars="mine.jar")
    assert found["spark.jars"] == "a.jar,b.jar,mine.jar"
    assert "spark.driver.extraClassPath" not in found


def test_extra_settings_win(jars: None) -> None:
    found = settings(spark__sql__shuffle__partitions="9")
    assert found["spark.sql.shuffle.partitions"] == "9"


def test_a_given_collector_is_the_only_one(jars: None) -> None:
    assert "UseParallelGC" in settings()["spark.driver.extraJavaOptions"]
    given = settings(spark__driver__extraJavaOptions="-XX:+UseG1GC")
    assert given["spark.driver.extraJavaOptions"].endswith("-XX:+UseG1GC")
    assert "UseParallelGC" not in given["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(("gib", "memory"), [(2, "1024m"), (8, "2048m"), (64, "4096m")])
def test_memory_is_a_quarter_within_bounds(
    monkeypatch: pytest.MonkeyPatch, gib: int, memory: str
) -> None:
    monkeypatch.setattr(session, "_usable_memory", lambda: gib * 1024**3)
    assert default_memory() == memory


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FV_KNOWN", "before")
    monkeypatch.delenv("FV_NEW", raising=False)
    with session._environment({"FV_KNOWN": "during", "FV_NEW": "during"}):
        assert os.environ["FV_NEW"] == "during"
    assert os.environ["FV_KNOWN"] == "before"
    assert "FV_NEW" not in os.environ


def test_noise_of_the_jvm_is_dropped_and_the_rest_passed_on(
    capfd: pytest.CaptureFixture[str],
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"WARNING: Using incubator modules: jdk.incubator.vector\nreal trouble\n")
    os.close(writing)
    session._pass_on(reading)
    assert capfd.readouterr().err == "real trouble\n"


def test_no_java_is_told_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> java.Java:
        raise JavaMissing(needed=17, searched="nowhere")

    monkeypatch.setattr(session, "_active_session", lambda: None)
    monkeypatch.setattr(session, "find_java", missing)
    monkeypatch.setattr(session, "delta_jars", lambda _: pytest.fail("asked for jars first"))
    with pytest.raises(JavaMissing):
        spark_session()


def test_the_class_archive_is_used_when_it_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FRESHVIEW_HOME", str(tmp_path))
    monkeypatch.delenv("FRESHVIEW_CLASS_ARCHIVE", raising=False)
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"one")
    found = java.Java(tmp_path / "bin" / "java", 17)
    path = archive_path(found, [jar])
    assert archive_options(found, [jar], "") == ()
    path.parent.mkdir()
    path.touch()
    assert archive_options(found, [jar], "")[0] == f'"-XX:SharedArchiveFile={path}"'
    assert archive_options(found, [jar], "-XX:ArchiveClassesAtExit=x") == ()
    jar.write_bytes(b"another")
    assert archive_options(found, [jar], "") == ()
    monkeypatch.setenv("FRESHVIEW_CLASS_ARCHIVE", "0")
    jar.write_bytes(b"one")
    assert archive_options(found, [jar], "") == ()


def test_only_the_newest_archives_are_kept(tmp_path: Path) -> None:
    for age in range(5):
        (tmp_path / f"{age}.jsa").touch()
        os.utime(tmp_path / f"{age}.jsa", (1000 - age, 1000 - age))
    drop_old_archives(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jsa", "1.jsa", "2.jsa"]
