"""One scheduled `tile.kernel` becomes one `simt.kernel`: its arguments, its grid, and a table from op to lowering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.assembly import ints
from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.simt import roles as simt_roles
from tilewright.dialects.simt import structure as simt
from tilewright.dialects.simt.clusters import ClusterBarrierOp
from tilewright.dialects.simt.memory import RegsAllocOp, SharedOp
from tilewright.dialects.simt.sync import BarrierOp
from tilewright.dialects.simt.types import GlobalType, regs_type, shared_type
from tilewright.dialects.sym.attributes import ExprAttr
from tilewright.dialects.sym.expr import Expr
from tilewright.dialects.sym.ops import ApplyOp
from tilewright.dialects.tile.blocks import BlockCountOp, RasterOp, RolesOp, SliceOp
from tilewright.dialects.tile.channels import AcquireOp, ChannelOp, PublishOp, ReceiveOp, ReleaseOp
from tilewright.dialects.tile.compute import MapOp, MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp, SyncOp
from tilewright.dialects.tile.types import BufType, buffer_type, factors_of_part
from tilewright.lowering.tile_to_simt.builder import I32, Builder, constant_of
from tilewright.lowering.tile_to_simt.channels import (
    MBAR_BYTES,
    declare_channels,
    lower_acquire,
    lower_publish,
    lower_receive,
    lower_release,
    panel_of,
    prefetch_maps,
    ring_of,
    rings_in,
)
from tilewright.lowering.tile_to_simt.compute import lower_fill, lower_map, lower_mma
from tilewright.lowering.tile_to_simt.copies import lower_copy
from tilewright.lowering.tile_to_simt.gathers import lower_gather
from tilewright.lowering.tile_to_simt.reduction import lower_reduce
from tilewright.lowering.tile_to_simt.scalars import clone_scalar
from tilewright.lowering.tile_to_simt.state import Kernel, Ring, Slot, distribution, element_bytes, element_type
from tilewright.passes.core import error_at


def lower_kernel(op: KernelOp) -> simt.KernelOp:
    """The simt kernel of a scheduled tile kernel, detached; TilewrightError where a decision is open or impossible."""
    check_scheduled(op)
    assert op.threads is not None
    assert op.index_width is not None
    threads = op.threads.value.data
    entry = Block()
    builder = Builder(entry, op.index_width.value.data, threads, _fixed_symbols(op))
    builder.location = op.location
    kernel = Kernel(builder)
    _arguments(kernel, entry, op)
    declare_channels(kernel, op)
    _coordinates(kernel, op)
    _lower_block(kernel, op.body.block)
    prefetch_maps(kernel)
    if any(channel.blocks > 1 for channel in kernel.channels.values()):
        # No block ends while another of its cluster may still reach its shared memory.
        builder.add(ClusterBarrierOp())
    grid = Expr.const(1)
    for size in op.grid.data:
        grid = grid * size
    smem = max(
        (
            offset.value.data + shared_count(alloc.type) * element_bytes(alloc.type.element)
            for alloc in op.walk()
            if isinstance(alloc, AllocOp) and (offset := alloc.offset) is not None
        ),
        default=0,
    )
    for channel in (inner for inner in op.walk() if isinstance(inner, ChannelOp)):
        smem = max(smem, channel_end(channel))
    maps = [made for _, made in kernel.maps]
    persistent = op.persistent is not None
    result = simt.KernelOp(
        op.sym_name.data,
        threads,
        ExprAttr(grid),
        builder.params,
        op.assumes.data,
        Region(entry),
        smem,
        maps,
        persistent=persistent,
        cluster=op.cluster_size if op.is_clustered else None,
    )
    result.attributes.update(op.attributes)
    result.location = op.location
    return result


def check_scheduled(op: KernelOp) -> None:
    """Raise at the first op of the kernel that leaves a decision open."""
    for inner in op.walk():
        gaps: Callable[[], list[str]] | None = getattr(inner, "schedule_gaps", None)
        if gaps is not None and (open_ := gaps()):
            raise error_at(inner, f"{inner.name}: expected a scheduled op, got one without {', '.join(open_)}")


def _fixed_symbols(op: KernelOp) -> dict[str, int]:
    """Symbols that an assumption of the form `symbol == constant` gives a value."""
    found: dict[str, int] = {}
    for relation in (attribute.data for attribute in op.assumes.data):
        for left, right in ((relation.lhs, relation.rhs), (relation.rhs, relation.lhs)):
            if relation.op == "==" and right.constant is not None and str(left) in left.symbols:
                found[str(left)] = right.constant
    return found


def _arguments(kernel: Kernel, entry: Block, op: KernelOp) -> None:
    seen_scalar = False
    for argument in op.arguments:
        if isinstance(argument.type, BufType):
            if seen_scalar:
                raise error_at(op, "tile.kernel: expected buffers before scalars")
            if argument.type.strides is None:
                raise error_at(op, f"tile.kernel: expected a buffer with strides, got {argument.type}")
            type_: Attribute = GlobalType(element_type(argument.type.element))
        else:
            seen_scalar = True
            type_ = element_type(argument.type)
        new = entry.insert_arg(type_, len(entry.args))
        new.name_hint = argument.name_hint
        if isinstance(type_, GlobalType):
            kernel.pointers.append(new)
        kernel.values[argument] = new


def _coordinates(kernel: Kernel, op: KernelOp) -> None:
    """Grid coordinates out of the one-dimensional block index, the last the fastest.

    The block index and so each grid size has 31 bits, and 32-bit division is the cheaper: it is done in i32 always.
    """
    builder = kernel.builder
    coordinates, sizes = list(op.coordinates), list(op.grid.data)
    if not coordinates:
        return
    block = simt.BlockIdOp("x")
    rest: SSAValue | None = None
    first = next((d for d, size in enumerate(sizes) if size.constant != 1), None)
    for d in range(len(sizes) - 1, -1, -1):
        if sizes[d].constant == 1 or first is None:
            kernel.values[coordinates[d]] = builder.constant(0)
            continue
        if rest is None:
            rest = builder.add(block).results[0]
        if d == first:
            kernel.values[coordinates[d]] = builder.widen(rest)
            continue
        size = builder.param(sizes[d], I32)
        kernel.values[coordinates[d]] = builder.widen(builder.mod_unsigned(rest, size))
        rest = builder.div_unsigned(rest, size)


def _lower_block(kernel: Kernel, block: Block) -> None:
    for op in block.ops:
        kernel.builder.location = op.location
        try:
            _TABLE.get(type(op), clone_scalar)(kernel, op)
        except TilewrightError as error:
            raise error if error.location is not None else error_at(op, error.message) from None


def _alloc(kernel: Kernel, op: AllocOp) -> None:
    type_, element = op.type, element_type(op.type.element)
    if type_.swizzle is not None:
        assert op.offset is not None
        layout, span, rows, panels = panel_of(type_)
        if type_.sizes[layout.along.data] % span:
            raise error_at(op, f"tile.alloc: a panel has {span} elements along dim {layout.along.data}, got {type_}")
        array = shared_type([panels, rows, span], element, layout.bytes.data)
        new: Operation = SharedOp(op.offset.value.data, array)
        zero = kernel.builder.constant(0, I32)
        kernel.slots[op.res] = Slot(new.results[0], zero, None, zero)
    elif type_.space.data == "shared":
        assert op.offset is not None
        new = SharedOp(op.offset.value.data, shared_type(_shared_sizes(type_), element))
    else:
        sizes = [d.elements_per_thread(n) for d, n in zip(distribution(op, type_), type_.sizes, strict=True)]
        new = RegsAllocOp(regs_type(sizes, element))
    new.results[0].name_hint = op.res.name_hint
    kernel.values[op.res] = kernel.builder.add(new).results[0]


def _shared_sizes(type_: BufType) -> list[int]:
    """The sizes of a dense array; one size, the count, of any other."""
    count = shared_count(type_)
    return list(type_.sizes) if count == type_.count else [count]


def shared_count(type_: BufType) -> int:
    """Elements from the first to the last of a shared buffer, padding between included."""
    if type_.swizzle is not None:
        return type_.count
    strides = [s.constant or 0 for s in type_.strides or ()]
    return 1 + sum((n - 1) * s for n, s in zip(type_.sizes, strides, strict=True))


def _apply(kernel: Kernel, op: ApplyOp) -> None:
    value = kernel.expr(op.expr.data, op.where)
    if value.name_hint is None and not isinstance(value.owner, Block):
        value.name_hint = op.result.name_hint
    kernel.values[op.result] = value


def channel_end(op: ChannelOp) -> int:
    """Where a channel ends in shared memory: its rings, and its mbarriers."""
    offsets, stages = ints(op.offsets) if op.offsets is not None else (), op.type.stages.data
    ends = [
        at + stages * part.count * element_bytes(part.element) for at, part in zip(offsets, op.type.parts, strict=True)
    ]
    barriers = 0 if op.barriers is None else op.barriers.value.data + 2 * stages * MBAR_BYTES
    return max([*ends, barriers])


def _channel(kernel: Kernel, op: ChannelOp) -> None:
    """`declare_channels` has made it."""
    del kernel, op


def _block_count(kernel: Kernel, op: BlockCountOp) -> None:
    kernel.values[op.res] = kernel.builder.widen(kernel.builder.add(simt.GridDimOp()).results[0])


def _raster(kernel: Kernel, op: RasterOp) -> None:
    """Groups of rows, column by column; places and sizes have 31 bits, as the number of blocks has."""
    builder = kernel.builder
    place = builder.convert(kernel.values[op.place], I32)
    rows, columns = (builder.param(e, I32) for e in op.sizes.data)
    height = builder.constant(op.group.value.data, I32)
    each = builder.mul_int(columns, height)
    group = builder.div_unsigned(place, each)
    first = builder.mul_int(group, height)
    here = builder.minimum(builder.sub_int(rows, first), height)
    rest = builder.sub_int(place, builder.mul_int(group, each))
    kernel.values[op.row] = builder.widen(builder.add_int(first, builder.mod_unsigned(rest, here)))
    kernel.values[op.column] = builder.widen(builder.div_unsigned(rest, here))


def _slice(kernel: Kernel, op: SliceOp) -> None:
    """A part of a fragment is its registers from an offset on."""
    builder, part, source = kernel.builder, op.res.type, buffer_type(op.source)
    dims = distribution(op, part)
    for d, (dim, whole) in enumerate(zip(dims, distribution(op, source), strict=True)):
        size = part.sizes[d]
        if not dim.fits(size) or dim.factors(size) != factors_of_part(whole, source.sizes[d], size):
            raise error_at(op, f"tile.slice: dim {d} of {part} is spread otherwise than that part of {source}")
    offsets: list[SSAValue] = []
    for d, (offset, size, dim) in enumerate(zip(op.offsets, part.sizes, dims, strict=True)):
        place = builder.convert(kernel.index(offset), I32)
        known = constant_of(place)
        if known is not None and (wrong := op.wrong_offset(d, known)) is not None:
            raise error_at(op, f"tile.slice: {wrong}")
        local = dim.elements_per_thread(size)
        number = builder.div_unsigned(place, builder.constant(size, I32))
        offsets.append(builder.mul_int(number, builder.constant(local, I32)))
    outer = kernel.register_offsets.get(op.source)
    if outer is not None:
        offsets = [builder.add_int(a, b) for a, b in zip(outer, offsets, strict=True)]
    kernel.values[op.res] = kernel.values[op.source]
    kernel.register_offsets[op.res] = offsets


def _roles(kernel: Kernel, op: RolesOp) -> None:
    """Each role with its own threads and its own places in the rings."""
    builder, bodies = kernel.builder, list[Region]()
    for role, body in zip(op.roles, op.bodies, strict=True):
        block = Block()
        outer_rings, outer_scope = dict(kernel.rings), kernel.scope
        # A role that only fills slots is the work of one thread.
        alone = not any(isinstance(o, AllocOp | ReceiveOp) for o in body.walk())
        kernel.scope = "" if alone else "role"
        with builder.role(block, role.first * WARPGROUP, role.threads), builder.elect("role" if alone else ""):
            _lower_block(kernel, body.block)
        kernel.rings, kernel.scope = outer_rings, outer_scope
        bodies.append(Region(block))
    builder.location = op.location
    builder.add(simt_roles.RolesOp(op.roles, bodies))


def _sync(kernel: Kernel, _op: SyncOp) -> None:
    kernel.builder.add(BarrierOp())


def _for(kernel: Kernel, op: ForOp) -> None:
    """A loop, or with constant bounds and a full unroll count a static one."""
    builder, where = kernel.builder, op.where
    lower, upper, step = op.lower.data, op.upper.data, op.step.data
    first, last, by = lower.constant, upper.constant, step.constant
    if first is not None and last is not None and by is not None:
        trips = max(0, -((first - last) // by))
        if trips == 0:
            return
        if op.unroll is not None and op.unroll.value.data == trips:
            outer = kernel.turn
            with builder.unroll(trips) as i:
                kernel.turn = i, trips
                place = builder.mul_int(builder.widen(i), builder.constant(by))
                kernel.values[op.variable] = builder.add_int(builder.constant(first), place)
                _lower_block(kernel, op.body.block)
            kernel.turn = outer
            return
    low, high, stride = (kernel.expr(e, where) for e in (lower, upper, step))
    carried = rings_in(kernel, op.body.block)
    before = [v for key in carried for v in _ring_values(kernel, key)]
    body = Block(arg_types=[builder.index, *(v.type for v in before)])
    body.args[0].name_hint = op.variable.name_hint
    kernel.values[op.variable] = body.args[0]
    location = builder.location
    with builder.inside(body):
        _set_rings(kernel, carried, body.args[1:])
        _lower_block(kernel, op.body.block)
        builder.add(scf.YieldOp(*(v for key in carried for v in _ring_values(kernel, key))))
    loop = scf.ForOp(low, high, stride, before, Region(body))
    loop.attributes.update(op.attributes)
    if op.unroll is not None:
        loop.attributes["unroll"] = op.unroll
    builder.location = location
    builder.add(loop)
    _set_rings(kernel, carried, loop.results)


def _ring_values(kernel: Kernel, key: tuple[SSAValue, str]) -> tuple[SSAValue, ...]:
    """What a loop carries of a ring."""
    ring = ring_of(kernel, *key)
    return (ring.slot,) if kernel.channels[key[0]].by_threads else (ring.slot, ring.parity, ring.previous)


def _set_rings(kernel: Kernel, keys: Sequence[tuple[SSAValue, str]], values: Sequence[SSAValue]) -> None:
    rest = list(values)
    for key in keys:
        count = len(_ring_values(kernel, key))
        mine, rest = rest[:count], rest[count:]
        kernel.rings[key] = replace(ring_of(kernel, *key), slot=mine[0]) if count == 1 else Ring(*mine)


_TABLE: dict[type[Operation], Callable[[Kernel, Any], None]] = {
    AcquireOp: lower_acquire,
    AllocOp: _alloc,
    ApplyOp: _apply,
    BlockCountOp: _block_count,
    ChannelOp: _channel,
    CopyOp: lower_copy,
    FillOp: lower_fill,
    ForOp: _for,
    GatherOp: lower_gather,
    MapOp: lower_map,
    MmaOp: lower_mma,
    PublishOp: lower_publish,
    RasterOp: _raster,
    ReceiveOp: lower_receive,
    ReduceOp: lower_reduce,
    ReleaseOp: lower_release,
    RolesOp: _roles,
    SliceOp: _slice,
    SyncOp: _sync,
}
