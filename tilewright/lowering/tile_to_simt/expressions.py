"""Symbolic expressions as integer arithmetic of a kernel.

A part over symbols alone is one scalar argument, computed by the host; the kernel does what involves its own values
(grid coordinates, loop variables). So no kernel divides by a tile size.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from tilewright.dialects.sym.expr import Atom, Expr, Monomial, from_terms
from tilewright.lowering.tile_to_simt.builder import Builder


def lower_expr(builder: Builder, expr: Expr, values: Mapping[str, SSAValue]) -> SSAValue:
    """The value of `expr` in the kernel's index type, where the names in `values` stand for those values."""
    expr = expr.substitute({name: value for name, value in builder.fixed.items() if name not in values})
    if expr.symbols.isdisjoint(values):
        return builder.param(expr)
    # Sum over products of bound atoms, each times its coefficient, an expression over symbols.
    groups: dict[Monomial, dict[Monomial, int]] = {}
    for monomial, coefficient in expr.terms:
        bound = tuple(a for a in monomial if not a.symbols.isdisjoint(values))
        free = tuple(a for a in monomial if a.symbols.isdisjoint(values))
        groups.setdefault(bound, {})[free] = coefficient
    total = builder.constant(0)
    for bound, coefficients in sorted(groups.items(), key=lambda group: len(group[0])):
        coefficient = from_terms(coefficients)
        # `C - k` is a subtraction, not a product with -1.
        negative = bool(bound) and coefficient.constant is not None and coefficient.constant < 0
        term = builder.param(-coefficient if negative else coefficient)
        for atom in bound:
            term = builder.mul_int(_atom(builder, atom, values), term)
        total = builder.sub_int(total, term) if negative else builder.add_int(total, term)
    return total


def _atom(builder: Builder, atom: Atom, values: Mapping[str, SSAValue]) -> SSAValue:
    if atom.kind == "symbol":
        return values[atom.name]
    first, *rest = (lower_expr(builder, a, values) for a in atom.args)
    for other in rest:
        if atom.kind == "floordiv":
            first = builder.floor_div(first, other)
        else:
            first = (builder.minimum if atom.kind == "min" else builder.maximum)(first, other)
    return first
