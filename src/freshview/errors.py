"""Every public error of freshview: a code, its parameters, and what, why and what to do.

Each error is one final class. Its three templates are filled from keyword-only parameters when
the error is built, so a missing or misspelt parameter fails at once and not when the message is
shown. Tests assert `code` and `parameters`; the sentences are for people.
"""

from collections.abc import Mapping
from string import Formatter
from typing import ClassVar, final


class FreshviewError(Exception):
    """The base of all errors that freshview raises on purpose.

    A subclass sets `code` and the three templates. The parameters it takes are exactly the names
    that its templates use, plus those listed in `extra_parameters` (carried for callers, not shown).
    """

    code: ClassVar[str] = "FRESHVIEW_ERROR"
    what_template: ClassVar[str] = ""
    why_template: ClassVar[str] = ""
    do_template: ClassVar[str] = ""
    extra_parameters: ClassVar[frozenset[str]] = frozenset()

    parameters: Mapping[str, object]

    def __init__(self, **parameters: object) -> None:
        expected = self.parameter_names()
        given = frozenset(parameters)
        if given != expected:
            raise TypeError(
                f"{type(self).__name__} takes the parameters {sorted(expected)}, "
                f"got {sorted(given)}"
            )
        self.parameters = parameters
        super().__init__(str(self))

    @classmethod
    def parameter_names(cls) -> frozenset[str]:
        """The names this error must be built with."""
        names = set(cls.extra_parameters)
        for template in (cls.what_template, cls.why_template, cls.do_template):
            names.update(field for _, field, _, _ in Formatter().parse(template) if field)
        return frozenset(names)

    @property
    def what(self) -> str:
        """What happened, and where."""
        return self.what_template.format(**self.parameters)

    @property
    def why(self) -> str:
        """Why it happened."""
        return self.why_template.format(**self.parameters)

    @property
    def do(self) -> str:
        """What the reader can do about it."""
        return self.do_template.format(**self.parameters)

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.what}"]
        if self.why_template:
            lines.append(f"  why: {self.why}")
        if self.do_template:
            lines.append(f"  do:  {self.do}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the parameters, so that an error survives a trip between processes."""
        return (_rebuild, (type(self), dict(self.parameters)))


def _rebuild(kind: type[FreshviewError], parameters: Mapping[str, object]) -> FreshviewError:
    return kind(**parameters)


# Starting Spark


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


# Storage


@final
class TableMissing(FreshviewError):
    """No Delta table is at the path."""

    code = "TABLE_MISSING"
    what_template = "there is no Delta table at {path}."
    why_template = "{reason}"
    do_template = "check the path, or create the table first"


@final
class TableExists(FreshviewError):
    """A table is already where one should be made."""

    code = "TABLE_EXISTS"
    what_template = "a Delta table is already at {path}."
    why_template = "creating never replaces"
    do_template = "overwrite it, or choose another path"


@final
class ColumnMissing(FreshviewError):
    """A column that was asked for is not in the table."""

    code = "COLUMN_MISSING"
    what_template = "{path} has no column {column}."
    why_template = "its columns are {columns}; names are matched exactly as the table spells them"
    do_template = "ask for one of those"


@final
class SchemaMismatch(FreshviewError):
    """Rows to be written do not fit the table."""

    code = "SCHEMA_MISMATCH"
    what_template = "the rows to be written to {path} do not fit its schema."
    why_template = "{reason}"
    do_template = "write rows with the table's columns and types; nothing was written"


@final
class HistoryLost(FreshviewError):
    """What changed between two versions of a table can no longer be known."""

    code = "HISTORY_LOST"
    what_template = "the changes of {path} after version {after} up to {upto} cannot be known."
    why_template = "{reason}"
    do_template = (
        "recompute what depends on it; keep delta.logRetentionDuration and "
        "delta.deletedFileRetentionDuration longer than the time between refreshes"
    )


@final
class TooManyRows(FreshviewError):
    """A lookup or read found more rows than its limit allows."""

    code = "TOO_MANY_ROWS"
    what_template = "{path} has more than {limit} rows for this request."
    why_template = "rows brought to the driver are limited, so that its memory follows the change"
    do_template = "let Spark do it, or raise the limit"


@final
class StaleCommit(FreshviewError):
    """Another writer has already committed this number."""

    code = "STALE_COMMIT"
    what_template = (
        "{path} was to get commit {expected} of {application} but its last one is {found}."
    )
    why_template = "each commit of an application must follow its predecessor, so none counts twice"
    do_template = "read the table's last commit and compute again from there; nothing was written"


@final
class ConcurrentWrite(FreshviewError):
    """Another writer committed between reading and writing."""

    code = "CONCURRENT_WRITE"
    what_template = "another writer changed {path} during this write."
    why_template = "{reason}"
    do_template = "read the table again and compute again; nothing was written"


@final
class DuplicateKey(FreshviewError):
    """A key occurs more than once in one apply."""

    code = "DUPLICATE_KEY"
    what_template = "the rows applied to {path} have {count} more rows than distinct keys ({key})."
    why_template = "each key is set once or deleted once per commit, or the result has no meaning"
    do_template = "consolidate the rows by key before applying them; nothing was written"


@final
class NativeRefused(FreshviewError):
    """The native library cannot serve this table faithfully."""

    code = "NATIVE_REFUSED"
    what_template = "{path} cannot be served natively for {operation}."
    why_template = "{reason}"
    do_template = "use Spark for it; the storage chooser does so by itself"


# Reading definitions


@final
class NotAQuery(FreshviewError):
    """A view was to be defined by a statement that has effects."""

    code = "NOT_A_QUERY"
    what_template = "a view is defined by a query, and this statement is {statement}."
    why_template = "a definition is evaluated again and again, so it may only read"
    do_template = "write one SELECT, WITH … SELECT or VALUES"


@final
class UnregisteredSource(FreshviewError):
    """A definition reads something whose changes freshview cannot follow."""

    code = "UNREGISTERED_SOURCE"
    what_template = "the definition reads {source}, which is not a registered table."
    why_template = "a view is kept current from the changes of registered tables"
    do_template = "register the table and read it by its name"


@final
class UnsupportedOperator(FreshviewError):
    """A definition has an operator for which there is no algebra."""

    code = "UNSUPPORTED_OPERATOR"
    what_template = "the operator {operator} cannot be part of a view."
    why_template = "{reason}"
    do_template = "write the query without it, or materialise its result as a table of its own"


@final
class UnsupportedExpression(FreshviewError):
    """A definition has an expression that cannot be imported."""

    code = "UNSUPPORTED_EXPRESSION"
    what_template = "the expression {expression} cannot be part of a view."
    why_template = "{reason}"
    do_template = "write it as a join or with other functions"


@final
class TooManyConstants(FreshviewError):
    """A definition contains a constant relation that is too large."""

    code = "TOO_MANY_CONSTANTS"
    what_template = "the definition contains {count} constant rows; {limit} are allowed."
    why_template = "constants are part of the definition and are read again with it"
    do_template = "put the rows in a table and register it"


@final
class InvalidStatement(FreshviewError):
    """A statement on materialized views has a syntax error."""

    code = "INVALID_STATEMENT"
    what_template = "line {line}, column {column}: expected {expected}, found {found}."
    why_template = "the statement is not one of those that freshview knows"
    do_template = "see `freshview sql --help` for the statements"


# Warehouses and views


@final
class WarehouseMissing(FreshviewError):
    """The folder is not a warehouse."""

    code = "WAREHOUSE_MISSING"
    what_template = "{path} is not a freshview warehouse."
    why_template = "it has no _freshview/catalog.json"
    do_template = "make one there with `freshview init`, or check the path"


@final
class WarehouseTooNew(FreshviewError):
    """The warehouse was written by a later version."""

    code = "WAREHOUSE_TOO_NEW"
    what_template = "the warehouse {path} has format {found}; this version knows up to {known}."
    why_template = "a later version of freshview wrote it"
    do_template = "install that version or a later one; nothing was changed"


@final
class InvalidName(FreshviewError):
    """A name that cannot be one of a table or view."""

    code = "INVALID_NAME"
    what_template = "{name!r} cannot be the name of a table or view."
    why_template = "names are letters, digits and _, at most 63, and do not start with a digit"
    do_template = "choose such a name"


@final
class NameTaken(FreshviewError):
    """A table or view of this name exists."""

    code = "NAME_TAKEN"
    what_template = "there is already a table or view named {name}."
    why_template = "tables and views of a warehouse share one set of names"
    do_template = "drop it first, use CREATE OR REPLACE, or choose another name"


@final
class UnknownName(FreshviewError):
    """No table or view of this name."""

    code = "UNKNOWN_NAME"
    what_template = "{name!r} is not known here."
    why_template = "this warehouse has {known}"
    do_template = "check the name, or register the table"


@final
class ViewInUse(FreshviewError):
    """A view that others read cannot be dropped."""

    code = "VIEW_IN_USE"
    what_template = "{name} cannot be dropped or replaced: {readers} read it."
    why_template = "a view is kept current from what it reads"
    do_template = "drop the views that read it first"


@final
class ViewNotMaintainable(FreshviewError):
    """The definition contains something that no refresh could keep right."""

    code = "VIEW_NOT_MAINTAINABLE"
    what_template = "{name} cannot be a materialized view: {subject} ({reason})."
    why_template = "{why}"
    do_template = "{do}"


@final
class InvalidColumn(FreshviewError):
    """A column of a view has a name that cannot be stored."""

    code = "INVALID_COLUMN"
    what_template = "the view {name} cannot have a column named {column!r}."
    why_template = "{reason}"
    do_template = "give the column another name with AS"


@final
class DefinitionRejected(FreshviewError):
    """Spark could not analyze the definition."""

    code = "DEFINITION_REJECTED"
    what_template = "the definition of {name} is not a valid query."
    why_template = "{reason}"
    do_template = "correct the query; nothing was created"


@final
class DefinitionUnavailable(FreshviewError):
    """The Python function that defines a view is not at hand."""

    code = "DEFINITION_UNAVAILABLE"
    what_template = "the function {function} that defines {name} is not available."
    why_template = "{reason}"
    do_template = "import the module that defines it, or run it in the process that refreshes"


@final
class DefinitionChanged(FreshviewError):
    """A Python function no longer defines the view that was stored."""

    code = "DEFINITION_CHANGED"
    what_template = "{function} no longer gives the view {name} that was created from it."
    why_template = "{reason}"
    do_template = "drop and create the view, or call view(..., replace=True)"


@final
class SettingsDiffer(FreshviewError):
    """The session would read the definition in another way."""

    code = "SETTINGS_DIFFER"
    what_template = "{name} was defined with {setting} = {defined}, and this session has {found}."
    why_template = "the setting decides what the query means, so its results would mix"
    do_template = "set it in the session that opens the warehouse, or create the view again"


@final
class NotIncremental(FreshviewError):
    """STRICT forbids the recompute that would be needed."""

    code = "NOT_INCREMENTAL"
    what_template = "{name} cannot be refreshed incrementally, and its policy is STRICT ({reason})."
    why_template = "{why}"
    do_template = "{do}; or set its policy to INCREMENTAL or AUTO"


@final
class NotFresh(FreshviewError):
    """A view was never computed or has no readable commit."""

    code = "VIEW_NOT_COMPUTED"
    what_template = "{name} has no committed content."
    why_template = "its creation was interrupted"
    do_template = "refresh it with policy FULL, or drop and create it again"


@final
class UnknownEpoch(FreshviewError):
    """No such epoch, or it does not have the view."""

    code = "UNKNOWN_EPOCH"
    what_template = "there is no epoch {epoch} with the view {name}."
    why_template = "known epochs: {known}"
    do_template = "read one of those, or leave the epoch out for the newest state"


@final
class Busy(FreshviewError):
    """Somebody else has held a lock for too long."""

    code = "BUSY"
    what_template = "another process holds {file} since more than {seconds} seconds."
    why_template = "a view has one writer at a time"
    do_template = "wait for it to end, or end it"


@final
class InvalidChanges(FreshviewError):
    """Changes for a table that cannot be applied as asked."""

    code = "INVALID_CHANGES"
    what_template = "the changes for {table} cannot be applied."
    why_template = "{reason}"
    do_template = "correct them; nothing was written to any table"
