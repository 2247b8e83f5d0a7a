"""Reductions of the front end, softmax and transpose."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from tilewright.api.sizes import as_size
from tilewright.api.tensor import FLOATS, Tensor, check_tensors, normal_axis, spell_shape, tensor_type
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.reduction import ReduceOp
from tilewright.dialects.lin.softmax import SoftmaxOp
from tilewright.dialects.lin.transpose import TransposeOp


def reduce_sum(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """The sum over axes, over all without `axis`; 0 for none. float16 and bfloat16 accumulate in float32."""
    return _reduce("sum", Combine.SUM, x, axis, keepdims)


def reduce_prod(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """The product over axes, over all without `axis`; 1 for none. float16 and bfloat16 accumulate in float32."""
    return _reduce("prod", Combine.PROD, x, axis, keepdims)


def reduce_max(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """The greatest over axes, over all without `axis`; NaN where one is, -inf (or the least integer) for none."""
    return _reduce("max", Combine.MAX, x, axis, keepdims)


def reduce_min(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """The least over axes, over all without `axis`; NaN where one is, inf (or the greatest integer) for none."""
    return _reduce("min", Combine.MIN, x, axis, keepdims)


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x - max) / sum along one axis, computed in float32 and rounded once."""
    check_tensors("softmax", x)
    if x.dtype not in FLOATS:
        raise TilewrightError(f"softmax: expected a dtype of {', '.join(FLOATS)}, got {x.dtype}")
    position = normal_axis("softmax", axis, x.rank)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(SoftmaxOp(values[0], position, x.type)).result

    return Tensor(x.sizes, x.dtype, (x,), emit, "softmax")


def transpose(x: Tensor, perm: Sequence[int] | None = None) -> Tensor:
    """Dim d of the result is dim perm[d] of x; without `perm` the dims are reversed."""
    check_tensors("transpose", x)
    axes = tuple(reversed(range(x.rank))) if perm is None else tuple(normal_axis("transpose", p, x.rank) for p in perm)
    if sorted(axes) != list(range(x.rank)):
        raise TilewrightError(
            f"transpose: expected a permutation of the dims of {spell_shape(x.sizes)}, got {list(perm or ())}"
        )
    sizes = tuple(x.sizes[p] for p in axes)
    result_type = tensor_type(sizes, x.dtype)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(TransposeOp(values[0], axes, result_type)).result

    return Tensor(sizes, x.dtype, (x,), emit, "transpose")


def _reduce(function: str, combine: Combine, x: Tensor, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor:
    check_tensors(function, x)
    given = range(x.rank) if axis is None else axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple(normal_axis(function, a, x.rank) for a in given)
    if len(set(axes)) != len(axes):
        raise TilewrightError(f"{function}: expected distinct axes, got {list(given)}")
    if x.dtype == "bool" and combine in (Combine.SUM, Combine.PROD):
        raise TilewrightError(f"{function}: expected a dtype of {', '.join((*FLOATS, 'int32'))}, got bool; use cast")
    kept = tuple(a for a in range(x.rank) if a not in axes)
    reduced_type = tensor_type([x.sizes[a] for a in kept], x.dtype)
    sizes = tuple(as_size(1) if a in axes else x.sizes[a] for a in range(x.rank)) if keepdims else None

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        reduced = builder.insert(ReduceOp(values[0], combine, axes, reduced_type)).result
        if sizes is None:
            return reduced
        # The axes come back as dims of size 1 that the operand does not have.
        out = range(x.rank)
        spread = GenericOp.build_from(
            [reduced], [kept], out, None, tensor_type(sizes, x.dtype), lambda _, args: args[0]
        )
        return builder.insert(spread).result

    return Tensor(sizes or tuple(x.sizes[a] for a in kept), x.dtype, (x,), emit, function)
