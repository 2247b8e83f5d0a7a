"""Intervals of integer expressions: `None` stands for no bound. Plain interval arithmetic, blind to correlations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tilewright.dialects.sym.expr import Atom, Expr, Monomial

Interval: TypeAlias = "tuple[int | None, int | None]"
AtomRange: TypeAlias = "Callable[[Atom], Interval]"


def add(a: Interval, b: Interval) -> Interval:
    """The interval of x + y."""
    return (
        None if a[0] is None or b[0] is None else a[0] + b[0],
        None if a[1] is None or b[1] is None else a[1] + b[1],
    )


def scale(a: Interval, factor: int) -> Interval:
    """The interval of factor * x."""
    if factor == 1:
        return a
    if factor == 0:
        return (0, 0)
    low, high = a if factor > 0 else (a[1], a[0])
    return (None if low is None else low * factor, None if high is None else high * factor)


def multiply(a: Interval, b: Interval) -> Interval:
    """The interval of x * y."""
    if a == (0, 0) or b == (0, 0):
        return (0, 0)
    if None not in a and None not in b:
        corners = [x * y for x in a for y in b if x is not None and y is not None]
        return (min(corners), max(corners))
    if _negative(a):
        return scale(multiply(scale(a, -1), b), -1)
    if _negative(b):
        return scale(multiply(a, scale(b, -1)), -1)
    # From here on one of them has no bound on some side. Both are non-negative, or one may have either sign.
    if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
        return (a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1])
    if b[0] is not None and b[0] >= 0:
        a, b = b, a
    if a[0] is not None and a[0] >= 0:
        low = None if a[1] is None or b[0] is None else a[1] * min(b[0], 0)
        high = None if a[1] is None or b[1] is None else a[1] * max(b[1], 0)
        return (low, high)
    return (None, None)


def _negative(a: Interval) -> bool:
    return a[1] is not None and a[1] <= 0


def divide(a: Interval, b: Interval) -> Interval:
    """The interval of floor(x / y) over all y other than 0; (None, None) when y can only be 0."""
    if b[1] is not None and b[1] < 0:
        return divide(scale(a, -1), scale(b, -1))
    if b == (0, 0):
        return (None, None)
    if b[0] is None or b[0] < 0:
        # y of either sign: the two sides apart.
        above = (None, None) if b[1] == 0 else divide(a, (1, b[1]))
        below = divide(scale(a, -1), (1, None if b[0] is None else -b[0]))
        return below if b[1] == 0 else _hull(above, below)
    least = max(b[0], 1)
    # The quotient grows with x; of positive y the least makes it largest in magnitude, the greatest smallest.
    low, high = a
    if low is not None:
        if low < 0:
            low = low // least
        else:
            low = 0 if b[1] is None else low // b[1]
    if high is not None:
        if high >= 0:
            high = high // least
        else:
            high = -1 if b[1] is None else high // b[1]
    return (low, high)


def _hull(a: Interval, b: Interval) -> Interval:
    """The least interval that holds both."""
    return (
        None if a[0] is None or b[0] is None else min(a[0], b[0]),
        None if a[1] is None or b[1] is None else max(a[1], b[1]),
    )


def extremum(intervals: Iterable[Interval], least: bool) -> Interval:
    """The interval of the least (else the greatest) of values in the given intervals."""
    lows, highs = zip(*intervals, strict=True)
    known_lows = [x for x in lows if x is not None]
    known_highs = [x for x in highs if x is not None]
    if least:
        return (min(known_lows) if len(known_lows) == len(lows) else None, min(known_highs, default=None))
    return (max(known_lows, default=None), max(known_highs) if len(known_highs) == len(highs) else None)


def monomial_range(monomial: Monomial, atom_range: AtomRange) -> Interval:
    """The interval of a product of atoms; an even power is never negative."""
    if len(monomial) == 1:
        return atom_range(monomial[0])
    result: Interval = (1, 1)
    start = 0
    while start < len(monomial):
        atom = monomial[start]
        power = monomial.count(atom)
        base = atom_range(atom)
        factor: Interval = (1, 1)
        for _ in range(power):
            factor = multiply(factor, base)
        if power % 2 == 0:
            low = 0 if factor[0] is None or (base[0] is None or base[0] < 0) else factor[0]
            if base[1] is not None and base[1] < 0:
                low = base[1] ** power
            factor = (low, factor[1])
        result = multiply(result, factor)
        start += power
    return result


def expr_range(expr: Expr, atom_range: AtomRange) -> Interval:
    """The interval of a sum of terms, each taken on its own."""
    result: Interval = (0, 0)
    for monomial, coefficient in expr.terms:
        result = add(result, scale(monomial_range(monomial, atom_range), coefficient))
    return result
