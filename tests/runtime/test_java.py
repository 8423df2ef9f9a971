from pathlib import Path

import pytest

from freshview.errors import JavaMissing, JavaTooOld
from freshview.runtime import java


def make_java(home: Path, release: str | None, answer: str = "") -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(java, "_USUAL_FOLDER", tmp_path / "jvm")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('JAVA_VERSION="17.0.15"', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ("nothing", None),
    ],
)
def test_versions_are_read_in_their_old_and_new_form(text: str, version: int | None) -> None:
    assert java.parse_version(text) == version


def test_no_java_is_an_error_that_says_where_it_was_sought(no_java: Path) -> None:
    with pytest.raises(JavaMissing) as raised:
        java.find_java()
    assert raised.value.code == "JAVA_MISSING"
    assert "JAVA_HOME (unset)" in raised.value.why
    assert f"{no_java / 'jvm'} holds none" in raised.value.why
    assert "Spark runs on Java 17 or later" in raised.value.what
    assert "set JAVA_HOME" in raised.value.do


def test_java_home_comes_first(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(no_java / "a", 'JAVA_VERSION="21.0.1"\n')
    make_java(no_java / "jvm" / "b", 'JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java() == java.Java(home / "bin" / "java", 21)


def test_the_usual_folder_comes_last(no_java: Path) -> None:
    home = make_java(no_java / "jvm" / "b", None, 'openjdk version "17.0.2"')
    found = java.find_java()
    assert (found.home, found.version) == (home, 17)


def test_an_old_java_is_named(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(no_java / "a", None, 'java version "1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(JavaTooOld) as raised:
        java.find_java()
    assert raised.value.parameters == {"java": str(home / "bin/java"), "found": 8, "needed": 17}
    assert "JAVA_HOME" in raised.value.do
