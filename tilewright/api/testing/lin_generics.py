"""Random `lin.generic` ops without a reduction: permuted results, rows, diagonals, places, and computed reads."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.lin_bodies import BINARY, block, body_lines, choose_body
from tilewright.api.testing.lin_text import FLOATS, LinText, Value
from tilewright.dialects.sym import Expr

ITERATORS = ("i", "j", "k", "l", "m", "n")
"""Names of iteration dims."""


def generic_text(
    iterators: Sequence[str],
    operands: Sequence[tuple[Value, str]],
    out: Sequence[str],
    combine: str,
    result: Value,
    body: str,
) -> str:
    """A `lin.generic`; each operand stands with what follows its name: `[i, j]`, ` at [i - 1] else 0.0 : f32`, or
    nothing for a scalar."""
    ins = ", ".join(f"{v.name}{read} : {v.type}" for v, read in operands)
    how = f" combine {combine}" if combine else ""
    return f"lin.generic ({', '.join(iterators)}) ins({ins}) out[{', '.join(out)}]{how} : {result.type} {body}"


def at(names: Sequence[str]) -> str:
    """`[i, j]`; nothing for no names, of a scalar or a tensor of rank 0."""
    return f"[{', '.join(names)}]"


def zero(element: str) -> str:
    """The constant 0 of an element type, as an attribute."""
    return f"0.0 : {element}" if element in FLOATS else "false" if element == "i1" else f"0 : {element}"


def add_generic(chance: Chance, text: LinText, x: Value) -> Value | None:
    """One of the forms that named ops do not have."""
    form = chance.choose((_row, _stretched, _masked, _shifted, _looked_up))
    return form(chance, text, x)


def _row(chance: Chance, text: LinText, x: Value) -> Value | None:
    """`x` with a value of some of its dims, the result's dims in any order."""
    iterators = ITERATORS[: x.rank]
    axes = chance.subset(x.rank, 0)
    y = text.argument([x.shape[a] for a in axes], x.element)
    chosen = choose_body(chance, BINARY[x.element], x.element, x.exact, x.magnitude, y.magnitude)
    if chosen is None:
        return None
    body, magnitude = chosen
    order = chance.order(x.rank)
    made = Value("", tuple(x.shape[o] for o in order), x.element, magnitude)
    content = generic_text(
        iterators,
        [(x, at(iterators)), (y, at([iterators[a] for a in axes]))],
        [iterators[o] for o in order],
        "",
        made,
        block([("p", x.element), ("q", x.element)], body_lines(body, x.element), "%r", x.element),
    )
    return text.define("lin.generic", content, [x, y], made.shape, x.element, magnitude, body.exact and x.exact)


def _stretched(chance: Chance, text: LinText, x: Value) -> Value | None:
    """`x` repeated along a new dim that no operand has."""
    symbols = [Expr.symbol(s) for s in text.bound]
    size = chance.choose([Expr.const(2), Expr.const(3), *symbols])
    place = chance.integer(0, x.rank)
    dims = (*x.shape[:place], size, *x.shape[place:])
    if x.rank >= len(ITERATORS) or not text.fits(dims):
        return None
    text.mentioned |= size.symbols
    iterators = ITERATORS[: x.rank + 1]
    own = [*iterators[:place], *iterators[place + 1 :]]
    made = Value("", dims, x.element, x.magnitude, x.exact)
    body = block([("p", x.element)], [], "%p", x.element)
    content = generic_text(iterators, [(x, at(own))], iterators, "", made, body)
    return text.define("lin.generic", content, [x], dims, x.element, x.magnitude, x.exact)


def add_diagonal(chance: Chance, text: LinText, x: Value) -> Value | None:
    """The elements of `x`, or of a new square, whose indices along two equal dims are equal."""
    if len(set(x.shape)) == x.rank:
        size = Expr.symbol(chance.choose(list(text.sizes)))
        if not text.fits((size, size)):
            return None
        x = text.argument((size, size), x.element)
    pairs = [(a, b) for b in range(x.rank) for a in range(b) if x.shape[a] is x.shape[b]]
    first, second = chance.choose(pairs)
    kept = [a for a in range(x.rank) if a != second]
    iterators = ITERATORS[: len(kept)]
    names = [iterators[kept.index(first if a == second else a)] for a in range(x.rank)]
    dims = tuple(x.shape[a] for a in kept)
    made = Value("", dims, x.element, x.magnitude, x.exact)
    body = block([("p", x.element)], [], "%p", x.element)
    content = generic_text(iterators, [(x, at(names))], iterators, "", made, body)
    return text.define("lin.generic", content, [x], dims, x.element, x.magnitude, x.exact)


def _masked(chance: Chance, text: LinText, x: Value) -> Value | None:
    """`x` where one index is at or before another, or before a size; zero elsewhere."""
    if not x.rank:
        return None
    iterators = ITERATORS[: x.rank]
    lines = [f"%r0 = lin.index {chance.integer(0, x.rank - 1)} : index"]
    symbols = list(text.bound)
    if symbols and chance.flag(2):
        limit = Expr.symbol(chance.choose(symbols)) - chance.integer(0, 3)
        text.mentioned |= limit.symbols
        lines.append(f"%r1 = sym.apply {limit} : index")
    else:
        lines.append(f"%r1 = lin.index {chance.integer(0, x.rank - 1)} : index")
    constant = "arith.constant false" if x.element == "i1" else f"arith.constant {zero(x.element)}"
    lines += [
        f"%r2 = {constant}",
        f"%r3 = arith.cmpi {chance.choose(('sle', 'sgt'))}, %r0, %r1 : index",
        f"%r = arith.select %r3, %p, %r2 : {x.element}",
    ]
    made = Value("", x.shape, x.element, x.magnitude, x.exact)
    body = block([("p", x.element)], lines, "%r", x.element)
    content = generic_text(iterators, [(x, at(iterators))], iterators, "", made, body)
    return text.define("lin.generic", content, [x], x.shape, x.element, x.magnitude, x.exact)


def _shifted(chance: Chance, text: LinText, x: Value) -> Value | None:
    """`x` plus itself moved along one dim, zero where nothing is."""
    if not x.rank:
        return None
    chosen = choose_body(chance, BINARY[x.element], x.element, x.exact, x.magnitude, x.magnitude)
    if chosen is None:
        return None
    body, magnitude = chosen
    iterators = ITERATORS[: x.rank]
    axis = chance.integer(0, x.rank - 1)
    steps = ["- 1", "+ 1", "- 3", *(f"+ {s}" for s in text.bound)]
    step = chance.choose(steps)
    text.mentioned |= {step[2:]} & text.bound.keys()
    moved = [f"{name} {step}" if a == axis else name for a, name in enumerate(iterators)]
    made = Value("", x.shape, x.element, magnitude, body.exact and x.exact)
    content = generic_text(
        iterators,
        [(x, at(iterators)), (x, f" at {at(moved)} else {zero(x.element)}")],
        iterators,
        "",
        made,
        block([("p", x.element), ("q", x.element)], body_lines(body, x.element), "%r", x.element),
    )
    return text.define("lin.generic", content, [x, x], x.shape, x.element, magnitude, made.exact)


def _looked_up(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Rows of `x` by the values of an integer argument, plus an offset, zero where there is no such row."""
    if not x.rank or "i32" not in text.dtypes:
        return None
    known = [Expr.symbol(s) for s in text.bound]
    ids = text.argument([chance.choose([*known, Expr.const(3)])], "i32")
    dims = (*ids.shape, *x.shape[1:])
    if not text.fits(dims):
        return None
    iterators = ITERATORS[: x.rank]
    index = f"v0 {chance.choose(('', '+ 1', '- 1'))}".strip()
    read = f" at {at([index, *iterators[1:]])} else {zero(x.element)}"
    made = Value("", dims, x.element, x.magnitude, x.exact)
    body = block([("p", "i32"), ("q", x.element)], [], "%q", x.element)
    # `as v0` names the value of the operand for the index.
    content = generic_text(iterators, [(ids, f"{at(iterators[:1])} as v0"), (x, read)], iterators, "", made, body)
    return text.define("lin.generic", content, [ids, x], dims, x.element, x.magnitude, x.exact)
