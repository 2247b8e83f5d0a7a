"""`lin_programs`: random well-typed programs of the tensor level, with sizes, a seed and a lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, Literal

import hypothesis.strategies as st

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.lin_contractions import add_contraction, add_conv2d, add_matmul
from tilewright.api.testing.lin_elementwise import add_cast, add_clamp, add_map
from tilewright.api.testing.lin_generics import add_diagonal, add_generic
from tilewright.api.testing.lin_movement import (
    add_concat,
    add_gather,
    add_pad,
    add_reshape,
    add_slice,
    add_transpose,
)
from tilewright.api.testing.lin_reductions import add_combine, add_reduce, add_softmax
from tilewright.api.testing.lin_text import DTYPES, FLOATS, LinText, Value
from tilewright.api.testing.program import Lane, Program
from tilewright.api.testing.shapes import MAX_ELEMENTS, TILE, size_table
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import Expr

Adder = Callable[[Chance, LinText, Value], Value | None]

OPS: Final[tuple[tuple[int, str, Adder], ...]] = (
    (16, "map", add_map),
    (8, "reduce", add_reduce),
    (8, "matmul", add_matmul),
    (5, "transpose", add_transpose),
    (5, "softmax", add_softmax),
    (5, "cast", add_cast),
    (6, "generic", add_generic),
    (5, "contraction", add_contraction),
    (4, "combine", add_combine),
    (5, "reshape", add_reshape),
    (5, "slice", add_slice),
    (4, "pad", add_pad),
    (5, "concat", add_concat),
    (4, "gather", add_gather),
    (4, "conv2d", add_conv2d),
    (3, "clamp", add_clamp),
    (3, "diagonal", add_diagonal),
)
"""Weight, kind and writer of each kind of op, simplest first. A writer returns None where its op does not fit."""

SYMBOLS = ("M", "N", "K", "S")
"""Names of the symbols, in the order in which they are declared."""
SEEDS = 1 << 16


@cache
def _slot(number: int) -> Callable[..., st.SearchStrategy[None]]:
    """The strategy that adds the op of this number.

    A span of its own for each op lets the shrinker take it out whole; a label of its own (which Hypothesis makes of a
    function's defaults, among others) keeps it from being mutated into a copy of its neighbour.
    """

    def add_op(draw: st.DrawFn, text: LinText, kinds: Sequence[tuple[int, Adder]], slot: int = number) -> None:
        chance = Chance(draw)
        # An op shrinks to none before it shrinks to a simple one.
        add = chance.weighted(((1, None), *kinds))
        if add is None:
            return
        x = _operand(chance, text)
        if add(chance, text, x) is None and chance.weighted(kinds)(chance, text, x) is None:
            _fallback(chance, text, x)

    return st.composite(add_op)


@st.composite
def lin_programs(
    draw: st.DrawFn,
    *,
    max_ops: int = 8,
    dtypes: Sequence[str] = DTYPES,
    lane: Lane | None = None,
    tile: int = TILE,
    max_elements: int = MAX_ELEMENTS,
    huge: bool = False,
    ops: Sequence[str] | None = None,
) -> Program:
    """Programs of one function `@f` of up to `max_ops` ops (an op may bring a helper), that verify and can run.

    `dtypes` are the element types of tensors that may occur, `lane` the values of the inputs (both if None), `tile`
    the size around which sizes are drawn, `max_elements` a bound on each tensor, and `ops` the kinds of op (the second
    column of `OPS`; all if None). With `huge` a size beyond a grid's y and z dims comes up, rarely.

    The sizes of a program satisfy its `sym.symbol` and `sym.require`. Examples shrink to fewer ops, smaller sizes and
    fewer dims. TilewrightError for an unknown element type or kind of op.
    """
    chance = Chance(draw)
    chosen = _chosen_ops(ops)
    for each in dtypes:
        if each not in DTYPES:
            raise TilewrightError(f"dtypes: expected element types among {', '.join(DTYPES)}, got {each!r}")
    count = chance.integer(1, max_ops)
    text = LinText(dtypes, max_elements)
    _declare(chance, text, tile, huge)
    for _ in range(chance.choose((1, 1, 2))):
        _add_argument(chance, text)
    for slot in range(count):
        draw(_slot(slot)(text, chosen))
    if not text.computed:
        _fallback(chance, text, text.values[0])
    returned = _returned(chance, text)
    content, sizes = text.finish(returned)
    lanes: tuple[Lane, ...] = ("ordinary", "special") if lane is None else (lane,)
    return Program(content, sizes, chance.integer(0, SEEDS - 1), chance.choose(lanes), "tensor")


def _chosen_ops(ops: Sequence[str] | None) -> list[tuple[int, Adder]]:
    known = {name: (weight, add) for weight, name, add in OPS}
    for name in ops or ():
        if name not in known:
            raise TilewrightError(f"ops: expected kinds among {', '.join(known)}, got {name!r}")
    if ops is None:
        return list(known.values())
    return [(weight, add) for name, (weight, add) in known.items() if name in ops]


def _declare(chance: Chance, text: LinText, tile: int, huge: bool) -> None:
    """Two to four symbols, some with bounds, some with a relation to one before."""
    count = chance.choose((2, 2, 3, 3, 1, 4))
    table = size_table(tile, huge=huge)
    small = [size for size in table if size <= 8]
    for n, name in enumerate(SYMBOLS[:count]):
        beyond = max(text.sizes.values(), default=0) > 4 * tile + 2
        size = chance.choose(small if beyond or (n and chance.flag(3)) else table)
        relation = None
        if n and chance.flag(8):
            size, relation = _related(chance, text, SYMBOLS[n - 1], name, table[-1])
        text.symbol(name, size, _properties(chance, size))
        if relation is not None:
            text.require(relation, frozenset((SYMBOLS[n - 1], name)))


def _related(chance: Chance, text: LinText, other: str, name: str, largest: int) -> tuple[int, str]:
    """A size for `name` that follows from that of `other`, and the relation to state."""
    given = text.sizes[other]
    kind: Literal["equal", "twice", "odd", "less"] = chance.choose(("equal", "twice", "odd", "less"))
    if kind == "less":
        return max(given - chance.integer(0, 3), 0), f"{other} >= {name}"
    if kind == "equal" or 2 * given + 1 > largest:
        return given, f"{name} == {other}"
    return (2 * given, f"{name} == 2*{other}") if kind == "twice" else (2 * given + 1, f"{name} == 2*{other} + 1")


def _properties(chance: Chance, size: int) -> str:
    """Bounds and divisors that the size has."""
    entries: list[str] = []
    if chance.flag(6):
        entries.append(f"min = {min(size, chance.choose((1, 2, size)))}")
    if chance.flag(6):
        entries.append(f"max = {max(size, chance.choose((size, 64, 8192)))}")
    divisors = [d for d in (16, 8, 4, 3, 2) if size % d == 0 and size]
    if chance.flag(3) and divisors:
        entries.append(f"multiple_of = {chance.choose(divisors)}")
    return f"{{{', '.join(entries)}}}" if entries else ""


def _add_argument(chance: Chance, text: LinText) -> Value:
    """A tensor of up to four dims that is small enough."""
    rank = chance.weighted(((2, 1), (5, 2), (3, 3), (1, 4), (1, 0)))
    dims: list[Expr] = []
    for _ in range(rank):
        dim = _dim(chance, text, dims)
        dims.append(dim if text.fits([*dims, dim]) else Expr.const(chance.integer(1, 3)))
    element = chance.weighted([(4 if e == "f32" else 1, e) for e in text.dtypes])
    return text.argument(dims, element)


def _dim(chance: Chance, text: LinText, dims: Sequence[Expr]) -> Expr:
    """A symbol, mostly one that the shape has not yet; or a number; or an expression that a size can be solved for."""
    symbols = [Expr.symbol(s) for s in text.sizes]
    fresh = [s for s in symbols if s not in dims]
    kind = chance.weighted(((10, "fresh"), (2, "any"), (2, "number"), (2, "linear"), (1, "derived")))
    if kind == "number":
        return Expr.const(chance.choose((1, 2, 3, 4, 8, 33)))
    symbol = chance.choose(fresh if fresh and kind == "fresh" else symbols)
    if kind == "linear":
        return chance.choose((symbol + 1, symbol * 2, symbol * 2 + 1, symbol * 4, symbol + 3))
    if kind == "derived" and symbol.symbols <= text.bound.keys():
        other = Expr.symbol(chance.choose(list(text.bound)))
        return symbol * other
    return symbol


def _operand(chance: Chance, text: LinText) -> Value:
    """A value that is there, the latest most often."""
    if not chance.flag(2):
        return text.values[-1] if text.computed else text.values[0]
    return chance.choose(text.values[::-1])


def _fallback(chance: Chance, text: LinText, x: Value) -> None:
    """What always fits: an op of one or two operands of the shape of `x`."""
    if add_map(chance, text, x) is None:
        from tilewright.api.testing.lin_elementwise import map_text

        same = "arith.negf %p" if x.element in FLOATS else "arith.ori %p, %p"
        content = map_text([x], [f"%r = {same} : {x.element}"], x.type, x.element)
        text.define("lin.map", content, [x], x.shape, x.element, x.magnitude, x.exact)


def _returned(chance: Chance, text: LinText) -> list[Value]:
    """The values that nothing reads, the last first, and perhaps one more."""
    found = text.unused[::-1][:4]
    if chance.flag(4):
        more = [v for v in text.values if v not in found]
        if more:
            found.append(chance.choose(more))
    return found
