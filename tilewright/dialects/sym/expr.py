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
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary, ref

from tilewright.diagnostics import TilewrightError

MAX_TERMS: Final = 4096
"""Terms of an expression, those inside its atoms included, above which building it is an error."""
MAX_NESTING: Final = 128
"""Parentheses that the text of an expression may need, one inside the other."""
MAX_BITS: Final = 256
"""Width of a coefficient. Sizes and addresses fit in 64 bits; products of a few of them still pass."""
MAX_DEGREE: Final = 64
"""Factors of a product. Strides of tensors and addresses have a handful."""
_GREATEST: Final = (1 << MAX_BITS) - 1
_LEAST: Final = -_GREATEST
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

    symbols: frozenset[str]
    order: tuple[int, str]

    __slots__ = ("__weakref__", "alone", "args", "depth", "kind", "name", "order", "size", "symbols")

    def __init__(self, kind: AtomKind, name: str, args: tuple[Expr, ...]) -> None:
        self.kind: AtomKind = kind
        self.name = name
        self.args = args
        if kind == "symbol":
            self.depth = 0
            self.size = 1
            self.symbols = frozenset((name,))
            self.order = (0, name)
        else:
            self.depth = 2 + max(a.depth for a in args)
            self.size = sum(a.size for a in args) or 1
            self.symbols = frozenset[str]().union(*(a.symbols for a in args))
            self.order = (_RANK[kind], "(" + ",".join(a.sort_key for a in args) + ")")
        self.alone = (-1, (self.order,))

    def __repr__(self) -> str:
        return f"Atom({wrap(self)})"


class Expr:
    """An immutable canonical expression; build it with `const`, `symbol`, the operators and the functions below.

    `terms` holds (product of atoms, coefficient), higher degrees first and the constant, an empty product, last.
    """

    __slots__ = ("__weakref__", "_key", "_symbols", "_text", "constant", "depth", "size", "terms")

    terms: tuple[tuple[Monomial, int], ...]
    constant: int | None
    """The value when the expression is an integer, else None."""
    size: int
    """Number of terms, those inside atoms included."""
    _key: str
    _text: str
    _symbols: frozenset[str]
    # The three are filled in when first asked for.
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
        return wrap(atom_of("symbol", name, ()))

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
        if len(self.terms) * len(right.terms) > 2 * MAX_TERMS:
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
        from tilewright.dialects.sym.operators import substituted

        return substituted(self, values)

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols in the expression, those inside atoms included."""
        try:
            return self._symbols
        except AttributeError:
            self._symbols = found = frozenset[str]().union(*(a.symbols for m, _ in self.terms for a in m))
            return found

    @property
    def sort_key(self) -> str:
        """Orders expressions totally, in the same way in every process; equal only for the same object."""
        try:
            return self._key
        except AttributeError:
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
        try:
            return self._text
        except AttributeError:
            from tilewright.dialects.sym.text import expression_text

            self._text = text = expression_text(self)
            return text

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("_key", "_symbols", "_text"):
            raise AttributeError("an Expr is immutable")
        object.__setattr__(self, name, value)

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Expr:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_text, (str(self),))


_ATOMS: WeakValueDictionary[tuple[AtomKind, str, tuple[Expr, ...]], Atom] = WeakValueDictionary()
_EXPRS: dict[tuple[tuple[Monomial, int], ...], _Interned] = {}
# The two intern tables. Entries die with their last user; the lock makes an insertion by two threads give one object.
# Expressions are made by the thousand in a proof, so theirs spares the indirections of a WeakValueDictionary.


class _Interned(ref["Expr"]):
    """A weak reference that takes its entry out of the table when the expression dies."""

    __slots__ = ("terms",)
    terms: tuple[tuple[Monomial, int], ...]


def _forget(dead: ref[Expr]) -> None:
    assert isinstance(dead, _Interned)
    if _EXPRS.get(dead.terms) is dead:
        _EXPRS.pop(dead.terms, None)


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


def atom_of(kind: AtomKind, name: str, args: tuple[Expr, ...]) -> Atom:
    """The atom with these parts, unsimplified; `operators.py` makes those that are not symbols."""
    key = (kind, name, args)
    found = _ATOMS.get(key)
    if found is None:
        with _LOCK:
            found = _ATOMS.get(key)
            if found is None:
                found = _ATOMS[key] = Atom(kind, name, args)
    return found


def wrap(atom: Atom) -> Expr:
    """The expression that is just this atom."""
    return _make({(atom,): 1})


_atom_order = attrgetter("order")


def _term_order(term: tuple[Monomial, int]) -> tuple[int, tuple[tuple[int, str], ...]]:
    monomial = term[0]
    if len(monomial) == 1:
        return monomial[0].alone
    return (-len(monomial), tuple([a.order for a in monomial]))


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
    kept = [term for term in coefficients.items() if term[1]]
    if len(kept) > 1:
        kept.sort(key=_term_order)
    terms = tuple(kept)
    known = _EXPRS.get(terms)
    if known is not None and (found := known()) is not None:
        return found
    size = depth = 0
    for monomial, coefficient in terms:
        if not _LEAST <= coefficient <= _GREATEST:
            raise TilewrightError(f"integer too large in an expression: expected at most {MAX_BITS} bits")
        if not monomial:
            size += 1
        for atom in monomial:
            size += atom.size
            if atom.depth > depth:
                depth = atom.depth
    # A sum has its longest products first.
    if terms and len(terms[0][0]) > MAX_DEGREE:
        raise TilewrightError(f"product of too many factors: expected at most {MAX_DEGREE}, got {len(terms[0][0])}")
    if size > MAX_TERMS:
        raise TilewrightError(_too_large(size))
    if depth > MAX_NESTING:
        raise TilewrightError(f"expression nested too deeply: expected at most {MAX_NESTING} levels, got {depth}")
    expr = object.__new__(Expr)
    _set_terms(expr, terms)
    _set_size(expr, size)
    _set_depth(expr, depth)
    _set_constant(expr, 0 if not terms else terms[0][1] if not terms[0][0] else None)
    reference = _Interned(expr, _forget)
    reference.terms = terms
    with _LOCK:
        other = _EXPRS.get(terms)
        if other is not None and (found := other()) is not None:
            return found
        _EXPRS[terms] = reference
    return expr


# How `_make` fills in an expression, which refuses ordinary assignment.
_set_terms = vars(Expr)["terms"].__set__
_set_size = vars(Expr)["size"].__set__
_set_depth = vars(Expr)["depth"].__set__
_set_constant = vars(Expr)["constant"].__set__


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
    if isinstance(right, int):
        return combine(left, 1, constant=factor * right) if right else left
    if not right.terms:
        return left
    return combine(left, 1, right, factor)


def combine(
    left: Expr, times: int, right: Expr | None = None, factor: int = 0, monomial: Monomial = (), constant: int = 0
) -> Expr:
    """`times * left + factor * monomial * right + constant`, made at once; proofs live on such sums."""
    result = dict(left.terms) if times == 1 else {m: times * c for m, c in left.terms}
    if right is not None:
        for m, c in right.terms:
            if monomial:
                m = multiply_monomials(m, monomial)
            result[m] = result.get(m, 0) + factor * c
    if constant:
        result[()] = result.get((), 0) + constant
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


def hidden_symbol(name: str) -> Expr:
    """A symbol whose name no text can spell: for unknowns that a solver makes up. `name` must hold a `%`."""
    if "%" not in name:
        raise ValueError(f"a hidden symbol's name must hold a '%', got {name!r}")
    return wrap(atom_of("symbol", name, ()))


def symbol_named(name: str) -> Expr:
    """The symbol of a name that is known to be one, hidden or not."""
    return wrap(atom_of("symbol", name, ()))


def _from_text(text: str) -> Expr:
    from tilewright.dialects.sym.parse import parse_expr

    return parse_expr(text)
