"""Errors of warehouses, views and refreshes."""

from typing import final

from freshview.errors.base import FreshviewError


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
class WarehouseCorrupt(FreshviewError):
    """A file in which a warehouse keeps its state cannot be understood."""

    code = "WAREHOUSE_CORRUPT"
    what_template = "{file} is damaged."
    why_template = "{reason}"
    do_template = "put back a copy of the file; tables and views beside it are untouched"


@final
class InvalidName(FreshviewError):
    """A name that cannot be one of a table or view."""

    code = "INVALID_NAME"
    what_template = "{name!r} cannot be the name of a table or view."
    why_template = "names are letters, digits and _, at most 63, and do not start with a digit"
    do_template = "choose such a name"


@final
class InvalidCatalogName(FreshviewError):
    """A text that is not the name of one table in Spark's catalog."""

    code = "INVALID_CATALOG_NAME"
    what_template = "{table!r} is not the name of a table in Spark's catalog."
    why_template = "{reason}"
    do_template = (
        "write table, database.table or catalog.database.table, with other signs than letters, "
        "digits and _ in backticks; nothing was changed"
    )


@final
class UnknownPolicy(FreshviewError):
    """No policy has this name."""

    code = "UNKNOWN_POLICY"
    what_template = "{policy!r} is not a policy."
    why_template = "the policies are {known}"
    do_template = "name one of those; nothing was changed"


@final
class UnknownTechnique(FreshviewError):
    """No technique has this name."""

    code = "UNKNOWN_TECHNIQUE"
    what_template = "{technique!r} is not a technique."
    why_template = "the techniques are {known}"
    do_template = "name one of those; nothing was changed"


@final
class TechniqueNotApplicable(FreshviewError):
    """A view cannot be kept by the technique that was asked for."""

    code = "TECHNIQUE_NOT_APPLICABLE"
    what_template = "{name} cannot be kept by {technique}: {subject}."
    why_template = "{reason}: {why}"
    do_template = "leave the choice to freshview with technique = auto; {do}"


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
class ViewCycle(FreshviewError):
    """A view would read itself, directly or through other views."""

    code = "VIEW_CYCLE"
    what_template = "{name} cannot be defined so: it would read itself ({cycle})."
    why_template = "a view is computed from what it reads, so there is no view to begin with"
    do_template = "read tables or views that do not read {name}; nothing was changed"


@final
class ViewNotMaintainable(FreshviewError):
    """The definition contains something that no refresh could keep right."""

    code = "VIEW_NOT_MAINTAINABLE"
    what_template = "{name} cannot be a materialized view: {subject} ({reason})."
    why_template = "{why}"
    do_template = "{do}"


@final
class InvalidColumn(FreshviewError):
    """A column of a view or new table has a name that cannot be stored."""

    code = "INVALID_COLUMN"
    what_template = "{name} cannot have a column named {column!r}."
    why_template = "{reason}"
    do_template = "give the column another name, in a query with AS"


@final
class InvalidColumnType(FreshviewError):
    """A column of a view has a type that Delta cannot store."""

    code = "INVALID_COLUMN_TYPE"
    what_template = "the view {name} cannot have the column {column} of type {type}."
    why_template = "a view is stored in a Delta table, which has no columns of this type"
    do_template = "cast it to another type, such as STRING; nothing was created"


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
class SourceSchemaChanged(FreshviewError):
    """A source no longer has what the definition of a view needs."""

    code = "SOURCE_SCHEMA_CHANGED"
    what_template = "{name} can no longer be computed from {table}: {change}."
    why_template = "{reason}"
    do_template = (
        "give the table its columns back, or define the view anew with CREATE OR REPLACE; "
        "until then it keeps its content"
    )


@final
class NotIncremental(FreshviewError):
    """STRICT forbids the recompute that would be needed."""

    code = "NOT_INCREMENTAL"
    what_template = "{name} cannot be refreshed incrementally, and its policy is STRICT ({reason})."
    why_template = "{why}"
    do_template = "{do}; or set its policy to INCREMENTAL or AUTO"


@final
class StrictImpossible(FreshviewError):
    """STRICT was asked for, and the definition has no incremental rule."""

    code = "STRICT_IMPOSSIBLE"
    what_template = "{name} cannot have the policy STRICT: {subject} ({reason})."
    why_template = "{why}"
    do_template = (
        "{do}; `freshview suggest` proposes definitions that are incremental, docs/reasons.md explains"
        " {reason}; or choose the policy INCREMENTAL or AUTO; nothing was changed"
    )


@final
class NotFresh(FreshviewError):
    """The table at a view's place has no commit of the view."""

    code = "VIEW_NOT_COMPUTED"
    what_template = "{name} has no committed content."
    why_template = "the table at its place was put there by other hands"
    do_template = "refresh it: it is computed anew, in another place"


@final
class UnknownEpoch(FreshviewError):
    """No such epoch, or it does not have the view."""

    code = "UNKNOWN_EPOCH"
    what_template = "there is no epoch {epoch} with the view {name}."
    why_template = "known epochs: {known}"
    do_template = "read one of those, or leave the epoch out for the newest state"


@final
class NoCommonEpoch(FreshviewError):
    """Views and tables were asked for at one epoch, and there is none that has them all."""

    code = "NO_COMMON_EPOCH"
    what_template = "there is no epoch with {names}."
    why_template = "they were not refreshed together yet"
    do_template = "refresh them once, or all views, in one refresh"


@final
class Busy(FreshviewError):
    """Somebody else has held a lease for too long."""

    code = "BUSY"
    what_template = "another process has held {file} for more than {seconds} seconds."
    why_template = "there is one writer at a time"
    do_template = "wait for it to end, or end it"


@final
class OutOfMemory(FreshviewError):
    """Spark had too little memory for the work on a view."""

    code = "OUT_OF_MEMORY"
    what_template = "{name} keeps its state: Spark ran out of memory."
    why_template = "{reason}"
    do_template = (
        "give Spark more memory (spark.driver.memory, spark.executor.memory), or make the values"
        " of the view smaller; then refresh again"
    )


@final
class SparkFailed(FreshviewError):
    """Spark failed in a way that is no fault of an expression, such as lost tasks."""

    code = "SPARK_FAILED"
    what_template = "{name} keeps its state: Spark failed."
    why_template = "{reason}"
    do_template = "see the cause of this error and Spark's log, then refresh again"


@final
class SparkGone(FreshviewError):
    """The JVM has ended, or can no longer be reached."""

    code = "SPARK_GONE"
    what_template = "{name} keeps its state: Spark has ended or cannot be reached."
    why_template = "{reason}"
    do_template = "start a new process; if it comes again, the machine may lack memory for the JVM"


@final
class Cancelled(FreshviewError):
    """The process was asked to end while it worked."""

    code = "CANCELLED"
    what_template = "the work was cancelled by {signal}."
    why_template = "the process was asked to end"
    do_template = "run it again: what was committed is whole, and everything else is as it was"


@final
class RetentionTooShort(FreshviewError):
    """A vacuum was asked to remove what may still be in use."""

    code = "RETENTION_TOO_SHORT"
    what_template = "nothing was removed: {hours} hours is no retention."
    why_template = "a query that runs needs the files of the version that it began with"
    do_template = "keep what is younger than {least} hour at least"


@final
class Crowded(FreshviewError):
    """Other refreshers were ahead of this one again and again."""

    code = "CROWDED"
    what_template = (
        "the refresh of {views} was overtaken by other refreshers each time it was tried."
    )
    why_template = "each of them brought a view past the versions that this refresh had pinned"
    do_template = (
        "nothing is lost: the views are newer than asked for; run fewer refreshers at once"
    )


@final
class LeaseLost(FreshviewError):
    """This process was paused or cut off for so long that another one may have taken its place."""

    code = "LEASE_LOST"
    what_template = (
        "this process has lost its lease of {subject}, number {fence}; nothing was written."
    )
    why_template = "it gave no sign of life for {seconds} seconds, or another process has taken the lease since"
    do_template = "run the command again; if it comes often, the machine or the disk is overloaded"


@final
class TransactionUnfinished(FreshviewError):
    """A transaction is written to some of its tables, and one of the others refuses its part."""

    code = "TRANSACTION_UNFINISHED"
    what_template = "a transaction over {tables} is written in part."
    why_template = "{reason}"
    do_template = (
        "mend what the reason names; the next refresh completes it first, by {file}. Until then "
        "views of these tables, and no others, stand still. If that can never be, remove the file: "
        "what is written stays, and the rest of the transaction is given up"
    )


@final
class InvalidChanges(FreshviewError):
    """Changes for a table that cannot be applied as asked."""

    code = "INVALID_CHANGES"
    what_template = "the changes for {table} cannot be applied."
    why_template = "{reason}"
    do_template = "correct them; nothing was written to any table"


@final
class InvalidMoment(FreshviewError):
    """The clock that a warehouse was given says something that is no moment."""

    code = "INVALID_MOMENT"
    what_template = "{moment} is no moment that views could be refreshed for."
    why_template = "a moment is a date and a time with a time zone, which decides what day it is"
    do_template = (
        "write it as 2026-11-16T08:00:00+00:00; in Python give a clock that returns"
        " datetime.now(UTC) or another datetime with tzinfo"
    )
