import hashlib
from pathlib import Path

import pytest

from freshview.errors import JarsCorrupt, JarsUnreachable
from freshview.runtime import jars
from freshview.runtime.jars import Jar, delta_jars

CONTENT = b"a jar"
JAR = Jar("io.delta", "delta-some", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without any cache, and one small jar in place of the two."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FRESHVIEW_HOME", str(tmp_path / "freshview"))
    monkeypatch.setenv("FRESHVIEW_PROGRESS", "0")
    monkeypatch.setattr(jars, "DELTA_JARS", (JAR,))
    return tmp_path


def resolver(
    monkeypatch: pytest.MonkeyPatch, content: bytes | None, answer: str = ""
) -> list[dict[str, str]]:
    """Stand in for Spark's resolver; returns the settings of each call."""
    calls: list[dict[str, str]] = []

    def run(ivy: Path, settings: dict[str, str]) -> str:
        calls.append(dict(settings))
        if content is not None:
            (ivy / "jars").mkdir()
            (ivy / "jars" / "io.delta_delta-some-1.0.jar").write_bytes(content)
        return answer

    monkeypatch.setattr(jars, "_run_resolver", run)
    return calls


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESHVIEW_HOME", "/somewhere")
    assert jars.freshview_home() == Path("/somewhere")
    monkeypatch.delenv("FRESHVIEW_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert jars.freshview_home() == Path("/cache/freshview")


def test_fetched_once_and_cached_for_ever(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = resolver(monkeypatch, CONTENT)
    settings = {"spark.jars.repositories": "there"}
    expected = (home / "freshview" / "jars" / "delta-some-1.0.jar",)
    assert delta_jars(settings) == expected
    assert delta_jars(settings) == expected
    assert calls == [settings]
    assert [path.name for path in expected[0].parent.iterdir()] == ["delta-some-1.0.jar"]


@pytest.mark.parametrize(
    "place",
    [
        ".ivy2.5.2/jars/io.delta_delta-some-1.0.jar",
        ".ivy2/cache/io.delta/delta-some/jars/delta-some-1.0.jar",
        ".m2/repository/io/delta/delta-some/1.0/delta-some-1.0.jar",
    ],
)
def test_taken_from_another_cache(home: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    calls = resolver(monkeypatch, None)
    (home / place).parent.mkdir(parents=True)
    (home / place).write_bytes(CONTENT)
    assert delta_jars()[0].read_bytes() == CONTENT
    assert not calls


def test_another_file_in_another_cache_is_left(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = resolver(monkeypatch, CONTENT)
    place = home / ".ivy2.5.2" / "jars" / "io.delta_delta-some-1.0.jar"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"another jar")
    assert delta_jars()[0].read_bytes() == CONTENT
    assert len(calls) == 1


def test_a_cached_file_that_changed_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, CONTENT)
    (path,) = delta_jars()
    path.write_bytes(b"another jar")
    with pytest.raises(JarsCorrupt) as raised:
        delta_jars()
    assert raised.value.parameters["jar"] == str(path)
    assert raised.value.parameters["expected"] == JAR.sha256


def test_a_wrong_download_is_refused_and_not_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver(monkeypatch, b"another jar")
    with pytest.raises(JarsCorrupt):
        delta_jars()
    assert not (home / "freshview" / "jars" / "delta-some-1.0.jar").exists()


def test_no_way_to_fetch_says_what_the_resolver_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver(monkeypatch, None, "loading\n  Server access error at url somewhere (timeout)\nend")
    with pytest.raises(JarsUnreachable) as raised:
        delta_jars()
    assert raised.value.parameters["jars"] == "delta-some-1.0.jar"
    assert "Server access error at url somewhere" in raised.value.why
    folder = home / "freshview" / "jars"
    assert raised.value.parameters["folder"] == str(folder)
    assert "FRESHVIEW_IVY_SETTINGS" in raised.value.do
    assert not list(folder.glob("*"))


def test_a_proxy_in_the_environment_is_told_to_java(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert list(jars._proxy_options()) == []
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.local:3128")
    assert list(jars._proxy_options()) == [
        "-Dhttps.proxyHost=proxy.local",
        "-Dhttps.proxyPort=3128",
    ]
