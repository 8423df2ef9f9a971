"""Errors of starting Spark."""

from typing import final

from freshview.errors.base import FreshviewError


@final
class JavaMissing(FreshviewError):
    """No Java was found on this machine."""

    code = "JAVA_MISSING"
    what_template = "no Java was found, and Spark runs on Java {needed} or later."
    why_template = "{searched}"
    do_template = (
        "install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )


@final
class JavaTooOld(FreshviewError):
    """The Java that was found cannot run Spark."""

    code = "JAVA_TOO_OLD"
    what_template = "{java} is Java {found}, and Spark runs on Java {needed} or later."
    why_template = "Spark 4 is compiled for Java {needed}"
    do_template = "install Java {needed} or later and point JAVA_HOME at it"


@final
class JarsUnreachable(FreshviewError):
    """The Delta Lake jars are not cached and could not be resolved."""

    code = "JARS_UNREACHABLE"
    what_template = "the Delta Lake jars {jars} are not in {folder} and could not be fetched."
    why_template = "{reason}"
    do_template = (
        "start once with access to a Maven repository (an ivy settings file named in "
        "FRESHVIEW_IVY_SETTINGS is used for the resolver), or copy the jars into {folder}"
    )


@final
class JarsCorrupt(FreshviewError):
    """A jar that was fetched is not the one that this version was tested with."""

    code = "JARS_CORRUPT"
    what_template = "{jar} is not the file that this version of freshview was tested with."
    why_template = "its sha256 is {found}, expected {expected}"
    do_template = "delete it and start again; if it comes back, the repository serves another file"


@final
class SparkWithoutDelta(FreshviewError):
    """The active Spark session cannot read or write Delta tables."""

    code = "SPARK_WITHOUT_DELTA"
    what_template = "the active Spark session is not configured for Delta Lake: {missing}."
    why_template = (
        "freshview reuses the session that is already active and cannot change this later"
    )
    do_template = (
        "set spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog when the "
        "session is built, or stop it and let freshview start its own"
    )
