import pickle

import pytest

from freshview.errors import FreshviewError, JarsCorrupt, JavaMissing, JavaTooOld


def test_an_error_shows_code_what_why_and_what_to_do() -> None:
    error = JavaTooOld(java="bin/java", found=8, needed=17)
    assert str(error).splitlines() == [
        "JAVA_TOO_OLD: bin/java is Java 8, and Spark runs on Java 17 or later.",
        "  why: Spark 4 is compiled for Java 17",
        "  do:  install Java 17 or later and point JAVA_HOME at it",
    ]


def test_code_and_parameters_are_there_for_programs() -> None:
    error = JarsCorrupt(jar="a.jar", found="12", expected="34")
    assert error.code == "JARS_CORRUPT"
    assert error.parameters == {"jar": "a.jar", "found": "12", "expected": "34"}
    assert isinstance(error, FreshviewError)


@pytest.mark.parametrize("given", [{}, {"needed": 17}, {"needed": 17, "searched": "", "more": 1}])
def test_wrong_parameters_fail_at_once(given: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="JavaMissing takes the parameters"):
        JavaMissing(**given)


def test_braces_in_a_parameter_are_only_text() -> None:
    assert "{x}" in JavaMissing(needed=17, searched="{x}").why


def test_an_error_survives_a_trip_between_processes() -> None:
    error = JavaTooOld(java="j", found=8, needed=17)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is JavaTooOld
    assert again.parameters == error.parameters
    assert str(again) == str(error)
