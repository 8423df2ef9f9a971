"""Sums of doubles without rounding: a value is cut into pieces of 30 bits, and pieces are added up.

Every double with all its bits between 2⁻¹⁰⁰ and 2⁸⁰ is Σᵢ pᵢ·2^wᵢ with six whole numbers |pᵢ| ≤ 2³⁰. Sums of
such pieces are exact in 64 bits for 2³³ values, whatever the order, and whatever is taken away again.
The rest of a value is what no piece holds: 0 for most, itself for 1e300, NaN and the infinities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

WEIGHTS = (50, 20, -10, -40, -70, -100)
"""The exponents of two that the pieces count."""

PIECE_BITS = 30
PIECE_MASK = 2**PIECE_BITS - 1
PAIRS = WEIGHTS[1::2]
"""Two pieces are cut off at once, as one number of 60 bits with the weight of the lower piece."""

ABOVE = 2.0**80
"""What is not smaller has no pieces."""

VALUES_MAX = 2**33
"""So many values, and sums of their pieces fit 64 bits."""


def pieces(value: float) -> tuple[int, ...]:
    """The six pieces of a value; all zero for one that is too large."""
    return _cut(value)[0]


def rest(value: float) -> float:
    """What is left of a value without its pieces, exactly."""
    return _cut(value)[1]


def _cut(value: float) -> tuple[tuple[int, ...], float]:
    if not abs(value) < ABOVE:
        return (0,) * len(WEIGHTS), value
    found: list[int] = []
    for weight in PAIRS:
        pair = int(value * 2.0**-weight)
        found += (pair >> PIECE_BITS, pair & PIECE_MASK)
        value -= pair * 2.0**weight
    return tuple(found), value


def rounded(limbs: Sequence[int], rests: Iterable[float] = ()) -> float:
    """Σ limbᵢ·2^wᵢ + Σ rests, rounded once, to the nearest double and half to even.

    NaN if a rest is, or if both infinities are among them; an infinity if one is.
    """
    exact = sum(
        (limb * Fraction(2) ** w for limb, w in zip(limbs, WEIGHTS, strict=True)), Fraction()
    )
    beyond = 0.0
    for value in rests:
        if math.isfinite(value):
            exact += Fraction(value)
        else:
            beyond += value
    if beyond != 0.0:
        return math.nan if math.isnan(beyond) else beyond
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def exact_sum(values: Iterable[tuple[float, int]]) -> float:
    """The sum of values with their counts, rounded once."""
    none = (0,) * len(WEIGHTS)
    return rounded(none, (value for value, count in values for _ in range(count)))
