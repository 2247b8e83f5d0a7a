"""Scalar bodies of `lin.map` and `lin.generic`: what a person computes of one, two or three scalars.

Each keeps numbers meaningful: divisions, logarithms and roots are taken of what cannot be near zero or negative,
exponentials of what is small. `magnitude` says how large the result may be in the ordinary lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.api.testing.chance import Chance
from tilewright.api.testing.lin_text import FLOATS, MAGNITUDE

Magnitude = Callable[[float, float], float]
"""How large a result may be, from how large its operands may be; of one operand, the second is 0."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body over `{p}`, `{q}`, ... of one element type `{e}` that names its result `{r}`."""

    lines: tuple[str, ...]
    magnitude: Magnitude
    """Of the result, by the magnitudes of the operands."""
    exact: bool = False
    """Whether exact operands give an exact result."""
    native: bool = False
    """Whether f16 and bf16 compute it in their own type; others go through f32."""
    result: str | None = None
    """Element type of the result where it is another than the operands'."""
    needs_exact: bool = False
    """Whether nothing is known of the result of integers that may be off by one."""


def _one(op: str, magnitude: Magnitude, exact: bool = False, native: bool = False) -> Body:
    return Body((f"{{r}} = {op} {{p}} : {{e}}",), magnitude, exact, native)


def _two(op: str, magnitude: Magnitude, exact: bool = False, needs_exact: bool = False) -> Body:
    return Body((f"{{r}} = {op} {{p}}, {{q}} : {{e}}",), magnitude, exact, native=True, needs_exact=needs_exact)


def _same(p: float, q: float) -> float:
    return max(p, q)


def _unit(p: float, q: float) -> float:
    return 1.0


def _exponential(p: float, q: float) -> float:
    return math.exp(min(p, 100.0))


def _above_one(last: str, magnitude: Magnitude) -> Body:
    """`last` of 1 + |p|."""
    start = ("{r}0 = math.absf {p} : {e}", "{r}1 = arith.constant 1.0 : {e}", "{r}2 = arith.addf {r}0, {r}1 : {e}")
    return Body((*start, last), magnitude)


FLOAT_UNARY = (
    _one("arith.negf", _same, exact=True, native=True),
    _one("math.absf", _same, exact=True, native=True),
    _one("math.tanh", _unit),
    _one("math.exp", _exponential),
    _one("math.exp2", _exponential),
    _one("math.sin", _unit),
    _one("math.cos", _unit),
    _one("math.erf", _unit),
    _one("math.floor", lambda p, q: p + 1),
    _one("math.ceil", lambda p, q: p + 1),
    _one("math.roundeven", lambda p, q: p + 1),
    _above_one("{r} = math.log {r}2 : {e}", lambda p, q: math.log1p(p)),
    _above_one("{r} = math.log2 {r}2 : {e}", lambda p, q: math.log2(1 + p)),
    _above_one("{r} = math.sqrt {r}2 : {e}", lambda p, q: math.sqrt(1 + p)),
    _above_one("{r} = math.rsqrt {r}2 : {e}", _unit),
    Body(("{r}0 = arith.constant 0.5 : {e}", "{r} = arith.mulf {p}, {r}0 : {e}"), lambda p, q: p, native=True),
    Body(("{r}0 = arith.constant 0.0 : {e}", "{r} = arith.maximumf {p}, {r}0 : {e}"), _same, exact=True, native=True),
    Body(("{r}0 = arith.constant 4.0 : {e}", "{r} = arith.divf {p}, {r}0 : {e}"), lambda p, q: p, native=True),
)
FLOAT_BINARY = (
    _two("arith.addf", lambda p, q: p + q),
    _two("arith.mulf", lambda p, q: p * q),
    _two("arith.subf", lambda p, q: p + q),
    _two("arith.maximumf", _same, exact=True),
    _two("arith.minimumf", _same, exact=True),
    _two("arith.maxnumf", _same, exact=True),
    _two("arith.minnumf", _same, exact=True),
    Body(("{r} = math.fma {p}, {q}, {p} : {e}",), lambda p, q: p * q + p),
    Body(
        (
            "{r}0 = math.absf {q} : {e}",
            "{r}1 = arith.constant 1.0 : {e}",
            "{r}2 = arith.addf {r}0, {r}1 : {e}",
            "{r} = arith.divf {p}, {r}2 : {e}",
        ),
        lambda p, q: p,
    ),
    Body(
        ("{r}0 = arith.cmpf ogt, {p}, {q} : {e}", "{r} = arith.select {r}0, {p}, {q} : {e}"),
        _same,
        exact=True,
        native=True,
    ),
)
INTEGER_UNARY = (
    Body(("{r}0 = arith.constant 0 : {e}", "{r} = arith.subi {r}0, {p} : {e}"), _same, exact=True),
    Body(
        ("{r}0 = arith.constant 3 : {e}", "{r} = arith.floordivsi {p}, {r}0 : {e}"), _same, exact=True, needs_exact=True
    ),
    Body(
        ("{r}0 = arith.constant 5 : {e}", "{r} = arith.remsi {p}, {r}0 : {e}"),
        lambda p, q: 5.0,
        exact=True,
        needs_exact=True,
    ),
    Body(("{r}0 = arith.constant 1 : {e}", "{r} = arith.shrsi {p}, {r}0 : {e}"), _same, exact=True, needs_exact=True),
)
INTEGER_BINARY = (
    _two("arith.addi", lambda p, q: p + q, exact=True),
    _two("arith.muli", lambda p, q: p * q, exact=True, needs_exact=True),
    _two("arith.subi", lambda p, q: p + q, exact=True),
    _two("arith.maxsi", _same, exact=True),
    _two("arith.minsi", _same, exact=True),
    _two("arith.andi", lambda p, q: 2 * max(p, q), exact=True, needs_exact=True),
    _two("arith.xori", lambda p, q: 2 * max(p, q), exact=True, needs_exact=True),
)
TRUTH_UNARY = (Body(("{r}0 = arith.constant true", "{r} = arith.xori {p}, {r}0 : {e}"), _unit, exact=True),)
TRUTH_BINARY = (
    _two("arith.andi", _unit, exact=True),
    _two("arith.ori", _unit, exact=True),
    _two("arith.xori", _unit, exact=True),
)
FLOAT_COMPARE = tuple(
    Body((f"{{r}} = arith.cmpf {predicate}, {{p}}, {{q}} : {{e}}",), _unit, exact=True, native=True, result="i1")
    for predicate in ("olt", "oge", "oeq", "une", "ult")
)
INTEGER_COMPARE = tuple(
    Body((f"{{r}} = arith.cmpi {predicate}, {{p}}, {{q}} : {{e}}",), _unit, exact=True, result="i1")
    for predicate in ("slt", "sge", "eq", "ne")
)

UNARY: dict[str, tuple[Body, ...]] = {
    **dict.fromkeys(FLOATS, FLOAT_UNARY),
    "i32": INTEGER_UNARY,
    "i1": TRUTH_UNARY,
}
"""By element type, simplest first."""
BINARY: dict[str, tuple[Body, ...]] = {
    **dict.fromkeys(FLOATS, FLOAT_BINARY),
    "i32": INTEGER_BINARY,
    "i1": TRUTH_BINARY,
}
COMPARE: dict[str, tuple[Body, ...]] = {
    **dict.fromkeys(FLOATS, FLOAT_COMPARE),
    "i32": INTEGER_COMPARE,
    "i1": (),
}

OPERAND_NAMES = ("p", "q", "s")
"""Of the scalars of a body, without `%`."""


def choose_body(
    chance: Chance, bodies: Sequence[Body], element: str, exact: bool, p: float, q: float = 0.0
) -> tuple[Body, float] | None:
    """A body whose result stays within what its element type holds, and how large it may be; None if there is none.

    `exact` says whether the operands are, `p` and `q` are their magnitudes.
    """
    fitting = [(b, b.magnitude(p, q)) for b in bodies if exact or not b.needs_exact]
    # Exponentials of large numbers hide all else behind their error.
    fitting = [(b, m) for b, m in fitting if m <= MAGNITUDE[b.result or element] or element == "i32"]
    return chance.choose(fitting) if fitting else None


def body_lines(body: Body, element: str, operands: Sequence[str] = OPERAND_NAMES, result: str = "r") -> list[str]:
    """The lines of the body on scalars of this element type; `%r` is the result."""
    widened = element in ("f16", "bf16") and not body.native
    names = {name: f"%{operand}" for name, operand in zip(OPERAND_NAMES, operands, strict=False)}
    used = [n for n in names if any(f"{{{n}}}" in line for line in body.lines)]
    if not widened:
        return [line.format(**names, e=element, r=f"%{result}") for line in body.lines]
    wide = {n: f"{names[n]}w" for n in used}
    lines = [f"{wide[n]} = arith.extf {names[n]} : {element} to f32" for n in used]
    lines += [line.format(**wide, e="f32", r=f"%{result}w") for line in body.lines]
    return [*lines, f"%{result} = arith.truncf %{result}w : f32 to {element}"]


def block(arguments: Sequence[tuple[str, str]], lines: Sequence[str], result: str, element: str) -> str:
    """`{ ^bb0(%p: f32): ... lin.yield %r : f32 }` over several lines; arguments are (name, element type)."""
    head = ", ".join(f"%{name}: {kind}" for name, kind in arguments)
    inner = "".join(f"    {line}\n" for line in [*lines, f"lin.yield {result} : {element}"])
    return f"{{\n  ^bb0({head}):\n{inner}  }}"
