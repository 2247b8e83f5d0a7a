"""Smaller expressions that are equal wherever the facts hold: what ranges decide about minima, maxima and divisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.dialects.sym.expr import Atom, Expr, from_terms, total
from tilewright.dialects.sym.operators import rebuild_atom

if TYPE_CHECKING:
    from tilewright.dialects.sym.knowledge import Knowledge


def simplified(knowledge: Knowledge, expr: Expr) -> Expr:
    """`expr` with operands that cannot win left out of each min and max, and divisions of one possible value decided.

    `min(x, y) + max(x, y)` becomes `x + y`. The reasons are the ranges of the symbols of `expr`.
    """
    if not expr.depth:
        # Symbols alone.
        return expr
    products: list[Expr] = []
    changed = False
    for monomial, coefficient in expr.terms:
        factors = [_atom(knowledge, atom) for atom in monomial]
        if any(factor is not None for factor in factors):
            changed = True
            product = Expr.const(coefficient)
            for atom, factor in zip(monomial, factors, strict=True):
                product = product * (from_terms({(atom,): 1}) if factor is None else factor)
            products.append(product)
        else:
            products.append(from_terms({monomial: coefficient}))
    result = total(products) if changed else expr
    return _paired(result)


def _atom(knowledge: Knowledge, atom: Atom) -> Expr | None:
    """What the atom equals, or None where it is as simple as it gets."""
    if atom.kind == "symbol":
        return None
    low, high = knowledge.atom_range(atom)
    if low is not None and low == high:
        return Expr.const(low)
    args = [simplified(knowledge, a) for a in atom.args]
    if atom.kind != "floordiv":
        args = _contenders(knowledge, args, 1 if atom.kind == "min" else -1)
    if len(args) == len(atom.args) and all(a is b for a, b in zip(args, atom.args, strict=True)):
        return None
    return rebuild_atom(atom.kind, args)


def _contenders(knowledge: Knowledge, args: list[Expr], sign: int) -> list[Expr]:
    """The operands less those that another one is at most (for sign -1, at least) as great as."""
    kept = list(args)
    for candidate in args:
        for other in kept:
            if other is not candidate:
                low = knowledge.range_of((candidate - other) * sign)[0]
                if low is not None and low >= 0:
                    kept.remove(candidate)
                    break
    return kept


def _paired(expr: Expr) -> Expr:
    """Replace `max(x, y)` by `x + y - min(x, y)` where the sum has that minimum as well."""
    extrema = [a for monomial, _ in expr.terms for a in monomial if a.kind in ("min", "max")]
    least: dict[tuple[Expr, ...], Atom] = {a.args: a for a in extrema if a.kind == "min" and len(a.args) == 2}
    for atom in extrema:
        twin = least.get(atom.args) if atom.kind == "max" else None
        if twin is not None:
            both = atom.args[0] + atom.args[1] - from_terms({(twin,): 1})
            products: list[Expr] = []
            for monomial, coefficient in expr.terms:
                product = Expr.const(coefficient)
                for factor in monomial:
                    product = product * (both if factor is atom else from_terms({(factor,): 1}))
                products.append(product)
            return _paired(total(products))
    return expr
