"""A value as JSON text: two that differ have two texts."""

from __future__ import annotations

from freshview.algebra.schema import Attribute, quoted

_MOMENT = "yyyy-MM-dd HH:mm:ss.SSSSSS"
"""To the microsecond; without a format Spark writes milliseconds."""


def json_text(attribute: Attribute) -> str:
    """``to_json`` of a column, with all that tells its values apart."""
    options = {"ignoreNullFields": "false"}
    if "timestamp" in attribute.type:
        options |= {"timestampFormat": _MOMENT + "XXX", "timestampNTZFormat": _MOMENT}
    given = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    return f"to_json({quoted(attribute.name)}, map({given}))"
