"""Random elementwise ops: `lin.map`, `lin.cast`, `lin.clamp`, and generics without a reduction."""

from __future__ import annotations

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.lin_bodies import (
    BINARY,
    COMPARE,
    OPERAND_NAMES,
    UNARY,
    block,
    body_lines,
    choose_body,
)
from tilewright.api.testing.lin_text import FLOATS, MAGNITUDE, LinText, Value
from tilewright.dialects.sym import Expr

ONE = Expr.const(1)


def broadcast(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """The NumPy broadcast of two shapes by canonical form; None if there is none."""
    rank = max(len(left), len(right))
    padded = [(ONE,) * (rank - len(s)) + s for s in (left, right)]
    result: list[Expr] = []
    for a, b in zip(*padded, strict=True):
        if a is not b and a is not ONE and b is not ONE:
            return None
        result.append(b if a is ONE else a)
    return tuple(result)


def partner(chance: Chance, text: LinText, x: Value, element: str) -> Value:
    """A second operand that broadcasts with `x`: a value that is there, a new argument, or a scalar by value."""
    found = [
        v
        for v in text.values
        if v.element == element and (dims := broadcast(x.shape, v.shape)) is not None and text.fits(dims)
    ]
    kind = chance.weighted(((4, "there"), (3, "argument"), (1, "scalar")))
    if kind == "there" and found:
        return chance.choose(found)
    if kind == "scalar" and element in ("f32", "i32"):
        return text.argument(None, element)
    keep = chance.integer(0, x.rank) if x.rank else 0
    dims = x.shape[x.rank - keep :] if keep else x.shape
    # A static 1 in place of a dim stretches.
    return text.argument([ONE if chance.flag(6) else d for d in dims], element)


def map_text(operands: list[Value], lines: list[str], result_type: str, element: str, result: str = "%r") -> str:
    """A `lin.map` on these operands."""
    ins = ", ".join(v.name for v in operands) + " : " + ", ".join(v.type for v in operands)
    arguments = [(name, v.element) for name, v in zip(OPERAND_NAMES, operands, strict=False)]
    return f"lin.map ins({ins}) -> {result_type} {block(arguments, lines, result, element)}"


def add_map(chance: Chance, text: LinText, x: Value) -> Value | None:
    """One body of one, two or three operands."""
    kind = chance.weighted(((4, "unary"), (6, "binary"), (1, "compare"), (1, "where")))
    if kind == "where":
        return _where(chance, text, x)
    if kind == "unary":
        operands, bodies = [x], UNARY[x.element]
    else:
        operands = [x, partner(chance, text, x, x.element)]
        bodies = COMPARE[x.element] if kind == "compare" else BINARY[x.element]
    exact = all(v.exact for v in operands)
    chosen = choose_body(chance, bodies, x.element, exact, *(v.magnitude for v in operands))
    dims = x.shape if len(operands) == 1 else broadcast(x.shape, operands[1].shape)
    if chosen is None or dims is None or not text.fits(dims):
        return None
    body, magnitude = chosen
    element = body.result or x.element
    exact = exact and body.exact
    lines = body_lines(body, x.element)
    made = Value("", dims, element, magnitude)
    return text.define(
        "lin.map", map_text(operands, lines, made.type, element), operands, dims, element, magnitude, exact
    )


def _where(chance: Chance, text: LinText, x: Value) -> Value | None:
    """`x` where a mask is true, another value elsewhere."""
    mask = partner(chance, text, x, "i1")
    other = partner(chance, text, x, x.element)
    dims = broadcast(x.shape, mask.shape)
    dims = None if dims is None else broadcast(dims, other.shape)
    if dims is None or not text.fits(dims):
        return None
    exact = mask.exact and x.exact and other.exact
    made = Value("", dims, x.element, max(x.magnitude, other.magnitude), exact)
    operands = [mask, x, other]
    content = map_text(operands, [f"%r = arith.select %p, %q, %s : {x.element}"], made.type, x.element)
    return text.define("lin.map", content, operands, dims, x.element, made.magnitude, exact)


def add_cast(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Another element type. A float becomes an integer only once it is no NaN and in range: beyond, the conversion
    promises nothing."""
    targets = [e for e in text.dtypes if e != x.element and (e == "i32" or x.magnitude <= MAGNITUDE[e])]
    if not targets:
        return None
    element = chance.choose(targets)
    operand = _into_range(text, x) if x.element in FLOATS and element == "i32" else x
    magnitude = 1.0 if element == "i1" else operand.magnitude
    made = Value("", x.shape, element, magnitude)
    content = f"lin.cast {operand.name} : {operand.type} -> {made.type}"
    return text.define("lin.cast", content, [operand], x.shape, element, magnitude, operand.exact)


def _into_range(text: LinText, x: Value) -> Value:
    """`x` held between -100 and 100; NaN becomes 100."""
    lines = [
        f"%r0 = arith.constant 100.0 : {x.element}",
        f"%r1 = arith.minnumf %p, %r0 : {x.element}",
        f"%r2 = arith.constant -100.0 : {x.element}",
        f"%r = arith.maxnumf %r1, %r2 : {x.element}",
    ]
    content = map_text([x], lines, x.type, x.element)
    return text.define("lin.map", content, [x], x.shape, x.element, min(x.magnitude, 100.0), x.exact)


def add_clamp(chance: Chance, text: LinText, x: Value) -> Value | None:
    """Between two numbers."""
    if x.element not in FLOATS:
        return None
    low, high = chance.choose((("0.0", "6.0"), ("-1.0", "1.0"), ("-0.5", "2.0"), ("0.25", "0.25")))
    content = f"lin.clamp {x.name} low {low} high {high} : {x.type} -> {x.type}"
    magnitude = max(abs(float(low)), abs(float(high)))
    return text.define("lin.clamp", content, [x], x.shape, x.element, magnitude, x.exact)
