"""What every error of freshview has: a code, its parameters, and what, why and what to do.

Each error is one final class. Its three templates are filled from keyword-only parameters when
the error is built, so a missing or misspelt parameter fails at once and not when the message is
shown. Tests assert `code` and `parameters`; the sentences are for people.
"""

from collections.abc import Mapping
from string import Formatter
from typing import ClassVar


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


def first_line(error: BaseException) -> str:
    """What any error says, in one line: of one of ours the reason, of one of Java's no trace."""
    if isinstance(error, FreshviewError):
        return error.why or error.what
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage() if java is not None else error).strip()
    return said.partition("\n")[0] or type(error).__name__


def _rebuild(kind: type[FreshviewError], parameters: Mapping[str, object]) -> FreshviewError:
    return kind(**parameters)
