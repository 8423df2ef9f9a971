"""Why a view, or a part of it, is kept by recomputing: the reason travels to explain, report and log.

Refusing and falling back are different things: an error stops, a reason explains a slower way that
was taken in the open.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshview.errors import FreshviewError


@dataclass(frozen=True, slots=True)
class Reason:
    """A code for machines, and for people the operator it is about, why, and what would help."""

    code: str
    subject: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.code}: {self.subject}\n  why: {self.why}\n  do:  {self.do}"


def reason_of(error: FreshviewError) -> Reason:
    """An error as the reason of a recompute that it makes necessary."""
    return Reason(error.code, error.what, error.why, error.do)


class NoRule(Exception):
    """An operator has no incremental rule; the planner turns this into a visible recompute."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason
