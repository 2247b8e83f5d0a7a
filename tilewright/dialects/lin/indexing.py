"""Indices of a structured op: an iteration dim, or 0 where a dim of size 1 is broadcast."""

from __future__ import annotations

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

OperandMap = tuple[int | None, ...]
"""For each dim of an operand: the iteration dim that walks it, or None for index 0 of a static size 1."""


def affine_map(dims: int, indices: OperandMap) -> AffineMap:
    """The affine map over `dims` iteration dims that reads `indices`; None becomes the constant 0."""
    results: list[AffineExpr] = [AffineConstantExpr(0) if index is None else AffineDimExpr(index) for index in indices]
    return AffineMap(dims, 0, tuple(results))


def indices_text(indices: OperandMap, letter: str = "d") -> str:
    """`[d0, 0, d2]`: the indices as the custom syntax writes them."""
    return "[" + ", ".join("0" if index is None else f"{letter}{index}" for index in indices) + "]"


def dims_of_map(m: AffineMap) -> OperandMap:
    """The iteration dim of each result of `m`, None for a constant."""
    return tuple(result.position if isinstance(result, AffineDimExpr) else None for result in m.results)
