"""`tile.fill`, `tile.map` and `tile.mma`: what a thread computes on the elements it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, SSAValue

from tilewright.dialects.simt.memory import RegsLoadOp, RegsStoreOp
from tilewright.dialects.tile.compute import IndexOp, MapOp, MmaOp
from tilewright.dialects.tile.copies import FillOp
from tilewright.dialects.tile.iteration import BROADCAST
from tilewright.dialects.tile.types import AnyDistribution, BufType, buffer_type
from tilewright.lowering.tile_to_simt.builder import I32, I64, Builder
from tilewright.lowering.tile_to_simt.elements import Local, each_local, thread_place
from tilewright.lowering.tile_to_simt.matrix import lower_wgmma
from tilewright.lowering.tile_to_simt.scalars import clone_body
from tilewright.lowering.tile_to_simt.state import (
    Kernel,
    distribution,
    element_type,
    iteration_distribution,
    registers_of,
)
from tilewright.lowering.tile_to_simt.warp_matrix import lower_mma_sync
from tilewright.passes.core import error_at


def register_indices(builder: Builder, dims: Sequence[int], locals_: Mapping[int, Local]) -> list[SSAValue]:
    """The register indices of an operand whose dims run along these iteration dims."""
    return [builder.constant(0, I32) if d == BROADCAST else locals_[d].register for d in dims]


def read(kernel: Kernel, value: SSAValue, dims: Sequence[int], locals_: Mapping[int, Local]) -> SSAValue:
    """An element of a fragment, or a scalar as it is (`index` as an i64)."""
    if not isinstance(value.type, BufType):
        scalar = kernel.values[value]
        return kernel.builder.convert(scalar, I64) if isinstance(value.type, IndexType) else scalar
    load = RegsLoadOp(
        kernel.values[value], registers_of(kernel, value, register_indices(kernel.builder, dims, locals_))
    )
    return kernel.builder.add(load).results[0]


def inside_limits(
    kernel: Kernel,
    limits: Mapping[int, SSAValue],
    spread: Sequence[AnyDistribution],
    sizes: Sequence[int | None],
    locals_: Mapping[int, Local],
) -> SSAValue | None:
    """Whether the element lies below all `valid` limits; None when there are none."""
    builder = kernel.builder
    condition: SSAValue | None = None
    for d, limit in limits.items():
        place = locals_[d].place
        assert place is not None
        size = sizes[d]
        assert size is not None
        rest = builder.sub_int(kernel.index(limit), builder.widen(thread_place(builder, spread[d], size)))
        condition = builder.both(condition, builder.compare("slt", builder.widen(place), rest))
    return condition


def typed_constant(value: Attribute, element: Attribute) -> Attribute:
    """A constant attribute in the type that elements are stored in: `index` ones as i64."""
    if isinstance(element, IndexType):
        return IntegerAttr(cast("IntegerAttr[IndexType]", value).value.data, I64)
    return value


def lower_fill(kernel: Kernel, op: FillOp) -> None:
    """Store the constant to each register of the fragment."""
    builder, type_ = kernel.builder, buffer_type(op.target)
    value = builder.attribute(typed_constant(op.value, type_.element))
    if value.type != element_type(type_.element):
        raise error_at(op, f"tile.fill: expected a constant of type {type_.element}, got {value.type}")
    with ExitStack() as loops:
        registers = [
            loops.enter_context(each_local(builder, dim, size, place=False)).register
            for dim, size in zip(distribution(op, type_), type_.sizes, strict=True)
        ]
        builder.add(RegsStoreOp(value, kernel.values[op.target], registers_of(kernel, op.target, registers)))


def lower_map(kernel: Kernel, op: MapOp) -> None:
    """Loops over the iteration dims with the body inside; stores under the `valid` limits."""
    builder, limits = kernel.builder, op.valid_limits
    spread = iteration_distribution(op, op.iteration.value.data, [*op.mapped_inputs, *op.mapped_outputs])
    locals_: dict[int, Local] = {}
    asks = [o for o in op.body.block.ops if isinstance(o, IndexOp)]
    asked = {o.dim for o in asks}
    with ExitStack() as loops:
        for d, (dim, size) in enumerate(zip(spread, op.sizes, strict=True)):
            assert size is not None
            locals_[d] = loops.enter_context(each_local(builder, dim, size, place=d in limits or d in asked))
        for inner in asks:
            place, size = locals_[inner.dim].place, op.sizes[inner.dim]
            assert place is not None
            assert size is not None
            kernel.values[inner.result] = builder.add_int(place, thread_place(builder, spread[inner.dim], size))
        arguments = [read(kernel, value, dims, locals_) for value, dims in op.mapped_inputs]
        results = clone_body(kernel, op.body.block, arguments)
        with builder.when(inside_limits(kernel, limits, spread, op.sizes, locals_)):
            for result, (target, dims) in zip(results, op.mapped_outputs, strict=True):
                indices = registers_of(kernel, target, register_indices(builder, dims, locals_))
                builder.add(RegsStoreOp(result, kernel.values[target], indices))


def lower_mma(kernel: Kernel, op: MmaOp) -> None:
    """`acc = fma(a, b, acc)` over the local elements, the summed dims outermost and in increasing order."""
    builder = kernel.builder
    if op.inst is not None and op.inst.data == "wgmma":
        lower_wgmma(kernel, op)
        return
    if op.inst is not None and op.inst.data == "mma.sync":
        lower_mma_sync(kernel, op)
        return
    lhs, rhs, acc = op.operand_dims
    spread = iteration_distribution(op, op.iteration.value.data, [(op.lhs, lhs), (op.rhs, rhs), (op.acc, acc)])
    summed = op.reduced_dims
    for d in summed:
        if spread[d].threads != 1:
            raise error_at(op, f"tile.mma: summed dim d{d} must lie in one thread, got {spread[d].threads} threads")
    every = range(op.iteration.value.data)
    left = [d for d in every if d not in summed and d in lhs]
    right = [d for d in every if d not in summed and d not in lhs]
    accumulator = element_type(buffer_type(op.acc).element)
    locals_: dict[int, Local] = {}
    with ExitStack() as loops:

        def enter(dims: Sequence[int]) -> None:
            for d in dims:
                size = op.sizes[d]
                assert size is not None
                locals_[d] = loops.enter_context(each_local(builder, spread[d], size, place=False))

        enter([*summed, *left])
        a = _extend(kernel, op, read(kernel, op.lhs, lhs, locals_), accumulator)
        enter(right)
        b = _extend(kernel, op, read(kernel, op.rhs, rhs, locals_), accumulator)
        c = read(kernel, op.acc, acc, locals_)
        if isinstance(accumulator, AnyFloat):
            result = builder.add(math.FmaOp(a, b, c)).results[0]
        else:
            product = builder.add(arith.MuliOp(a, b)).results[0]
            result = builder.add(arith.AddiOp(product, c)).results[0]
        indices = registers_of(kernel, op.acc, register_indices(builder, acc, locals_))
        builder.add(RegsStoreOp(result, kernel.values[op.acc], indices))


def _extend(kernel: Kernel, op: MmaOp, value: SSAValue, type_: Attribute) -> SSAValue:
    """An operand in the accumulator's type, without loss; i1 is unsigned."""
    source = value.type
    if source == type_:
        return value
    floats = isinstance(source, AnyFloat), isinstance(type_, AnyFloat)
    if floats[0] != floats[1]:
        raise error_at(op, f"tile.mma: expected operands that extend to {type_}, got {source}")
    if floats[0]:
        return kernel.builder.add(arith.ExtFOp(value, type_)).results[0]
    extend = arith.ExtUIOp if source == i1 else arith.ExtSIOp
    return kernel.builder.add(extend(value, cast("IntegerType[int]", type_))).results[0]
