"""Symbolic sizes in the front end: expressions that remember what was declared of their symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex, cast

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym import Expr, ceildiv, floordiv, mod


@dataclass(frozen=True, slots=True)
class Declaration:
    """What `symbols` says of one symbol: at least `min`, at most `max`, divided by `multiple_of`; `likely` sizes."""

    name: str
    min: int = 0
    max: int | None = None
    multiple_of: int = 1
    likely: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        stated = {"min": self.min, "max": 0 if self.max is None else self.max, "multiple_of": self.multiple_of}
        for what, value in (*stated.items(), *(("likely", size) for size in self.likely)):
            # The IR keeps them in 64 bits.
            if isinstance(value, bool) or not isinstance(cast("object", value), int) or abs(value) >= 2**63:
                raise TilewrightError(f"symbol {self.name}: expected {what} to be a 64-bit integer, got {value!r}")
        if self.min < 0:
            raise TilewrightError(f"symbol {self.name}: expected min of at least 0, got {self.min}")
        if self.max is not None and self.max < self.min:
            raise TilewrightError(f"symbol {self.name}: expected max of at least min = {self.min}, got {self.max}")
        if self.multiple_of < 1:
            raise TilewrightError(f"symbol {self.name}: expected multiple_of of at least 1, got {self.multiple_of}")
        if any(size < 0 for size in self.likely):
            raise TilewrightError(f"symbol {self.name}: expected likely sizes of at least 0, got {list(self.likely)}")


class Size:
    """A size that is known when the kernel is called: an expression over symbols.

    `+ - * // %` with integers and other sizes give sizes. Sizes are equal when their canonical expressions are.
    """

    __slots__ = ("declarations", "expr")

    def __init__(self, expr: Expr, declarations: Iterable[Declaration] = ()) -> None:
        self.expr = expr
        """The canonical expression."""
        self.declarations = frozenset(declarations)
        """What was declared of its symbols."""

    def __add__(self, other: Size | int) -> Size:
        return _combined(self, other, self.expr + as_size(other).expr)

    def __sub__(self, other: Size | int) -> Size:
        return _combined(self, other, self.expr - as_size(other).expr)

    def __rsub__(self, other: int) -> Size:
        return Size(other - self.expr, self.declarations)

    def __mul__(self, other: Size | int) -> Size:
        return _combined(self, other, self.expr * as_size(other).expr)

    def __floordiv__(self, other: Size | int) -> Size:
        return _combined(self, other, floordiv(self.expr, as_size(other).expr))

    def __mod__(self, other: Size | int) -> Size:
        return _combined(self, other, mod(self.expr, as_size(other).expr))

    def __rfloordiv__(self, other: int) -> Size:
        return Size(floordiv(other, self.expr), self.declarations)

    def __rmod__(self, other: int) -> Size:
        return Size(mod(other, self.expr), self.declarations)

    __radd__ = __add__
    __rmul__ = __mul__

    def ceildiv(self, other: Size | int) -> Size:
        """The quotient rounded up, for a positive divisor."""
        return _combined(self, other, ceildiv(self.expr, as_size(other).expr))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.expr.constant == other
        return isinstance(other, Size) and self.expr == other.expr

    def __hash__(self) -> int:
        return hash(self.expr) if self.expr.constant is None else hash(self.expr.constant)

    def __str__(self) -> str:
        return str(self.expr)

    def __repr__(self) -> str:
        return f"Size({self.expr})"


class Symbol(Size):
    """A size by name."""

    __slots__ = ("declaration",)

    def __init__(self, declaration: Declaration) -> None:
        super().__init__(Expr.symbol(declaration.name), (declaration,))
        self.declaration = declaration

    @property
    def name(self) -> str:
        """The symbol's name in IR."""
        return self.declaration.name

    def __repr__(self) -> str:
        return f"Symbol({self.name})"


def symbols(
    names: str,
    *,
    min: int = 0,
    max: int | None = None,
    multiple_of: int = 1,
    likely: int | Iterable[int] | None = None,
) -> tuple[Symbol, ...]:
    """One symbol for each name, names separated by spaces or commas; what is stated holds of each of them.

    A call with a size that breaks `min`, `max` or `multiple_of` is an error that names the symbol. `likely` lists
    sizes to tune for, and promises nothing.
    """
    words = names.replace(",", " ").split() if isinstance(cast("object", names), str) else []
    if not words:
        raise TilewrightError(f"symbols: expected names such as 'B M', got {names!r}")
    if len(set(words)) < len(words):
        raise TilewrightError(f"symbols: expected distinct names, got {names!r}")
    sizes = () if likely is None else tuple(likely) if isinstance(likely, Iterable) else (likely,)
    # NumPy's integers become Python's, which expressions are made of; the declaration refuses what is no integer.
    least, divisor = _python_integer(min), _python_integer(multiple_of)
    most, sizes = _python_integer(max), tuple(map(_python_integer, sizes))
    return tuple(Symbol(Declaration(word, least, most, divisor, sizes)) for word in words)


def _python_integer(value: Any) -> Any:
    return value.__index__() if isinstance(value, SupportsIndex) and not isinstance(value, bool) else value


def as_size(value: object) -> Size:
    """A size from a `Size`, an integer of at least 0 or an expression; TilewrightError for anything else."""
    if isinstance(value, Size):
        return value
    if isinstance(value, Expr):
        return Size(value)
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TilewrightError(f"expected a size: an integer or an expression over symbols, got {value!r}")
    number = value.__index__()
    if abs(number) >= 2**63:
        raise TilewrightError(f"expected a size below 2^63, got {number}")
    return Size(Expr.const(number))


def as_count(message: str, value: object) -> int:
    """An integer that fits in 64 bits; TilewrightError with this message for anything else."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or abs(value.__index__()) >= 2**63:
        raise TilewrightError(f"{message}, got {value!r}")
    return value.__index__()


def _combined(left: Size, right: Size | int, expr: Expr) -> Size:
    return Size(expr, left.declarations | as_size(right).declarations)
