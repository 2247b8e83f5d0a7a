"""Symbolic integer expressions in one canonical polynomial form: plain Python, no IR.

An `Expr` is a sum of integer coefficients times products of atoms. An atom is a symbol, a floor division, a minimum or
a maximum. There is one division, floor; `ceildiv(a, b)` is `floordiv(a + b - 1, b)` and `mod(a, b)` is
`a - b * floordiv(a, b)`, which Python's `//` and `%` define for either sign of `b`.

Every expression is hash-consed: equal canonical forms are the same object, so `is`, `==` and `hash` cost nothing, and
the form does not depend on the order in which symbols were met. An expression stands for its value wherever each of
its divisors is non-zero; simplification may define a value where the unsimplified text would divide by zero.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from tilewright.diagnostics import TilewrightError

MAX_TERMS: Final = 4096
"""Terms of an expression, those inside its atoms included, above which building it is an error."""
MAX_NESTING: Final = 128
"""Parentheses that the text of an expression may need, one inside the other."""
MAX_BITS: Final = 256
"""Width of a coefficient. Sizes and addresses fit in 64 bits; products of a few of them still pass."""
KEYWORDS: Final = frozenset({"floordiv", "ceildiv", "mod", "min", "max", "where"})

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOCK = threading.Lock()

AtomKind: TypeAlias = Literal["symbol", "floordiv", "min", "max"]
Monomial: TypeAlias = "tuple[Atom, ...]"
_RANK: Final[dict[AtomKind, int]] = {"symbol": 0, "floordiv": 1, "min": 2, "max": 3}


class Atom:
    """A factor that the polynomial form does not look into; interned, so identity is equality.

    `args` is empty for a symbol, (numerator, denominator) for a floordiv and the operands for min and max.
    """

    __slots__ = ("__weakref__", "args", "depth", "kind", "name", "order", "size", "symbols")

    def __init__(self, kind: AtomKind, name: str, args: tuple[Expr, ...]) -> None:
        self.kind: AtomKind = kind
        self.name = name
        self.args = args
        self.depth = 2 + max((a.depth for a in args), default=-2)
        self.size = sum(a.size for a in args) or 1
        self.symbols: frozenset[str] = (
            frozenset((name,)) if kind == "symbol" else frozenset[str]().union(*(a.symbols for a in args))
        )
        self.order = (_RANK[kind], name or "(" + ",".join(a.sort_key for a in args) + ")")

    def __repr__(self) -> str:
        return f"Atom({_wrap(self)})"


class Expr:
    """An immutable canonical expression; build it with `const`, `symbol`, the operators and the functions below.

    `terms` holds (product of atoms, coefficient), higher degrees first and the constant, an empty product, last.
    """

    __slots__ = ("__weakref__", "_key", "_text", "constant", "depth", "size", "symbols", "terms")

    terms: tuple[tuple[Monomial, int], ...]
    constant: int | None
    """The value when the expression is an integer, else None."""
    symbols: frozenset[str]
    """Names of the symbols in the expression, those inside atoms included."""
    size: int
    """Number of terms, those inside atoms included."""
    _key: str | None
    _text: str | None
    depth: int
    """Bound on the parentheses inside one another that the text of the expression needs."""

    @staticmethod
    def const(value: int) -> Expr:
        """The integer `value`."""
        return _make({(): int(value)})

    @staticmethod
    def symbol(name: str) -> Expr:
        """The symbol `name`, which must match `[A-Za-z_][A-Za-z0-9_]*` and not be a keyword."""
        check_name(name)
        return _wrap(_atom("symbol", name, ()))

    def __add__(self, other: Expr | int) -> Expr:
        return add_scaled(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Expr | int) -> Expr:
        return add_scaled(self, other, -1)

    def __rsub__(self, other: Expr | int) -> Expr:
        return add_scaled(as_expr(other), self, -1)

    def __neg__(self) -> Expr:
        return _make({m: -c for m, c in self.terms})

    def __mul__(self, other: Expr | int) -> Expr:
        right = as_expr(other)
        if (factor := right.constant) is not None:
            return _make({m: c * factor for m, c in self.terms})
        if len(self.terms) * len(right.terms) > 16 * MAX_TERMS:
            raise TilewrightError(_too_large(len(self.terms) * len(right.terms)))
        result: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in right.terms:
                product = multiply_monomials(m, n)
                result[product] = result.get(product, 0) + c * d
        return _make(result)

    __rmul__ = __mul__

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer this is when each symbol has the given value; an error for a missing one or a zero divisor."""
        result = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= _evaluate_atom(atom, values)
            result += coefficient
        return result

    def substitute(self, values: Mapping[str, Expr | int]) -> Expr:
        """This expression with symbols replaced, all at once; names that do not occur are ignored."""
        if self.symbols.isdisjoint(values):
            return self
        products: list[Expr] = []
        for monomial, coefficient in self.terms:
            product = Expr.const(coefficient)
            for atom in monomial:
                product = product * _substitute_atom(atom, values)
            products.append(product)
        return total(products)

    @property
    def sort_key(self) -> str:
        """Orders expressions totally, in the same way in every process; equal only for the same object."""
        key = self._key
        if key is None:
            products = ("*".join([str(c), *(_key_text(a) for a in m)]) for m, c in self.terms)
            self._key = key = "+".join(products)
        return key

    @property
    def constant_term(self) -> int:
        """The integer summand, 0 when there is none."""
        return self.terms[-1][1] if self.terms and not self.terms[-1][0] else 0

    @property
    def leading_term(self) -> tuple[Monomial, int]:
        """The first term, of the highest degree; the expression must not be 0."""
        return self.terms[0]

    def __str__(self) -> str:
        text = self._text
        if text is None:
            from tilewright.dialects.sym.text import expression_text

            self._text = text = expression_text(self)
        return text

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("_key", "_text"):
            raise AttributeError("an Expr is immutable")
        object.__setattr__(self, name, value)

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Expr:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_text, (str(self),))


_ATOMS: WeakValueDictionary[tuple[AtomKind, str, tuple[Expr, ...]], Atom] = WeakValueDictionary()
_EXPRS: WeakValueDictionary[tuple[tuple[Monomial, int], ...], Expr] = WeakValueDictionary()
# The two intern tables. Entries die with their last user; the lock makes an insertion by two threads give one object.


def check_name(name: str) -> None:
    """Raise unless `name` may name a symbol."""
    if _NAME.fullmatch(name) is None:
        raise TilewrightError(f"symbol name must match [A-Za-z_][A-Za-z0-9_]*, got {name[:60]!r}")
    if name in KEYWORDS:
        raise TilewrightError(f"symbol name must not be a keyword of expressions, got '{name}'")


def is_name(name: str) -> bool:
    """Whether `name` may name a symbol."""
    return _NAME.fullmatch(name) is not None and name not in KEYWORDS


def as_expr(value: Expr | int) -> Expr:
    """`value` as an expression."""
    return value if isinstance(value, Expr) else Expr.const(value)


def _too_large(size: int) -> str:
    return f"expression too large: expected at most {MAX_TERMS} terms, got {size}"


def _atom(kind: AtomKind, name: str, args: tuple[Expr, ...]) -> Atom:
    key = (kind, name, args)
    found = _ATOMS.get(key)
    if found is None:
        with _LOCK:
            found = _ATOMS.get(key)
            if found is None:
                found = _ATOMS[key] = Atom(kind, name, args)
    return found


def _wrap(atom: Atom) -> Expr:
    return _make({(atom,): 1})


_atom_order = attrgetter("order")


def _term_order(term: tuple[Monomial, int]) -> tuple[int, tuple[tuple[int, str], ...]]:
    monomial = term[0]
    return (-len(monomial), tuple(a.order for a in monomial))


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    """The product of two products of atoms, in canonical order."""
    if not left or not right:
        return left or right
    return tuple(sorted(left + right, key=_atom_order))


def divide_monomial(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """`monomial` without the atoms of `divisor`, or None when it lacks one of them."""
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def from_terms(terms: Mapping[Monomial, int]) -> Expr:
    """The expression with these coefficients; each product must be in canonical order."""
    return _make(terms)


def _make(coefficients: Mapping[Monomial, int]) -> Expr:
    terms = tuple(sorted(((m, c) for m, c in coefficients.items() if c), key=_term_order))
    found = _EXPRS.get(terms)
    if found is not None:
        return found
    size = sum(max(1, sum(a.size for a in m)) for m, _ in terms)
    if size > MAX_TERMS:
        raise TilewrightError(_too_large(size))
    depth = max((a.depth for m, _ in terms for a in m), default=0)
    if depth > MAX_NESTING:
        raise TilewrightError(f"expression nested too deeply: expected at most {MAX_NESTING} levels, got {depth}")
    if any(c.bit_length() > MAX_BITS for _, c in terms):
        raise TilewrightError(f"integer too large in an expression: expected at most {MAX_BITS} bits")
    expr = object.__new__(Expr)
    assign = object.__setattr__
    assign(expr, "terms", terms)
    assign(expr, "size", size)
    assign(expr, "depth", depth)
    assign(expr, "constant", 0 if not terms else terms[0][1] if not terms[0][0] else None)
    assign(expr, "symbols", frozenset[str]().union(*(a.symbols for m, _ in terms for a in m)))
    assign(expr, "_key", None)
    assign(expr, "_text", None)
    with _LOCK:
        return _EXPRS.setdefault(terms, expr)


def _key_text(atom: Atom) -> str:
    return atom.name or atom.kind + atom.order[1]


def total(summands: Iterable[Expr]) -> Expr:
    """The sum of many expressions, in time linear in their terms."""
    result: dict[Monomial, int] = {}
    for summand in summands:
        for m, c in summand.terms:
            result[m] = result.get(m, 0) + c
    return _make(result)


def add_scaled(left: Expr, right: Expr | int, factor: int) -> Expr:
    """`left + factor * right`."""
    result = dict(left.terms)
    for m, c in as_expr(right).terms:
        result[m] = result.get(m, 0) + factor * c
    return _make(result)


def _evaluate_atom(atom: Atom, values: Mapping[str, int]) -> int:
    if atom.kind == "symbol":
        if atom.name not in values:
            raise TilewrightError(f"symbol '{atom.name}' has no value")
        return values[atom.name]
    args = [a.evaluate(values) for a in atom.args]
    if atom.kind == "floordiv":
        if args[1] == 0:
            raise TilewrightError(f"division by zero: the divisor {atom.args[1]} is 0")
        return args[0] // args[1]
    return min(args) if atom.kind == "min" else max(args)


def _substitute_atom(atom: Atom, values: Mapping[str, Expr | int]) -> Expr:
    if atom.symbols.isdisjoint(values):
        return _wrap(atom)
    if atom.kind == "symbol":
        return as_expr(values[atom.name])
    return rebuild_atom(atom.kind, [a.substitute(values) for a in atom.args])


def hidden_symbol(name: str) -> Expr:
    """A symbol whose name no text can spell: for unknowns that a solver makes up. `name` must hold a `%`."""
    if "%" not in name:
        raise ValueError(f"a hidden symbol's name must hold a '%', got {name!r}")
    return _wrap(_atom("symbol", name, ()))


def symbol_named(name: str) -> Expr:
    """The symbol of a name that is known to be one, hidden or not."""
    return _wrap(_atom("symbol", name, ()))


def replace_atom(expr: Expr, old: Atom, new: Expr) -> Expr:
    """`expr` with every occurrence of `old`, those inside other atoms included, replaced by `new`."""
    products: list[Expr] = []
    for monomial, coefficient in expr.terms:
        product = Expr.const(coefficient)
        for atom in monomial:
            if atom is old:
                factor = new
            elif atom.kind == "symbol":
                factor = _wrap(atom)
            else:
                factor = rebuild_atom(atom.kind, [replace_atom(a, old, new) for a in atom.args])
            product = product * factor
        products.append(product)
    return total(products)


def rebuild_atom(kind: AtomKind, args: Sequence[Expr]) -> Expr:
    """The floordiv, min or max of these operands, simplified."""
    if kind == "floordiv":
        return floordiv(args[0], args[1])
    return smin(*args) if kind == "min" else smax(*args)


def floordiv(a: Expr | int, b: Expr | int) -> Expr:
    """The floor of a / b. A constant divisor of zero is an error."""
    numerator, denominator = as_expr(a), as_expr(b)
    divisor = denominator.constant
    if divisor is not None:
        return _floordiv_constant(numerator, divisor)
    return _floordiv_symbolic(numerator, denominator)


def ceildiv(a: Expr | int, b: Expr | int) -> Expr:
    """`floordiv(a + b - 1, b)`: the ceiling of a / b for positive b."""
    return floordiv(as_expr(a) + b - 1, b)


def mod(a: Expr | int, b: Expr | int) -> Expr:
    """`a - b * floordiv(a, b)`: the remainder with the sign of b."""
    return as_expr(a) - as_expr(b) * floordiv(a, b)


def _centred(value: int, modulus: int) -> int:
    """The remainder of `value` in (-modulus/2, modulus/2]: keeps `S - K` from becoming `S + 15*K` under a division."""
    rest = value % modulus
    return rest - modulus if 2 * rest > modulus else rest


def _floordiv_constant(numerator: Expr, divisor: int) -> Expr:
    if divisor == 0:
        raise TilewrightError(f"division by zero: ({numerator}) floordiv 0")
    if divisor < 0:
        numerator, divisor = -numerator, -divisor
    # floor((k*q + r) / k) = q + floor(r / k), term by term.
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    offset = 0
    for m, c in numerator.terms:
        r = _centred(c, divisor) if m else c % divisor
        quotient[m] = (c - r) // divisor
        if m and r:
            rest[m] = r
        elif not m:
            offset = r
    if not rest:
        return _make(quotient)
    # floor((g*f + c) / (g*k)) = floor((f + floor(c / g)) / k) for an integer f.
    common = gcd(divisor, *rest.values())
    divisor //= common
    rest = {m: c // common for m, c in rest.items()}
    offset //= common
    inner = [m[0] for m, c in rest.items() if c == 1 and len(m) == 1 and _divided_by_constant(m[0])]
    rest[()] = offset
    if len(inner) == 1:
        # floor((floor(e / a) + r) / b) = floor((e + a*r) / (a*b)) for b > 0 and an integer r.
        del rest[(inner[0],)]
        dividend, size = inner[0].args
        return _make(quotient) + floordiv(dividend + size * _make(rest), size * divisor)
    quotient_atom = _atom("floordiv", "", (_make(rest), Expr.const(divisor)))
    return _make(quotient) + _wrap(quotient_atom)


def _divided_by_constant(atom: Atom) -> bool:
    return atom.kind == "floordiv" and atom.args[1].constant is not None


def _floordiv_symbolic(numerator: Expr, denominator: Expr) -> Expr:
    result = Expr.const(0)
    if denominator.leading_term[1] < 0:
        numerator, denominator = -numerator, -denominator
    while numerator.terms:
        # Factors common to every term of both cancel: they are non-zero wherever the division has a value.
        common = gcd(*(c for _, c in numerator.terms), *(c for _, c in denominator.terms))
        shared = denominator.leading_term[0]
        for m, _ in (*numerator.terms, *denominator.terms):
            shared = tuple(a for i, a in enumerate(shared) if m.count(a) > shared[:i].count(a))
        if common != 1 or shared:
            numerator = _divide_terms(numerator, shared, common)
            denominator = _divide_terms(denominator, shared, common)
            if denominator.constant is not None:
                return result + _floordiv_constant(numerator, denominator.constant)
        # Multiples of the divisor leave the numerator: by its leading term, or term by term for a single product.
        lead, coefficient = denominator.leading_term
        pulled: dict[Monomial, int] = {}
        for m, c in numerator.terms:
            factor = divide_monomial(m, lead)
            if factor is None or (factor and len(denominator.terms) > 1):
                continue
            if times := (c - _centred(c, coefficient)) // coefficient:
                pulled[factor] = times
        if not pulled:
            if common == 1 and not shared:
                break
            continue
        multiple = _make(pulled)
        result = result + multiple
        numerator = numerator - multiple * denominator
    if not numerator.terms:
        return result
    return result + _wrap(_atom("floordiv", "", (numerator, denominator)))


def _divide_terms(expr: Expr, shared: Monomial, common: int) -> Expr:
    return _make({divide_monomial(m, shared) or (): c // common for m, c in expr.terms})


def smin(*operands: Expr | int) -> Expr:
    """The least of one or more expressions."""
    return _extremum("min", operands)


def smax(*operands: Expr | int) -> Expr:
    """The greatest of one or more expressions."""
    return _extremum("max", operands)


def _extremum(kind: Literal["min", "max"], operands: tuple[Expr | int, ...]) -> Expr:
    if not operands:
        raise TilewrightError(f"{kind} expected at least one operand, got none")
    # Operands that differ by a constant share their non-constant part: only the least (greatest) offset can win.
    offsets: dict[Expr, int] = {}
    pending = [as_expr(x) for x in operands]
    for operand in pending:
        if len(operand.terms) == 1 and operand.terms[0][1] == 1:
            monomial = operand.terms[0][0]
            if len(monomial) == 1 and monomial[0].kind == kind:
                pending.extend(monomial[0].args)
                continue
        offset = operand.constant_term
        base = operand - offset
        best = offsets.get(base)
        offsets[base] = offset if best is None else min(best, offset) if kind == "min" else max(best, offset)
    args = sorted((base + offset for base, offset in offsets.items()), key=attrgetter("sort_key"))
    if len(args) == 1:
        return args[0]
    return _wrap(_atom(kind, "", tuple(args)))


def _from_text(text: str) -> Expr:
    from tilewright.dialects.sym.parse import parse_expr

    return parse_expr(text)
