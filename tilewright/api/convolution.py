"""Convolutions of the front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex, TypeAlias

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from tilewright.api.sizes import Size, as_count, as_size
from tilewright.api.tensor import FLOATS, Tensor, check_same_dtype, spell_shape, tensor_type
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.convolution import Conv2dOp, window_count
from tilewright.dialects.sym import Relation

Pair: TypeAlias = "int | Sequence[int]"
Padding: TypeAlias = "SupportsIndex | Size | Sequence[SupportsIndex | Size]"


def conv2d(
    x: Tensor, w: Tensor, *, stride: Pair = 1, padding: Padding = 0, dilation: Pair = 1, groups: int = 1
) -> Tensor:
    """[N, C, H, W] with [O, C / groups, KH, KW] -> [N, O, OH, OW], zeros around the image.

    `stride` and `dilation` are one integer or one for each of H and W; `padding` one size, one for each, or four:
    before and after along H, then along W. float16 and bfloat16 accumulate in float32 and round once. A call fails
    whose channels do not fit the groups, or whose filter is larger than the padded image.
    """
    if x.rank != 4 or w.rank != 4:
        raise TilewrightError(
            f"conv2d: expected shapes (N, C, H, W) and (O, C / groups, KH, KW), "
            f"got {spell_shape(x.sizes)} and {spell_shape(w.sizes)}"
        )
    dtype = check_same_dtype("conv2d", [x, w])
    if dtype not in (*FLOATS, "int32"):
        raise TilewrightError(f"conv2d: expected a dtype of {', '.join((*FLOATS, 'int32'))}, got {dtype}")
    strides, steps = _pair("stride", stride), _pair("dilation", dilation)
    groups = as_count("conv2d: expected an integer for groups", groups)
    if groups < 1:
        raise TilewrightError(f"conv2d: expected groups of at least 1, got {groups}")
    around = _padding(padding)
    sizes: list[Size] = [x.sizes[0], w.sizes[0]]
    declared = frozenset(d for size in (*x.sizes, *w.sizes, *around) for d in size.declarations)
    for a in range(2):
        both = around[2 * a].expr, around[2 * a + 1].expr
        sizes.append(Size(window_count(x.sizes[2 + a].expr, both, w.sizes[2 + a].expr, strides[a], steps[a]), declared))
    channels, wanted = x.sizes[1], w.sizes[1] * groups
    if channels != wanted and channels.expr.constant is not None and wanted.expr.constant is not None:
        raise TilewrightError(f"conv2d: expected {wanted} channels for {groups} groups of {w.sizes[1]}, got {channels}")
    result_type = tensor_type(sizes, dtype)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        op = Conv2dOp(
            values[0],
            values[1],
            result_type,
            strides=strides,
            padding=[p.expr for p in around],
            dilation=steps,
            groups=groups,
        )
        return builder.insert(op).result

    requires = () if channels == wanted else (Relation(channels.expr, "==", wanted.expr),)
    return Tensor(tuple(sizes), dtype, (x, w), emit, "conv2d", mentions=around, requires=requires)


def _pair(what: str, given: Pair) -> tuple[int, int]:
    message = f"conv2d: expected one or two integers of at least 1 for {what}"
    values = tuple(as_count(message, v) for v in (given if isinstance(given, Sequence) else (given, given)))
    if len(values) != 2 or any(v < 1 for v in values):
        raise TilewrightError(f"{message}, got {given}")
    return values[0], values[1]


def _padding(given: Padding) -> tuple[Size, ...]:
    values = tuple(given) if isinstance(given, Sequence) else (given,) * 4
    if len(values) == 2:
        values = (values[0], values[0], values[1], values[1])
    if len(values) != 4:
        raise TilewrightError(f"conv2d: expected one, two or four sizes for padding, got {len(values)}")
    return tuple(as_size(v) for v in values)
