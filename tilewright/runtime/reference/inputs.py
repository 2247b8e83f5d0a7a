"""Bind arrays to the arguments of a function, and sizes to its symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.shapes import is_tensor, scalar_type
from tilewright.dialects.sym import Expr, RequireOp, SymbolOp, dims_of
from tilewright.runtime.numerics import Array, float_format, storage_dtype
from tilewright.runtime.reference.bounded import Bounded


def bind_inputs(
    types: Sequence[Attribute], inputs: Sequence[Array], symbols: Mapping[str, int]
) -> tuple[list[Bounded], dict[str, int]]:
    """The arguments as exact values in float64 (integers as they are), and the symbols with those that shapes bind.

    TilewrightError names the argument whose rank, size or dtype does not fit.
    """
    if len(types) != len(inputs):
        raise TilewrightError(f"expected {len(types)} inputs, got {len(inputs)}")
    arrays = [np.asarray(array) for array in inputs]
    sizes = dict(symbols)
    shapes = [dims_of(t) if is_tensor(t) else () for t in types]
    for position, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if array.ndim != len(shape):
            raise TilewrightError(f"argument {position}: expected an array of rank {len(shape)}, got {array.ndim}")
        for dim, size in zip(shape, array.shape, strict=True):
            if (name := _plain_symbol(dim)) is not None:
                sizes.setdefault(name, size)
    for position, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        for axis, (dim, size) in enumerate(zip(shape, array.shape, strict=True)):
            expected = dim.evaluate(sizes)
            if expected != size:
                raise TilewrightError(f"argument {position} dim {axis}: expected size {dim} = {expected}, got {size}")
    return [_carried(position, t, a) for position, (t, a) in enumerate(zip(types, arrays, strict=True))], sizes


def check_symbols(module: ModuleOp, sizes: Mapping[str, int]) -> None:
    """TilewrightError unless the sizes satisfy each `sym.symbol` and `sym.require` of the module."""
    for op in module.ops:
        if isinstance(op, SymbolOp) and op.symbol in sizes:
            size, low, high = sizes[op.symbol], op.lower_bound, op.upper_bound
            if (low is not None and size < low) or (high is not None and size > high):
                most = "" if high is None else f" and at most {high}"
                raise TilewrightError(f"symbol {op.symbol}: expected at least {low}{most}, got {size}")
            if size % op.divisor:
                raise TilewrightError(f"symbol {op.symbol}: expected a multiple of {op.divisor}, got {size}")
        elif isinstance(op, RequireOp):
            relation = op.relation.data
            if relation.symbols <= sizes.keys() and not relation.holds(sizes):
                values = ", ".join(f"{name} = {sizes[name]}" for name in sorted(relation.symbols))
                raise TilewrightError(f"expected {relation}, got {values}")


def _plain_symbol(dim: Expr) -> str | None:
    """The name of the symbol that a size is, or None for any other expression."""
    name = str(dim)
    return name if name in dim.symbols else None


def _carried(position: int, type_: Attribute, array: Array) -> Bounded:
    element_type = scalar_type(type_)
    dtype = storage_dtype(element_type)
    if array.dtype != dtype:
        raise TilewrightError(f"argument {position}: expected dtype {dtype}, got {array.dtype}")
    return Bounded(array.astype(np.float64) if float_format(element_type) is not None else array)
