"""Data movement of the front end: slices, and what else only rearranges elements."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias, cast

from xdsl.builder import Builder
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilewright.api.sizes import Size, as_count, as_size
from tilewright.api.tensor import FLOATS, Tensor, check_same_dtype, normal_axis, spell_shape, tensor_type
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.casts import constant_attribute
from tilewright.dialects.lin.concat import ConcatOp
from tilewright.dialects.lin.gather import GatherOp
from tilewright.dialects.lin.pad import PadOp
from tilewright.dialects.lin.reshape import ReshapeOp
from tilewright.dialects.lin.slice import SliceOp
from tilewright.dialects.sym import Relation

_ALL = builtins.slice(None)

Bound: TypeAlias = "SupportsIndex | Size"
"""An integer or a symbolic size."""


def slice(
    x: Tensor,
    offsets: Sequence[Bound],
    sizes: Sequence[Bound],
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The rectangle of `sizes` elements from `offsets` on, every `strides`-th along each dim (1 without).

    It must lie inside `x`: a call for sizes where it does not fails. One entry a dim.
    """
    steps = [1] * x.rank if strides is None else [as_count("slice: expected integers as strides", s) for s in strides]
    for what, given in (("offsets", offsets), ("sizes", sizes), ("strides", steps)):
        if len(given) != x.rank:
            raise TilewrightError(f"slice: expected {x.rank} {what} for {spell_shape(x.sizes)}, got {len(given)}")
    if any(s < 1 for s in steps):
        raise TilewrightError(f"slice: expected strides of at least 1, got {steps}")
    starts, extents = [as_size(a) for a in offsets], tuple(as_size(n) for n in sizes)
    for what, given in (("offsets", starts), ("sizes", extents)):
        if any(size.expr.constant is not None and size.expr.constant < 0 for size in given):
            raise TilewrightError(f"slice: expected {what} of at least 0, got {[str(s) for s in given]}")
    result_type = tensor_type(extents, x.dtype)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        op = SliceOp(values[0], [a.expr for a in starts], [n.expr for n in extents], steps, result_type)
        return builder.insert(op).result

    return Tensor(extents, x.dtype, (x,), emit, "slice", mentions=tuple(starts))


def pad(x: Tensor, low: Sequence[Bound], high: Sequence[Bound], value: float = 0) -> Tensor:
    """`x` with `low` elements before and `high` after it along each dim, all of them `value`; one entry a dim."""
    for what, given in (("low", low), ("high", high)):
        if len(given) != x.rank:
            raise TilewrightError(f"pad: expected {x.rank} entries of {what}, got {len(given)}")
    before, after = [as_size(a) for a in low], [as_size(b) for b in high]
    for size in (*before, *after):
        if size.expr.constant is not None and size.expr.constant < 0:
            raise TilewrightError(f"pad: expected counts of at least 0, got {size}")
    sizes = tuple(a + n + b for a, n, b in zip(before, x.sizes, after, strict=True))
    result_type, fill = tensor_type(sizes, x.dtype), _fill(value, x)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        op = PadOp(values[0], [a.expr for a in before], [b.expr for b in after], fill, result_type)
        return builder.insert(op).result

    return Tensor(sizes, x.dtype, (x,), emit, "pad", mentions=(*before, *after))


def _fill(value: float, x: Tensor) -> Attribute:
    """The constant of a pad; TilewrightError for one that the elements cannot hold."""
    try:
        fits = x.dtype in FLOATS or int(value) == value
        return constant_attribute(value if fits else math.nan, x.element_type)
    except (TypeError, ValueError, OverflowError, VerifyException):
        raise TilewrightError(f"pad: expected a value of {x.dtype}, got {value!r}") from None


def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors one after the other along an axis; all other sizes must be equal."""
    if not tensors:
        raise TilewrightError("concat: expected at least one tensor, got none")
    first = tensors[0]
    at, dtype = normal_axis("concat", axis, first.rank), check_same_dtype("concat", tensors)
    total = as_size(0)
    for x in tensors:
        same = x.rank == first.rank and all(
            a == b for d, (a, b) in enumerate(zip(first.sizes, x.sizes, strict=True)) if d != at
        )
        if not same:
            raise TilewrightError(
                f"concat: expected shapes that differ at dim {at} alone, "
                f"got {spell_shape(first.sizes)} and {spell_shape(x.sizes)}"
            )
        total = total + x.sizes[at]
    sizes = tuple(total if d == at else size for d, size in enumerate(first.sizes))
    result_type = tensor_type(sizes, dtype)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(ConcatOp(values, at, result_type)).result

    return Tensor(sizes, dtype, tuple(tensors), emit, "concat")


def reshape(x: Tensor, sizes: Sequence[Bound]) -> Tensor:
    """The elements of `x` in row-major order under other sizes, one of which may be -1: what the others leave.

    Where the numbers of elements are not equal for all sizes, a call for which they are not fails.
    """
    open_ = [n for n, size in enumerate(sizes) if isinstance(size, SupportsIndex) and size.__index__() == -1]
    if len(open_) > 1:
        raise TilewrightError(f"reshape: expected at most one -1, got {len(open_)}")
    given = [as_size(1 if n in open_ else size) for n, size in enumerate(sizes)]
    for size in given:
        if size.expr.constant is not None and size.expr.constant < 0:
            raise TilewrightError(f"reshape: expected sizes of at least 0 or one -1, got {size}")
    before, after = _product(x.sizes), _product(given)
    if open_:
        if after == 0:
            raise TilewrightError("reshape: expected sizes above 0 beside -1, got 0")
        given[open_[0]] = before // after
        after = after * given[open_[0]]
    requires = () if before == after else (Relation(before.expr, "==", after.expr),)
    if requires and before.expr.constant is not None and after.expr.constant is not None:
        raise TilewrightError(f"reshape: expected {before} elements, got {after}")
    exprs = [size.expr for size in given]

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(ReshapeOp(values[0], exprs)).result

    return Tensor(tuple(given), x.dtype, (x,), emit, "reshape", requires=requires)


def _product(sizes: Sequence[Size]) -> Size:
    """The number of elements."""
    total = as_size(1)
    for size in sizes:
        total = total * size
    return total


def gather(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of `table`: table[ids[i...], j...] for int32 `ids` of any rank, of shape ids.shape + table.shape[1:].

    An id outside of 0..len(table) - 1 reads as zeros.
    """
    if table.rank < 1 or ids.dtype != "int32":
        raise TilewrightError(
            f"gather: expected a table of rank 1 at least and int32 ids, got rank {table.rank} and {ids.dtype}"
        )
    sizes = (*ids.sizes, *table.sizes[1:])
    result_type = tensor_type(sizes, table.dtype)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(GatherOp(values[0], values[1], result_type)).result

    return Tensor(sizes, table.dtype, (table, ids), emit, "gather")


def getitem(x: Tensor, key: object) -> Tensor:
    """`x[a:b:2, n]` with integers and symbolic sizes; `...` stands for whole dims, an integer drops its dim.

    A negative integer counts from the end. Bounds are not clamped: a call for sizes where a slice does not lie inside
    fails.
    """
    entries = list(cast("tuple[object, ...]", key)) if isinstance(key, tuple) else [key]
    dots = [n for n, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1 or len(entries) - len(dots) > x.rank:
        raise TilewrightError(f"indexing {spell_shape(x.sizes)}: expected at most {x.rank} indices, got {len(entries)}")
    missing = x.rank - (len(entries) - len(dots))
    at = dots[0] if dots else len(entries)
    full: list[object] = [*entries[:at], *([_ALL] * missing), *entries[at + len(dots) :]]
    offsets, sizes, steps, kept = list[Size](), list[Size](), list[int](), list[int]()
    for axis, (entry, size) in enumerate(zip(full, x.sizes, strict=True)):
        if isinstance(entry, builtins.slice):
            start, extent, step = _bounds(axis, cast("builtins.slice[Any, Any, Any]", entry), size)
            kept.append(axis)
        else:
            start, extent, step = _from_end(entry, size), as_size(1), 1
        offsets.append(start)
        sizes.append(extent)
        steps.append(step)
    taken = slice(x, offsets, sizes, steps)
    if len(kept) == x.rank:
        return taken
    return reshape(taken, [sizes[a] for a in kept])


def _from_end(entry: object, size: Size) -> Size:
    """An index counted from the front."""
    if isinstance(entry, Size):
        return entry
    if isinstance(entry, bool) or not hasattr(entry, "__index__"):
        raise TilewrightError(f"expected integers, sizes or slices as indices, got {entry!r}")
    number = cast(SupportsIndex, entry).__index__()
    return size + number if number < 0 else as_size(number)


def _bounds(axis: int, given: builtins.slice[Any, Any, Any], size: Size) -> tuple[Size, Size, int]:
    """Offset, size and step of a Python slice of a dim."""
    step = 1 if given.step is None else given.step
    if isinstance(step, bool) or not isinstance(step, int) or step < 1:
        raise TilewrightError(f"expected a step of at least 1 at dim {axis}, got {step!r}")
    start = as_size(0) if given.start is None else _from_end(given.start, size)
    stop = size if given.stop is None else _from_end(given.stop, size)
    extent = stop - start
    return start, extent if step == 1 else extent.ceildiv(step), step
