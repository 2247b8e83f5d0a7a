"""How the sizes of arguments give symbols their values: a list of steps, made once from the types of an entry.

A symbol is solved from the first size that is linear in it once the symbols before it are known; every other size is a
check. All of this is integers and expressions: no array is looked at here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from xdsl.dialects import func

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.host.ops import FuncOp
from tilewright.dialects.lin.shapes import is_tensor
from tilewright.dialects.location import location_of
from tilewright.dialects.sym import Expr, dims_of
from tilewright.dialects.sym.expr import Monomial, divide_monomial, from_terms


class Layout(NamedTuple):
    """A tensor as the plan sees it: sizes, element strides, address in bytes. Strides are normalised (`normalised`)."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value of a symbol comes from; `str()` is what messages say."""

    tensor: str
    """`argument 0`, `result 1` or `scratch 0`."""
    what: str
    """`dim`, `stride` or `base`; `let` for what the plan computes, where `tensor` is empty."""
    dim: int = 0
    equation: str = ""
    """How the value follows from it, where it is not the value itself: `2*S + 1 = 9`."""

    def __str__(self) -> str:
        if self.what == "base":
            return f"base address of {self.tensor}"
        if self.what == "let":
            return self.equation
        place = f"{self.tensor} dim {self.dim}" if self.what == "dim" else f"stride of {self.tensor} dim {self.dim}"
        return f"{place} ({self.equation})" if self.equation else place


VALUE_LIMIT: Final = 1 << 63
"""Values of symbols are signed numbers of 64 bits."""


@dataclass(frozen=True, slots=True)
class Solve:
    """`factor * symbol + rest == size of a dim`, for factor and rest of known symbols."""

    symbol: str
    factor: Expr
    rest: Expr
    argument: int
    dim: int


@dataclass(frozen=True, slots=True)
class Check:
    """The size of a dim is this expression of known symbols."""

    expr: Expr
    argument: int
    dim: int


@dataclass
class Environment:
    """Values of symbols so far, each with where it came from, for the plan's interpreter and its messages."""

    values: dict[str, int] = field(default_factory=dict[str, int])
    sources: dict[str, Source] = field(default_factory=dict[str, Source])

    def bind(self, symbol: str, value: int, source: Source) -> None:
        """Give a symbol its value; a second, different value is an error that names both places."""
        if not -VALUE_LIMIT <= value < VALUE_LIMIT:
            raise TilewrightError(
                f"{symbol}: expected a value of 64 bits, got one of {value.bit_length()} from {source}"
            )
        known = self.values.get(symbol)
        if known is not None and known != value:
            raise TilewrightError(f"{symbol} = {known} from {self.sources[symbol]}, {value} from {source}")
        if known is None:
            self.values[symbol] = value
            self.sources[symbol] = source

    def describe(self, symbols: Sequence[str]) -> str:
        """`M = 3 from argument 0 dim 1, N = 4 from argument 1 dim 0`."""
        parts: list[str] = []
        for name in symbols:
            source = self.sources.get(name)
            parts.append(f"{name} = {self.values.get(name)}" + (f" from {source}" if source is not None else ""))
        return ", ".join(parts)


def size_steps(entry: FuncOp | func.FuncOp) -> tuple[Solve | Check, ...]:
    """The steps that bind the symbols in the argument types of an entry, in order.

    Raises `TilewrightError` at the function, naming symbol and dim, for a symbol that no size determines.
    """
    pending = [
        (number, dim, expr)
        for number, argument in enumerate(entry.body.block.args)
        if is_tensor(argument.type)
        for dim, expr in enumerate(dims_of(argument.type))
    ]
    known: set[str] = set()
    steps: list[Solve | Check] = []
    while pending:
        ready = [(n, d, e) for n, d, e in pending if e.symbols <= known]
        steps.extend(Check(e, n, d) for n, d, e in ready)
        pending = [each for each in pending if not each[2].symbols <= known]
        best: tuple[int, Solve] | None = None
        for number, dim, expr in pending:
            unknown = expr.symbols - known
            if len(unknown) > 1:
                continue
            parts = linear_parts(expr, next(iter(unknown)))
            if parts is None:
                continue
            factor, rest = parts
            # A bare symbol is the surest source, a constant factor needs no check for zero.
            rank = 0 if factor.constant == 1 and rest.constant == 0 else 1 if factor.constant is not None else 2
            if best is None or rank < best[0]:
                best = rank, Solve(next(iter(unknown)), factor, rest, number, dim)
        if best is not None:
            steps.append(best[1])
            known.add(best[1].symbol)
            pending = [each for each in pending if each[:2] != (best[1].argument, best[1].dim)]
        elif pending:
            raise TilewrightError(
                f"@{entry.sym_name.data}: no argument size determines {_undetermined(pending, known)}",
                location_of(entry),
            )
    return tuple(steps)


def _undetermined(pending: Sequence[tuple[int, int, Expr]], known: set[str]) -> str:
    """The symbols that nothing solves, with every dim that holds one, and what would help."""
    names = sorted(frozenset[str]().union(*(expr.symbols for _, _, expr in pending)) - known)
    places = ", ".join(f"{expr} in argument {number} dim {dim}" for number, dim, expr in pending)
    return f"{', '.join(names)}: expected a size that is linear in it and known otherwise, got {places}"


def linear_parts(expr: Expr, symbol: str) -> tuple[Expr, Expr] | None:
    """(factor, rest) with `expr == factor * symbol + rest`, `symbol` in neither; None when it is not linear in it."""
    atom = Expr.symbol(symbol).terms[0][0]
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        reduced = divide_monomial(monomial, atom)
        if reduced is None:
            reduced = monomial
            rest[reduced] = coefficient
        else:
            factor[reduced] = coefficient
        if any(symbol in a.symbols for a in reduced):
            return None
    return (from_terms(factor), from_terms(rest)) if factor else None


def solve_sizes(steps: Sequence[Solve | Check], layouts: Mapping[int, Layout], environment: Environment) -> None:
    """Carry out the steps on the layouts of the tensor arguments, by argument number.

    Raises `TilewrightError` that names argument, dim, what was expected and what was got.
    """
    values = environment.values
    for step in steps:
        size = layouts[step.argument].shape[step.dim]
        source = Source(f"argument {step.argument}", "dim", step.dim)
        if isinstance(step, Solve):
            expr = step.factor * Expr.symbol(step.symbol) + step.rest
            factor = _evaluate(step.factor, expr, source, environment)
            rest = _evaluate(step.rest, expr, source, environment)
            known = sorted(expr.symbols - {step.symbol})
            given = f" ({environment.describe(known)})" if known else ""
            if factor == 0:
                raise TilewrightError(f"{source}: {expr} does not determine {step.symbol}{given}, got {size}")
            if (size - rest) % factor:
                raise TilewrightError(f"{source}: expected {expr} for a whole {step.symbol}{given}, got {size}")
            if expr != Expr.symbol(step.symbol):
                with_known = f" with {', '.join(f'{name} = {values[name]}' for name in known)}" if known else ""
                source = replace(source, equation=f"{expr} = {size}{with_known}")
            environment.bind(step.symbol, (size - rest) // factor, source)
            continue
        if step.expr.constant is not None:
            if step.expr.constant != size:
                raise TilewrightError(f"{source}: expected {step.expr.constant}, got {size}")
        elif len(step.expr.symbols) == 1 and step.expr == Expr.symbol(next(iter(step.expr.symbols))):
            environment.bind(str(step.expr), size, source)
        else:
            expected = _evaluate(step.expr, step.expr, source, environment)
            if expected != size:
                described = environment.describe(sorted(step.expr.symbols))
                raise TilewrightError(f"{source}: expected {step.expr} = {expected} ({described}), got {size}")


def _evaluate(expr: Expr, size: Expr, source: Source, environment: Environment) -> int:
    """The value of an expression that is part of a size; a division by zero is an error at the dim of that size."""
    try:
        return expr.evaluate(environment.values)
    except TilewrightError as error:
        known = environment.describe(sorted(size.symbols & environment.values.keys()))
        raise TilewrightError(f"{source}: {size}: {error.message} ({known})") from None


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a contiguous tensor: the products of the sizes inside each dim (0 outside a dim of size 0)."""
    strides: list[int] = []
    following = 1
    for size in reversed(shape):
        strides.append(following)
        following *= size
    return tuple(reversed(strides))


def normalised(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides with those that address nothing replaced by what contiguity would give: in dims of size 0 or 1, and in
    all dims of an empty tensor. Variants then do not depend on them, and `x_s0 == N` holds of a [1, N] view."""
    if 0 in shape:
        return contiguous(shape)
    if 1 not in shape:
        return strides
    result: list[int] = []
    following = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        used = following if size == 1 else stride
        result.append(used)
        following = used * size
    return tuple(reversed(result))
