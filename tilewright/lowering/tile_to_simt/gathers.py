"""`tile.gather`: each thread computes where its elements come from, and loads them one by one."""

from __future__ import annotations

from contextlib import ExitStack

from xdsl.ir import SSAValue

from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, StoreOp
from tilewright.dialects.simt.types import regs_type
from tilewright.dialects.sym.index import dim, members, name_of, offset, value
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.types import buffer_type
from tilewright.lowering.tile_to_simt.builder import I32
from tilewright.lowering.tile_to_simt.compute import inside_limits, read
from tilewright.lowering.tile_to_simt.elements import Local, each_local, first_copy, thread_place
from tilewright.lowering.tile_to_simt.expressions import lower_expr
from tilewright.lowering.tile_to_simt.state import Kernel, element_type, iteration_distribution, registers_of
from tilewright.passes.core import error_at


def lower_gather(kernel: Kernel, op: GatherOp) -> None:
    """Masked loads, one element wide; to a shared buffer through a register."""
    builder, tile, source = kernel.builder, op.tile_type, buffer_type(op.source)
    layout = op.distribution
    assert layout is not None  # `check_scheduled` has looked
    assert source.strides is not None  # as the kernel's arguments have
    dims = layout.dims
    for size, entry in zip(tile.sizes, dims, strict=True):
        if not entry.fits(size):
            raise error_at(op, f"tile.gather: size {size} is no multiple of threads {entry.threads} x {entry.vector}")
    if op.values:
        iteration_distribution(op, tile.rank, [(op.target, range(tile.rank)), *op.mapped_values])
    strides = [builder.param(s) for s in source.strides]
    locals_: dict[int, Local] = {}
    coordinates: dict[str, SSAValue] = {name_of(offset(n)): kernel.index(v) for n, v in enumerate(op.offsets)}
    used = members(op.exprs, "d")
    with ExitStack() as loops:
        for d, (entry, size) in enumerate(zip(dims, tile.sizes, strict=True)):
            locals_[d] = loops.enter_context(each_local(builder, entry, size))
            place = locals_[d].place
            assert place is not None
            if d in used:
                inner = builder.add_int(place, thread_place(builder, entry, size))
                coordinates[name_of(dim(d))] = builder.widen(inner)
        for n in members(op.exprs, "v"):
            fragment, own = op.mapped_values[n]
            coordinates[name_of(value(n))] = builder.widen(read(kernel, fragment, own, locals_))
        mask = inside_limits(kernel, op.valid_limits, dims, tile.sizes, locals_)
        address = builder.constant(0)
        for expr, stride, size, word in zip(op.exprs, strides, source.dims, op.bound_words, strict=True):
            index = lower_expr(builder, expr, coordinates)
            if word == "clip":
                mask = builder.both(mask, builder.compare("sge", index, builder.constant(0)))
                mask = builder.both(mask, builder.compare("slt", index, builder.param(size)))
            address = builder.add_int(address, builder.mul_int(index, stride))
        pointer, registers = kernel.values[op.source], [locals_[d].register for d in range(tile.rank)]
        if tile.strides is None:
            registers = registers_of(kernel, op.target, registers)
            builder.add(LoadOp(pointer, address, kernel.values[op.target], registers, 1, mask, op.other))
            return
        line = RegsAllocOp(regs_type([1], element_type(tile.element)))
        builder.add(line)
        zero = builder.constant(0, I32)
        builder.add(LoadOp(pointer, address, line.res, [zero], 1, mask, op.other))
        place = builder.constant(0, I32)
        for d, (entry, size, stride) in enumerate(zip(dims, tile.sizes, tile.strides, strict=True)):
            local = locals_[d].place
            assert local is not None
            inner = builder.add_int(local, thread_place(builder, entry, size))
            place = builder.add_int(place, builder.mul_int(inner, builder.param(stride, I32)))
        writer = first_copy(builder, list(zip(dims, tile.sizes, strict=True)))
        builder.add(StoreOp(line.res, [zero], kernel.values[op.target], place, 1, writer))
