"""Matrix products of the front end: matmul, batch_matmul and einsum."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from xdsl.builder import Builder
from xdsl.ir import BlockArgument, SSAValue

from tilewright.api.sizes import Size
from tilewright.api.tensor import (
    ELEMENT_TYPES,
    FLOATS,
    Tensor,
    check_same_dtype,
    check_tensors,
    spell_shape,
    tensor_type,
)
from tilewright.diagnostics import TilewrightError
from tilewright.dialects.lin.casts import accumulator_type, cast_scalar
from tilewright.dialects.lin.combine import Combine
from tilewright.dialects.lin.contraction import BatchMatmulOp, MatmulOp, product_body
from tilewright.dialects.lin.elementwise import CastOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.precision import PRECISIONS, precision_attr
from tilewright.dialects.sym import symbolic_tensor

_SPEC = re.compile(r"([A-Za-z]*)(?:,([A-Za-z]*))?->([A-Za-z]*)")


def matmul(a: Tensor, b: Tensor, *, precision: str | None = None) -> Tensor:
    """[..., M, K] x [K, N] -> [..., M, N], or [..., M, K] x [..., K, N] with equal batch dims.

    float16 and bfloat16 accumulate in float32 and round once. A product of rank n with rank 2 is one contraction.
    `precision="tf32"` lets factors of float32 lose the 13 lowest bits of their fractions (2^-10 of each), so that
    matrix instructions can multiply them; without it products of float32 are exact.
    """
    check_tensors("matmul", a, b)
    if a.rank >= 3 and b.rank == a.rank:
        return batch_matmul(a, b, precision=precision)
    if a.rank < 2 or b.rank != 2:
        raise TilewrightError(
            f"matmul: expected shapes (..., M, K) and (K, N) or equal ranks, "
            f"got {spell_shape(a.sizes)} and {spell_shape(b.sizes)}"
        )
    dtype = _check_operands("matmul", a, b)
    _check_precision("matmul", precision, dtype)
    if a.rank > 2:
        batch = tuple(range(a.rank - 1))
        n, k = a.rank - 1, a.rank
        return _contract("matmul", [a, b], [(*batch, k), (k, n)], (*batch, n), precision=precision)
    sizes = (a.sizes[0], b.sizes[1])
    result_type = tensor_type(sizes, dtype)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(MatmulOp(values[0], values[1], result_type, precision=precision)).result

    return Tensor(sizes, dtype, (a, b), emit, "matmul")


def batch_matmul(a: Tensor, b: Tensor, *, precision: str | None = None) -> Tensor:
    """[..., M, K] x [..., K, N] -> [..., M, N] with equal batch dims, at least one; `precision` as for `matmul`."""
    check_tensors("batch_matmul", a, b)
    if a.rank != b.rank or a.rank < 3:
        raise TilewrightError(
            f"batch_matmul: expected two tensors of one rank, at least 3, "
            f"got {spell_shape(a.sizes)} and {spell_shape(b.sizes)}"
        )
    for axis, (left, right) in enumerate(zip(a.sizes[:-2], b.sizes[:-2], strict=True)):
        if left != right:
            raise TilewrightError(f"batch_matmul: expected equal batch dims {axis}, got {left} and {right}")
    dtype = _check_operands("batch_matmul", a, b)
    _check_precision("batch_matmul", precision, dtype)
    sizes = (*a.sizes[:-1], b.sizes[-1])
    result_type = tensor_type(sizes, dtype)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(BatchMatmulOp(values[0], values[1], result_type, precision=precision)).result

    return Tensor(sizes, dtype, (a, b), emit, "batch_matmul")


def einsum(spec: str, *operands: Tensor, precision: str | None = None) -> Tensor:
    """The sum of products that `spec` names, as in `einsum("bij,bjk->bik", a, b)`; one or two operands.

    Letters are dims: each at most once in an operand; those that the result lacks are summed over. float16 and bfloat16
    accumulate in float32 and round once. `precision` is as for `matmul`; sums of one operand, and products without
    a sum, are exact whatever it says.
    """
    check_tensors("einsum", *operands)
    found = _SPEC.fullmatch(spec.replace(" ", "")) if isinstance(cast("object", spec), str) else None
    if found is None:
        raise TilewrightError(f"einsum: expected a spec such as 'ij,jk->ik', got {spec!r}")
    words = [word for word in found.groups()[:2] if word is not None]
    out = found.group(3)
    if len(words) != len(operands):
        raise TilewrightError(f"einsum: expected {len(words)} operands for {spec!r}, got {len(operands)}")
    for word, operand in zip(words, operands, strict=True):
        if len(word) != operand.rank:
            raise TilewrightError(
                f"einsum: expected {len(word)} dims for '{word}' in {spec!r}, got shape {spell_shape(operand.sizes)}"
            )
    for word in (*words, out):
        if len(set(word)) != len(word):
            raise TilewrightError(f"einsum: expected distinct letters, got '{word}' in {spec!r}")
    if missing := sorted(set(out) - set("".join(words))):
        raise TilewrightError(f"einsum: expected the result's dims in an operand, got {', '.join(missing)} in {spec!r}")
    check_same_dtype("einsum", operands)
    _check_precision("einsum", precision, operands[0].dtype)
    letters = [*out, *dict.fromkeys(letter for letter in "".join(words) if letter not in out)]
    number = {letter: position for position, letter in enumerate(letters)}
    maps = [tuple(number[x] for x in word) for word in words]
    return _contract("einsum", operands, maps, range(len(out)), letters, precision)


def _check_precision(function: str, precision: str | None, dtype: str) -> None:
    if precision is None:
        return
    if not isinstance(cast("object", precision), str) or precision not in PRECISIONS:
        known = ", ".join(repr(word) for word in PRECISIONS)
        raise TilewrightError(f"{function}: expected precision to be None or one of {known}, got {precision!r}")
    if dtype != "float32":
        raise TilewrightError(f"{function}: precision {precision!r}: expected operands of float32, got {dtype}")


def _check_operands(function: str, a: Tensor, b: Tensor) -> str:
    dtype = check_same_dtype(function, [a, b])
    if dtype not in (*FLOATS, "int32"):
        raise TilewrightError(f"{function}: expected a dtype of {', '.join((*FLOATS, 'int32'))}, got {dtype}")
    left, right = a.sizes[-1], b.sizes[-2]
    if left != right:
        raise TilewrightError(
            f"{function}: expected equal inner dims, got {left} and {right} "
            f"in shapes {spell_shape(a.sizes)} and {spell_shape(b.sizes)}"
        )
    return dtype


def _contract(
    function: str,
    operands: Sequence[Tensor],
    maps: Sequence[tuple[int, ...]],
    out: Sequence[int],
    names: Sequence[str] = (),
    precision: str | None = None,
) -> Tensor:
    """One generic: the product of the operands, summed over the dims that `out` lacks; rounded once to the dtype."""
    extents: dict[int, Size] = {}
    for operand, dims in zip(operands, maps, strict=True):
        for d, size in zip(dims, operand.sizes, strict=True):
            if extents.setdefault(d, size) != size:
                label = names[d] if names else f"d{d}"
                raise TilewrightError(f"{function}: expected one size of {label}, got {extents[d]} and {size}")
    dtype = operands[0].dtype
    if dtype == "bool":
        raise TilewrightError(f"{function}: expected a dtype of {', '.join((*FLOATS, 'int32'))}, got bool")
    sizes = tuple(extents[d] for d in out)
    target = ELEMENT_TYPES[dtype]
    accumulator = accumulator_type(target)
    between = symbolic_tensor(accumulator, [size.expr for size in sizes])
    combine = Combine.SUM if len(extents) > len(sizes) else None

    def widen(inner: Builder, args: tuple[BlockArgument, ...]) -> SSAValue:
        return cast_scalar(inner, args[0], accumulator)

    def emit(builder: Builder, values: Sequence[SSAValue]) -> SSAValue:
        body = product_body(accumulator) if len(operands) == 2 else widen
        generic = GenericOp.build_from(values, maps, out, combine, between, body)
        generic.precision = precision_attr(precision) if generic.is_contraction else None
        value = builder.insert(generic).result
        return value if accumulator == target else builder.insert(CastOp(value, target)).result

    return Tensor(sizes, dtype, tuple(operands), emit, function)
