"""Errors of asking where a row of a view comes from."""

from typing import final

from freshview.errors.base import FreshviewError


@final
class UnknownColumn(FreshviewError):
    """A key names a column that the view does not have."""

    code = "UNKNOWN_COLUMN"
    what_template = "{name} has no column {column!r}."
    why_template = "its columns are {known}"
    do_template = "name one of those in the key"


@final
class InvalidKeyValue(FreshviewError):
    """A value of a key is none of its column's type."""

    code = "INVALID_KEY_VALUE"
    what_template = "{value!r} is no value of {name}.{column}, which is {type}."
    why_template = "{reason}"
    do_template = (
        "write the value as SQL shows it, NULL for no value, and a text that reads NULL in single "
        "quotes; or name another column"
    )


@final
class NoSuchRow(FreshviewError):
    """No row of a view has the key."""

    code = "NO_SUCH_ROW"
    what_template = "{name} has no row with {key} at its version {version}."
    why_template = "rows are compared with the view as of its last refresh"
    do_template = "check the values, or refresh the view if its tables have changed since"


@final
class LineageLost(FreshviewError):
    """What a view was computed from is no longer there."""

    code = "LINEAGE_LOST"
    what_template = (
        "the rows of {name} cannot be traced: version {version} of {table}, which it was computed "
        "from, is gone."
    )
    why_template = "{reason}"
    do_template = (
        "refresh {name}, then ask again; keep delta.deletedFileRetentionDuration longer than the "
        "time between refreshes"
    )
