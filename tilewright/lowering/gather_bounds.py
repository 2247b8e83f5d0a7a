"""How large the indices of a `tile.gather` may get, masked ones too: what 32-bit arithmetic has to hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xdsl.ir import SSAValue

from tilewright.dialects.sym import Expr, ceildiv
from tilewright.dialects.sym.analysis import value_symbol
from tilewright.dialects.sym.expr import Atom
from tilewright.dialects.sym.index import dim, members, name_of, offset, value
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import ForOp, KernelOp
from tilewright.dialects.tile.types import BufType
from tilewright.passes.tile_analysis import KernelScopes

WIDEST: Final = (1 << 63) - 1
"""What is said of an integer that comes out of memory, of which nothing is known: no 32-bit index."""


def magnitude(expr: Expr, bounds: Mapping[str, Expr]) -> Expr:
    """At least |expr| and every number on the way to it, where each named symbol is at most its bound in magnitude.

    Symbols without a bound are sizes, and divisors are at least 1.
    """
    total = Expr.const(0)
    for monomial, coefficient in expr.terms:
        term = Expr.const(abs(coefficient))
        for atom in monomial:
            term = term * _atom(atom, bounds)
        total = total + term
    return total


def _atom(atom: Atom, bounds: Mapping[str, Expr]) -> Expr:
    if atom.kind == "symbol":
        return bounds.get(atom.name) or Expr.symbol(atom.name)
    return sum((magnitude(a, bounds) for a in atom.args), Expr.const(0))


def gather_magnitudes(kernel: KernelOp, buffer: SSAValue) -> list[tuple[Expr, ...]]:
    """For each gather from a buffer of the kernel: a bound of the index along each dim."""
    used = [use.operation for use in buffer.uses if isinstance(use.operation, GatherOp)]
    if not used:
        return []
    scopes, bounds = KernelScopes(kernel), dict[str, Expr]()
    for coordinate, size in zip(kernel.coordinates, kernel.grid.data, strict=True):
        bounds[name_of(value_symbol(coordinate))] = size
    for loop in kernel.walk():
        if isinstance(loop, ForOp):
            names = {name: scopes.at(loop).expr(v) for name, v in loop.where.items()}
            lower, upper, step = (e.data.substitute(names) for e in (loop.lower, loop.upper, loop.step))
            bounds[name_of(value_symbol(loop.variable))] = magnitude(ceildiv(upper - lower, step), bounds)
    return [_indices(gather, scopes, bounds) for gather in used]


def _indices(gather: GatherOp, scopes: KernelScopes, outer: Mapping[str, Expr]) -> tuple[Expr, ...]:
    bounds = dict(outer)
    for n, v in enumerate(gather.offsets):
        bounds[name_of(offset(n))] = magnitude(scopes.at(gather).expr(v), outer)
    for d, size in enumerate(gather.tile_type.sizes):
        bounds[name_of(dim(d))] = Expr.const(size)
    assert isinstance(gather.source.type, BufType)
    found: list[Expr] = []
    for expr, word, size in zip(gather.exprs, gather.bound_words, gather.source.type.dims, strict=True):
        own = dict(bounds)
        for n in members([expr], "v"):
            promised = word == "trusted" and expr is value(n)
            own[name_of(value(n))] = size if promised else Expr.const(WIDEST)
        found.append(magnitude(expr, own))
    return tuple(found)
