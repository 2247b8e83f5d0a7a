"""Random reductions: `lin.reduce`, `lin.softmax`, and generics that combine."""

from __future__ import annotations

import math

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.lin_bodies import UNARY, block, body_lines, choose_body
from tilewright.api.testing.lin_generics import ITERATORS, at, generic_text
from tilewright.api.testing.lin_text import FLOATS, MAGNITUDE, LinText, Value

COMBINES = ("sum", "max", "min", "prod")
"""How values are combined."""


def combined_magnitude(combine: str, magnitude: float, length: int) -> float:
    """How large the combination of `length` values may be."""
    if combine == "sum":
        return magnitude * max(length, 1)
    if combine == "prod":
        return math.exp(min(length * math.log(max(magnitude, 1.0)), 100.0))
    return magnitude


def _choose_combine(chance: Chance, text: LinText, x: Value, element: str, length: int) -> tuple[str, float] | None:
    found = [(c, combined_magnitude(c, x.magnitude, length)) for c in COMBINES]
    # Wrapping integers are exact, unlike floats that overflow.
    integers = element not in FLOATS
    found = [(c, m) for c, m in found if m <= MAGNITUDE[element] or integers]
    # Nothing is known of a product of integers that may be off by one.
    found = [(c, m) for c, m in found if c != "prod" or x.exact or not integers]
    return chance.choose(found) if found else None


def _is_exact(x: Value, combine: str, element: str) -> bool:
    return x.exact and (element not in FLOATS or combine in ("max", "min"))


def add_reduce(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Over one or more axes; i1 is counted in i32, floats may be summed into f32."""
    if not x.rank:
        return None
    axes = chance.subset(x.rank)
    element = x.element
    wide = "i32" if element == "i1" else "f32" if element in FLOATS else element
    if wide in text.dtypes and (element == "i1" or chance.flag(4)):
        element = wide
    length = text.count([x.shape[a] for a in axes])
    chosen = _choose_combine(chance, text, x, element, length)
    if chosen is None:
        return None
    combine, magnitude = chosen
    kept = tuple(d for a, d in enumerate(x.shape) if a not in axes)
    made = Value("", kept, element, magnitude)
    content = f"lin.reduce {combine} {x.name} axes {axes} : {x.type} -> {made.type}"
    return text.define("lin.reduce", content, [x], kept, element, magnitude, _is_exact(x, combine, element))


def add_combine(chance: Chance, text: LinText, x: Value) -> Value | None:
    """A generic that combines a body over some dims, the kept ones in any order."""
    if not x.rank:
        return None
    axes = chance.subset(x.rank)
    body = choose_body(chance, UNARY[x.element], x.element, x.exact, x.magnitude)
    if body is None:
        return None
    changed = Value("", x.shape, x.element, body[1], x.exact and body[0].exact)
    chosen = _choose_combine(chance, text, changed, x.element, text.count([x.shape[a] for a in axes]))
    if chosen is None:
        return None
    combine, magnitude = chosen
    iterators = ITERATORS[: x.rank]
    kept = [a for a in range(x.rank) if a not in axes]
    order = [kept[o] for o in chance.order(len(kept))]
    exact = _is_exact(changed, combine, x.element)
    made = Value("", tuple(x.shape[a] for a in order), x.element, magnitude, exact)
    content = generic_text(
        iterators,
        [(x, at(iterators))],
        [iterators[a] for a in order],
        combine,
        made,
        block([("p", x.element)], body_lines(body[0], x.element), "%r", x.element),
    )
    return text.define("lin.generic", content, [x], made.shape, x.element, magnitude, exact)


def add_softmax(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Along one axis, of numbers that are small or exact: the exponential of an error of 100 says nothing."""
    if not x.rank or x.element not in FLOATS or (not x.exact and x.magnitude > 64.0):
        return None
    axis = x.rank - 1 - chance.integer(0, x.rank - 1)
    content = f"lin.softmax {x.name} axis {axis} : {x.type} -> {x.type}"
    return text.define("lin.softmax", content, [x], x.shape, x.element, 1.0)
