"""Random ops that move elements: transpose, slice, pad, concat, reshape, gather. They keep values exactly."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.lin_generics import zero
from tilewright.api.testing.lin_text import FLOATS, LinText, Value
from tilewright.dialects.sym import Expr, ceildiv, floordiv

ONE = Expr.const(1)
ZERO = Expr.const(0)


def _moved(text: LinText, op: str, content: str, x: Value, dims: Sequence[Expr]) -> Value:
    """The result of an op that only moves the elements of `x`; `content` lacks op, operand and types."""
    made = Value("", tuple(dims), x.element, x.magnitude, x.exact)
    line = f"{op} {x.name}{content} : {x.type} -> {made.type}"
    return text.define(op, line, [x], dims, x.element, x.magnitude, x.exact)


def _listed(exprs: Sequence[Expr | int]) -> str:
    return f"[{', '.join(map(str, exprs))}]"


def add_transpose(chance: Chance, text: LinText, x: Value) -> Value | None:
    """The dims in another order."""
    if x.rank < 2:
        return None
    perm = chance.order(x.rank)
    if perm == sorted(perm):
        perm = perm[::-1]
    return _moved(text, "lin.transpose", f" perm {perm}", x, [x.shape[p] for p in perm])


def add_slice(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Along each dim all of it, or a part: without the first or last elements, the first few, every second."""
    if not x.rank:
        return None
    parts = [_part(chance, text, d) for d in x.shape]
    if all(part == (ZERO, d, 1) for part, d in zip(parts, x.shape, strict=True)):
        return None
    offsets, counts, steps = zip(*parts, strict=True)
    strides = "" if set(steps) == {1} else f" strides {list(steps)}"
    text.mentioned |= {s for e in (*offsets, *counts) for s in e.symbols}
    return _moved(text, "lin.slice", f" offsets {_listed(offsets)} sizes {_listed(counts)}{strides}", x, counts)


def _part(chance: Chance, text: LinText, d: Expr) -> tuple[Expr, Expr, int]:
    """(offset, size, stride) along a dim; all of it where the drawn part would not lie inside."""
    size = text.size(d)
    few = Expr.const(chance.integer(1, 3))
    symbols = [Expr.symbol(s) for s in text.bound if text.sizes[s] <= size]
    kind = chance.weighted(
        ((4, "all"), (3, "front"), (2, "back"), (1, "both"), (2, "second"), (1, "first"), (2, "symbol"), (1, "half"))
    )
    if kind == "front" and size >= text.size(few):
        return few, d - few, 1
    if kind == "back" and size >= text.size(few):
        return ZERO, d - few, 1
    if kind == "both" and size >= 2:
        return ONE, d - 2, 1
    if kind == "second":
        return ZERO, ceildiv(d, 2), 2
    if kind == "first" and size >= text.size(few):
        return ZERO, few, 1
    if kind == "symbol" and symbols:
        symbol = chance.choose(symbols)
        return (symbol, d - symbol, 1) if chance.flag(2) else (ZERO, symbol, 1)
    if kind == "half":
        return floordiv(d, 2), d - floordiv(d, 2), 1
    return ZERO, d, 1


def add_pad(chance: Chance, text: LinText, x: Value) -> Value | None:
    """A constant around, counts being numbers or symbols."""
    if not x.rank:
        return None
    symbols = [Expr.symbol(s) for s in text.bound]
    counts = [ZERO, ZERO, ONE, Expr.const(2), *symbols[:1]]
    low = [chance.choose(counts) for _ in x.shape]
    high = [chance.choose(counts) for _ in x.shape]
    if all(c is ZERO for c in (*low, *high)):
        low[-1] = ONE
    dims = [a + d + b for a, d, b in zip(low, x.shape, high, strict=True)]
    if not text.fits(dims):
        return None
    value = zero(x.element)
    if x.element in FLOATS:
        value = f"{chance.choose(('0.0', '1.0', '-1.5'))} : {x.element}"
    elif x.element == "i32":
        value = f"{chance.choose((0, 7, -1))} : i32"
    text.mentioned |= {s for e in (*low, *high) for s in e.symbols}
    return _moved(text, "lin.pad", f" low {_listed(low)} high {_listed(high)} value {value}", x, dims)


def add_concat(chance: Chance, text: LinText, x: Value) -> Value | None:
    """With itself, with values that fit, or with a new argument of another size along the axis."""
    if not x.rank:
        return None
    axis = chance.integer(0, x.rank - 1)
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    fitting = [
        v
        for v in text.values
        if v.element == x.element and v.rank == x.rank and (*v.shape[:axis], *v.shape[axis + 1 :]) == rest
    ]
    operands = [x]
    for _ in range(chance.choose((1, 1, 2))):
        if chance.flag(2):
            operands.append(chance.choose(fitting))
            continue
        size = chance.choose([ONE, Expr.const(3), *(Expr.symbol(s) for s in text.sizes)])
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        if text.fits(shape):
            operands.append(text.argument(shape, x.element))
    if chance.flag(3):
        operands.reverse()
    total = ZERO
    for v in operands:
        total = total + v.shape[axis]
    dims = (*x.shape[:axis], total, *x.shape[axis + 1 :])
    if not text.fits(dims):
        return None
    magnitude, exact = max(v.magnitude for v in operands), all(v.exact for v in operands)
    made = Value("", dims, x.element, magnitude, exact)
    names, types = (", ".join(parts) for parts in ([v.name for v in operands], [v.type for v in operands]))
    content = f"lin.concat {names} axis {axis} : {types} -> {made.type}"
    return text.define("lin.concat", content, operands, dims, x.element, magnitude, exact)


def add_reshape(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Dims joined, split, or swapped in the sizes; a 1 more or less."""
    dims = _reshaped(chance, text, x.shape)
    if dims is None or tuple(dims) == x.shape or not text.fits(dims):
        return None
    return _moved(text, "lin.reshape", "", x, dims)


def _reshaped(chance: Chance, text: LinText, dims: tuple[Expr, ...]) -> Sequence[Expr] | None:
    kind = chance.choose(("join", "split", "flat", "unit", "cross", "symbol"))
    place = chance.integer(0, max(len(dims) - 1, 0))
    if kind == "join" and len(dims) > 1:
        place = min(place, len(dims) - 2)
        return [*dims[:place], dims[place] * dims[place + 1], *dims[place + 2 :]]
    if kind == "flat" and len(dims) > 1:
        total = ONE
        for d in dims:
            total = total * d
        return [total]
    if kind == "cross" and len(dims) > 1:
        return dims[::-1]
    if kind == "unit":
        ones = [a for a, d in enumerate(dims) if d is ONE]
        if ones:
            return [*dims[: ones[0]], *dims[ones[0] + 1 :]]
        return [*dims[:place], ONE, *dims[place:]]
    if not dims:
        return None
    split = _split(text, dims[place])
    if split is None:
        return None
    return [*dims[:place], *(split[::-1] if chance.flag(2) else split), *dims[place + 1 :]]


def _split(text: LinText, d: Expr) -> tuple[Expr, Expr] | None:
    """Two factors of a size: a number that divides it, or a product's first symbol."""
    if d.constant is None and len(d.terms) == 1 and len(d.terms[0][0]) > 1:
        first = d.terms[0][0][0]
        if first.kind == "symbol":
            head = Expr.symbol(first.name)
            return head, floordiv(d, head)
    for factor in (4, 3, 2):
        if d.constant is not None:
            if d.constant and d.constant % factor == 0:
                return Expr.const(d.constant // factor), Expr.const(factor)
        elif text.size(d) % factor == 0:
            # What the symbols do not promise becomes a requirement.
            return floordiv(d, factor), Expr.const(factor)
    return None


def add_gather(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Rows of `x`; or, of exact integers, rows of a new table by `x`."""
    sizes = [*(Expr.symbol(s) for s in text.sizes), Expr.const(3)]
    if x.element == "i32" and x.exact and chance.flag(2):
        row = [chance.choose(sizes)] if chance.flag(2) else []
        rows = chance.choose(sizes)
        if not text.fits((rows, *row)) or not text.fits((*x.shape, *row)):
            return None
        table, ids = text.argument((rows, *row), chance.choose(text.dtypes)), x
    else:
        if not x.rank or "i32" not in text.dtypes:
            return None
        known = [v for v in text.values if v.element == "i32" and v.exact and text.fits((*v.shape, *x.shape[1:]))]
        if known and chance.flag(2):
            table, ids = x, chance.choose(known)
        else:
            shape = [chance.choose(sizes) for _ in range(chance.choose((1, 1, 2, 0)))]
            if not text.fits(shape) or not text.fits((*shape, *x.shape[1:])):
                return None
            table, ids = x, text.argument(shape, "i32")
    dims = (*ids.shape, *table.shape[1:])
    if not text.fits(dims):
        return None
    made = Value("", dims, table.element, table.magnitude, table.exact)
    content = f"lin.gather {table.name}, {ids.name} : {table.type}, {ids.type} -> {made.type}"
    return text.define("lin.gather", content, [table, ids], dims, table.element, table.magnitude, table.exact)
