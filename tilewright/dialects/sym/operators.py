"""Floor division, minimum and maximum of expressions, simplified into the canonical form; and substitution.

There is one division, floor; `ceildiv(a, b)` is `floordiv(a + b - 1, b)` and `mod(a, b)` is `a - b * floordiv(a, b)`,
which Python's `//` and `%` define for either sign of `b`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from operator import attrgetter
from typing import Literal

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.sym.expr import (
    Atom,
    AtomKind,
    Expr,
    Monomial,
    as_expr,
    atom_of,
    divide_monomial,
    from_terms,
    total,
    wrap,
)


def substituted(expr: Expr, values: Mapping[str, Expr | int]) -> Expr:
    """`expr` with symbols replaced, all at once; names that do not occur are ignored."""
    if expr.symbols.isdisjoint(values):
        return expr
    products: list[Expr] = []
    kept: dict[Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        affected = [atom for atom in monomial if not atom.symbols.isdisjoint(values)]
        if not affected:
            kept[monomial] = coefficient
            continue
        others = tuple([atom for atom in monomial if atom.symbols.isdisjoint(values)])
        product = _substitute_atom(affected[0], values)
        for atom in affected[1:]:
            product = product * _substitute_atom(atom, values)
        if others or coefficient != 1:
            product = product * from_terms({others: coefficient})
        products.append(product)
    if kept:
        products.append(from_terms(kept))
    return products[0] if len(products) == 1 else total(products)


def _substitute_atom(atom: Atom, values: Mapping[str, Expr | int]) -> Expr:
    if atom.kind == "symbol":
        return as_expr(values[atom.name])
    return rebuild_atom(atom.kind, [substituted(a, values) for a in atom.args])


def replace_atom(expr: Expr, old: Atom, new: Expr) -> Expr:
    """`expr` with every occurrence of `old`, those inside other atoms included, replaced by `new`."""
    products: list[Expr] = []
    kept: dict[Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        if all(atom is not old and not old.symbols <= atom.symbols for atom in monomial):
            kept[monomial] = coefficient
            continue
        product = Expr.const(coefficient)
        for atom in monomial:
            if atom is old:
                factor = new
            elif atom.kind == "symbol":
                factor = wrap(atom)
            else:
                factor = rebuild_atom(atom.kind, [replace_atom(a, old, new) for a in atom.args])
            product = product * factor
        products.append(product)
    if kept:
        products.append(from_terms(kept))
    return products[0] if len(products) == 1 else total(products)


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
        return from_terms(quotient)
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
        return from_terms(quotient) + floordiv(dividend + size * from_terms(rest), size * divisor)
    quotient_atom = atom_of("floordiv", "", (from_terms(rest), Expr.const(divisor)))
    return from_terms(quotient) + wrap(quotient_atom)


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
        multiple = from_terms(pulled)
        result = result + multiple
        numerator = numerator - multiple * denominator
    if not numerator.terms:
        return result
    return result + wrap(atom_of("floordiv", "", (numerator, denominator)))


def _divide_terms(expr: Expr, shared: Monomial, common: int) -> Expr:
    return from_terms({divide_monomial(m, shared) or (): c // common for m, c in expr.terms})


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
    return wrap(atom_of(kind, "", tuple(args)))
