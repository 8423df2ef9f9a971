"""Errors of reading and writing Delta tables."""

from typing import final

from freshview.errors.base import FreshviewError


@final
class TableMissing(FreshviewError):
    """No Delta table is at the path."""

    code = "TABLE_MISSING"
    what_template = "there is no Delta table at {path}."
    why_template = "{reason}"
    do_template = "check the path, or create the table first"


@final
class TableUnreadable(FreshviewError):
    """There is a Delta log at the path, and it cannot be read."""

    code = "TABLE_UNREADABLE"
    what_template = "the Delta table at {path} cannot be read."
    why_template = "{reason}"
    do_template = (
        "put its _delta_log back from a copy, or register another table; a view can be dropped and "
        "created again. Views that do not read it go on"
    )


@final
class TableExists(FreshviewError):
    """A table is already where one should be made."""

    code = "TABLE_EXISTS"
    what_template = "a Delta table is already at {path}."
    why_template = "creating never replaces"
    do_template = "register it, overwrite it, or choose another path"


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
class TooManyBytes(FreshviewError):
    """A lookup found rows that are larger together than its limit allows."""

    code = "TOO_MANY_BYTES"
    what_template = "{path} has more than {limit} bytes of rows for this request."
    why_template = "rows brought to the driver are limited, so that its memory follows the change"
    do_template = "let Spark do it, or raise the limit"


@final
class ForkedProcess(FreshviewError):
    """Tables are used in a process that was forked from one that has used them."""

    code = "FORKED_PROCESS"
    what_template = "process {process} was forked from {parent}, which has used Delta tables."
    why_template = "the native Delta library has threads, and a fork does not copy them"
    do_template = (
        "start processes with multiprocessing.get_context('spawn'), or fork before freshview is "
        "first used; nothing was read or written"
    )


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
class WriteFailed(FreshviewError):
    """The system did not let a file be written: the disk is full, or writing is not allowed."""

    code = "WRITE_FAILED"
    what_template = "{path} could not be written."
    why_template = "{reason}"
    do_template = (
        "make room or allow the writing, then run the command again; what was committed before "
        "stays, and the next refresh goes on from there"
    )


@final
class InvalidPath(FreshviewError):
    """A path that the Delta libraries would read as another one, or not at all."""

    code = "INVALID_PATH"
    what_template = "{path!r} cannot be the place of a warehouse or table."
    why_template = "{reason}"
    do_template = "move or rename the folder, or name another one; nothing was changed"


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
