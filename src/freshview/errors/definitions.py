"""Errors of reading view definitions and statements."""

from typing import final

from freshview.errors.base import FreshviewError


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
