"""Channels and tensor maps: slots of shared memory, the barriers that guard them, and who waits for what.

A channel that tensor maps fill from global memory (a load channel) has two mbarriers a slot: `full` counts the bytes
that land, `empty` the warps that are through with it; where blocks of a cluster share copies, those of all of them. One
thread of the producer asks for copies; every thread of the
consumer waits. A channel that threads fill and tensor maps store from (a store channel) is used by one role: a named
barrier separates writing from storing, and the storing thread counts its groups. A channel that threads fill from
global memory has groups of asynchronous copies: `publish` ends one, `receive` waits until that of its slot has landed,
and a barrier of the block hands it over. Slot and parity are carried through loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.assembly import int_array, ints
from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.simt.async_copy import CpAsyncCommitOp, CpAsyncWaitOp
from tilewright.dialects.simt.clusters import ClusterBarrierOp, ClusterRankOp
from tilewright.dialects.simt.mbarriers import (
    FenceOp,
    MbarArriveOp,
    MbarExpectOp,
    MbarInitOp,
    MbarOp,
    MbarWaitOp,
    NamedBarrierOp,
)
from tilewright.dialects.simt.memory import RegsAllocOp, RegsLoadOp, RegsStoreOp, SharedOp
from tilewright.dialects.simt.sync import BarrierOp
from tilewright.dialects.simt.tma import BulkCommitOp, BulkWaitOp, PrefetchMapOp, TmaLoadOp, TmaStoreOp
from tilewright.dialects.simt.types import MbarType, TensorMapAttr, TmapType, regs_type, shared_type
from tilewright.dialects.simt.wgmma import StMatrixOp, WgmmaWaitOp
from tilewright.dialects.sym.attributes import DimsAttr
from tilewright.dialects.tile.blocks import RolesOp
from tilewright.dialects.tile.channels import AcquireOp, ChannelOp, PublishOp, ReceiveOp, ReleaseOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import ForOp, KernelOp
from tilewright.dialects.tile.types import BufType, SwizzledLayout, buffer_type
from tilewright.lowering.tile_to_simt.builder import I32, Builder
from tilewright.lowering.tile_to_simt.state import (
    Channel,
    Kernel,
    Ring,
    Slot,
    element_bytes,
    element_type,
    registers_of,
)
from tilewright.passes.core import error_at
from tilewright.passes.share_copies import part_of

WARP = 32
MBAR_BYTES = 8


def panel_of(type_: BufType) -> tuple[SwizzledLayout, int, int, int]:
    """(layout, elements of a panel's row, rows of a panel, panels) of a swizzled buffer."""
    layout = type_.swizzle
    assert layout is not None
    span = layout.bytes.data // element_bytes(type_.element)
    width = type_.sizes[layout.along.data]
    return layout, span, type_.count // width, width // span


def declare_channels(kernel: Kernel, op: KernelOp) -> None:
    """The arrays and barriers of all channels of a kernel, and the barriers' start, before anything else runs."""
    builder = kernel.builder
    channels = [o for o in op.walk() if isinstance(o, ChannelOp)]
    started: list[tuple[SSAValue, int]] = []
    rank: SSAValue | None = None
    for number, channel in enumerate(channels):
        assert channel.offsets is not None
        stages = channel.type.stages.data
        arrays: list[SSAValue] = []
        for part, offset in zip(channel.type.parts, ints(channel.offsets), strict=True):
            layout, span, rows, panels = panel_of(part)
            type_ = shared_type([stages, panels, rows, span], element_type(part.element), layout.bytes.data)
            array = builder.add(SharedOp(offset, type_)).results[0]
            array.name_hint = channel.res.name_hint
            arrays.append(array)
        loads = channel.is_loaded
        made = Channel(channel, arrays, None, None, number + 1, _is_stored(channel), channel.is_filled_by_threads)
        if loads:
            assert channel.barriers is not None
            at = channel.barriers.value.data
            full, empty = (
                builder.add(MbarOp(at + MBAR_BYTES * stages * n, MbarType(IntAttr(stages)))).results[0] for n in (0, 1)
            )
            full.name_hint, empty.name_hint = "full", "empty"
            made = Channel(channel, arrays, full, empty, number + 1)
            if any(copy.multicast is not None for copy in channel.fills):
                if rank is None:
                    rank = builder.add(ClusterRankOp()).results[0]
                made = replace(made, blocks=op.cluster_size, rank=rank)
            started += [(full, 1), (empty, made.blocks * _consumer_warps(channel, op))]
        kernel.channels[channel.res] = made
    if started:
        with builder.elect("block"):
            for bar, arrivals in started:
                init = builder.add(MbarInitOp(bar, arrivals))
                kernel.started = kernel.started or init
            builder.add(FenceOp("mbarrier_init"))
        # Other blocks reach the barriers of a cluster's block.
        builder.add(BarrierOp() if rank is None else ClusterBarrierOp())


def prefetch_maps(kernel: Kernel) -> None:
    """The thread that starts the barriers fetches the tensor maps first; all are known once the body is lowered."""
    if kernel.started is not None and kernel.started.parent is not None:
        fetches = [PrefetchMapOp(argument) for argument in kernel.maps.values()]
        for each in fetches:
            each.location = kernel.started.location
        kernel.started.parent.insert_ops_before(fetches, kernel.started)


def _is_stored(channel: ChannelOp) -> bool:
    """Whether tensor maps store from the slots."""
    for use in channel.res.uses:
        if isinstance(use.operation, ReceiveOp):
            readers = [each.operation for buffer in use.operation.buffers for each in buffer.uses]
            return any(isinstance(o, CopyOp) and o.via is not None and o.via.data == "tma" for o in readers)
    return False


def _consumer_warps(channel: ChannelOp, kernel: KernelOp) -> int:
    """Warps that receive from a channel."""
    assert kernel.threads is not None
    for use in channel.res.uses:
        if isinstance(use.operation, ReceiveOp):
            inner, outer = use.operation, use.operation.parent_op()
            while outer is not None:
                if isinstance(outer, RolesOp):
                    number = next(n for n, body in enumerate(outer.bodies) if body is inner.parent_region())
                    return outer.roles[number].threads // WARP
                inner, outer = outer, outer.parent_op()
    return kernel.threads.value.data // WARP


# Rings.


def ring_of(kernel: Kernel, channel: SSAValue, side: str) -> Ring:
    """Where one side of a channel is; at first at slot 0, with a producer's slots free."""
    found = kernel.rings.get((channel, side))
    if found is None:
        builder = kernel.builder
        zero = builder.constant(0, I32)
        parity = builder.constant(1, I32) if side == "acquire" else zero
        found = kernel.rings[channel, side] = Ring(zero, parity, builder.constant(-1, I32))
    return found


def _advance(kernel: Kernel, channel: Channel, side: str, ring: Ring) -> None:
    """On to the next slot; past the last the parity turns."""
    builder, stages = kernel.builder, channel.op.type.stages.data
    turned = builder.add(arith.XOrIOp(ring.parity, builder.constant(1, I32))).results[0]
    if stages == 1:
        kernel.rings[channel.op.res, side] = replace(ring, parity=turned, previous=ring.slot)
        return
    slot, wrapped = _following(builder, ring.slot, stages)
    parity = builder.add(arith.SelectOp(wrapped, turned, ring.parity)).results[0]
    kernel.rings[channel.op.res, side] = Ring(slot, parity, ring.slot)


def _step(kernel: Kernel, channel: Channel, side: str) -> None:
    """On to the next slot of a channel that threads fill, which has no parities."""
    ring = ring_of(kernel, channel.op.res, side)
    slot, _ = _following(kernel.builder, ring.slot, channel.op.type.stages.data)
    kernel.rings[channel.op.res, side] = replace(ring, slot=slot)


def _following(builder: Builder, slot: SSAValue, stages: int) -> tuple[SSAValue, SSAValue]:
    """The slot after a slot, and whether that is the first again."""
    following = builder.add_int(slot, builder.constant(1, I32))
    wrapped = builder.compare("eq", following, builder.constant(stages, I32))
    return builder.add(arith.SelectOp(wrapped, builder.constant(0, I32), following)).results[0], wrapped


def _store_slot(kernel: Kernel, channel: Channel) -> SSAValue:
    """The slot of a store channel: the turn of the unrolled loop around, modulo the slots."""
    builder, stages = kernel.builder, channel.op.type.stages.data
    if stages == 1:
        return builder.constant(0, I32)
    if kernel.turn is None or kernel.turn[1] % stages:
        raise error_at(
            channel.op, f"tile.channel: expected {stages} slots to be used in a loop unrolled a multiple of that often"
        )
    return builder.mod_unsigned(kernel.turn[0], builder.constant(stages, I32))


def _bind(kernel: Kernel, channel: Channel, buffers: Sequence[SSAValue], slot: SSAValue) -> None:
    builder = kernel.builder
    for buffer, array, part in zip(buffers, channel.arrays, channel.op.type.parts, strict=True):
        first = builder.mul_int(slot, builder.constant(part.count, I32))
        kernel.slots[buffer] = Slot(array, first, channel, slot)


def lower_acquire(kernel: Kernel, op: AcquireOp) -> None:
    """Wait for a free slot; for a load channel announce its bytes as well."""
    builder, channel = kernel.builder, kernel.channels[op.channel]
    if channel.by_threads:
        ring = ring_of(kernel, op.channel, "acquire")
        if not _is_free(op):
            builder.add(BarrierOp())
        _bind(kernel, channel, op.buffers, ring.slot)
        return
    if channel.full is None or channel.empty is None:
        slot = _store_slot(kernel, channel)
        if channel.stored:
            with builder.elect(kernel.scope):
                builder.add(BulkWaitOp(channel.op.type.stages.data - 1, read=True))
        builder.add(NamedBarrierOp(channel.number, builder.threads))
        _bind(kernel, channel, op.buffers, slot)
        return
    ring = ring_of(kernel, op.channel, "acquire")
    size = sum(part.count * element_bytes(part.element) for part in channel.op.type.parts)
    with builder.elect(kernel.scope):
        builder.add(MbarWaitOp(channel.empty, ring.slot, ring.parity))
        builder.add(MbarExpectOp(channel.full, ring.slot, size))
    _bind(kernel, channel, op.buffers, ring.slot)


def _is_free(op: AcquireOp) -> bool:
    """Whether all threads are through with the slot of an acquire for certain: no slot has been released before, or the
    barrier of a receive stands behind the last release, on every way to the acquire."""
    outer: Operation | None = op
    while outer is not None:
        before = outer.prev_op
        while before is not None:
            inside = [o for o in before.walk() if isinstance(o, ReceiveOp | ReleaseOp) and o.channel is op.channel]
            if inside:
                return isinstance(before, ReceiveOp)
            before = before.prev_op
        outer = outer.parent_op()
        if isinstance(outer, ForOp) and any(isinstance(o, ReleaseOp) and o.channel is op.channel for o in outer.walk()):
            return False
    return True


def _wait_for_group(kernel: Kernel, channel: Channel, slot: SSAValue) -> None:
    """Wait until the copies into a slot have landed: for all groups but those of slots that were published after it.

    While the ring is as full as it gets these are all slots but two: this one, and the one that is being read or about
    to be filled. Towards the end there are fewer, and all groups are waited for.
    """
    builder, stages = kernel.builder, channel.op.type.stages.data
    if stages < 3:
        builder.add(CpAsyncWaitOp(0))
        return
    # From this slot to the next that will be filled, around the ring.
    ahead = builder.sub_int(ring_of(kernel, channel.op.res, "acquire").slot, slot)
    around = builder.compare("eq", ahead, builder.constant(-1, I32))
    full = builder.add(arith.OrIOp(around, builder.compare("eq", ahead, builder.constant(stages - 1, I32)))).results[0]
    builder.choose(full, [CpAsyncWaitOp(stages - 2)], [CpAsyncWaitOp(0)])


def lower_publish(kernel: Kernel, op: PublishOp) -> None:
    """Go on to the next slot; the threads' stores to a store channel are made visible first."""
    builder, channel = kernel.builder, kernel.channels[op.channel]
    if channel.by_threads:
        if channel.is_async:
            builder.add(CpAsyncCommitOp())
        _step(kernel, channel, "acquire")
        return
    if channel.full is None:
        if channel.stored:
            builder.add(FenceOp("async"))
        builder.add(NamedBarrierOp(channel.number, builder.threads))
        return
    _advance(kernel, channel, "acquire", ring_of(kernel, op.channel, "acquire"))


def lower_receive(kernel: Kernel, op: ReceiveOp) -> None:
    """Wait for a full slot."""
    builder, channel = kernel.builder, kernel.channels[op.channel]
    if channel.by_threads:
        ring = ring_of(kernel, op.channel, "receive")
        if channel.is_async:
            _wait_for_group(kernel, channel, ring.slot)
        builder.add(BarrierOp())
        _bind(kernel, channel, op.buffers, ring.slot)
        _step(kernel, channel, "receive")
        return
    if channel.full is None:
        _bind(kernel, channel, op.buffers, _store_slot(kernel, channel))
        return
    ring = ring_of(kernel, op.channel, "receive")
    builder.add(MbarWaitOp(channel.full, ring.slot, ring.parity))
    _bind(kernel, channel, op.buffers, ring.slot)


def lower_release(kernel: Kernel, op: ReleaseOp) -> None:
    """Wait for what read the slots that are let go, and let them go."""
    if kernel.channels[op.channel].by_threads:
        return  # the barrier of the next acquire or receive waits for the threads that read
    builder, channel, lag = kernel.builder, kernel.channels[op.channel], op.lag.value.data
    inside_loop = any(
        isinstance(o, ReceiveOp) and o.channel is op.channel for o in (op.parent.ops if op.parent else ())
    )
    if channel.full is None or channel.empty is None:
        if not channel.stored:
            return  # the barrier of the next acquire waits for the threads that read
        with builder.elect(kernel.scope):
            # A slot that is stored from is waited for where it is taken again; at the end all are.
            builder.add(BulkCommitOp() if inside_loop else BulkWaitOp(0))
        return
    ring = ring_of(kernel, op.channel, "receive")
    if lag == 0 and not inside_loop:
        builder.add(WgmmaWaitOp(0, kernel.accumulators))
        _arrive(kernel, channel, ring.previous, maybe=True)
        kernel.rings[op.channel, "receive"] = replace(ring, previous=builder.constant(-1, I32))
        return
    if lag == 0:
        builder.add(WgmmaWaitOp(0, kernel.accumulators))
        _arrive(kernel, channel, ring.slot, maybe=False)
        _advance(kernel, channel, "receive", ring)
        ring = kernel.rings[op.channel, "receive"]
        kernel.rings[op.channel, "receive"] = replace(ring, previous=builder.constant(-1, I32))
        return
    with builder.when(builder.compare("sge", ring.previous, builder.constant(0, I32))):
        builder.add(WgmmaWaitOp(lag))
        _arrive(kernel, channel, ring.previous, maybe=False)
    _advance(kernel, channel, "receive", ring)


def _arrive(kernel: Kernel, channel: Channel, slot: SSAValue, *, maybe: bool) -> None:
    """Each warp arrives once, in each block that fills the slot; `maybe` only where there is one."""
    builder, bar = kernel.builder, channel.empty
    assert bar is not None
    condition = builder.compare("sge", slot, builder.constant(0, I32)) if maybe else None
    with builder.when(condition), builder.elect("warp"):
        if channel.blocks == 1:
            builder.add(MbarArriveOp(bar, slot))
        for block in range(channel.blocks if channel.blocks > 1 else 0):
            builder.add(MbarArriveOp(bar, slot, builder.constant(block, I32)))


# Copies.


def _map_argument(
    kernel: Kernel, op: CopyOp, buffer: SSAValue, tile: BufType, divided: int | None, blocks: int
) -> tuple[SSAValue, list[int]]:
    """The tensor map of a buffer for this tile as an argument, and the tile's dims in the map's order: the contiguous
    one last. The rows of dim `divided` are shared out among `blocks`."""
    layout, span, _, _ = panel_of(tile)
    along = layout.along.data
    order = [d for d in range(tile.rank) if d != along] + [along]
    box = [span if d == along else tile.sizes[d] // (blocks if d == divided else 1) for d in order]
    type_ = buffer_type(buffer)
    assert type_.strides is not None  # as of all arguments
    fixed = kernel.builder.fixed
    dims = DimsAttr(tuple(type_.dims[d].substitute(fixed) for d in order))
    strides = DimsAttr(tuple(type_.strides[d].substitute(fixed) for d in order))
    if strides.data[-1].constant != 1:
        raise error_at(op, f"tile.copy: via tma needs a stride along dim {along} that is known to be 1")
    pointer = next(n for n, p in enumerate(kernel.pointers) if p is kernel.values[buffer])
    made = TensorMapAttr(IntAttr(pointer), dims, strides, layout.bytes)
    return kernel.tensor_map(TmapType(int_array(box), element_type(tile.element)), made), order


def lower_mapped_copy(kernel: Kernel, op: CopyOp) -> None:
    """`via tma`: one thread asks for a box a panel; of a cluster's block for those of its part."""
    loads = op.spaces[0] == "global"
    inside, outside = (op.target, op.source) if loads else (op.source, op.target)
    slot, tile = kernel.slots.get(inside), buffer_type(inside)
    if slot is None or slot.channel is None:
        raise error_at(op, "tile.copy: via tma moves the buffers of a channel's slot")
    builder = kernel.builder
    _, span, rows, panels = panel_of(tile)
    blocks, rank, divided = 1, None, None
    if op.multicast is not None:
        blocks, rank = slot.channel.blocks, slot.channel.rank
        found = part_of(tile, blocks)
        if rank is None or found is None or blocks == 1:
            raise error_at(op, f"tile.copy: {blocks} blocks cannot share {tile}")
        panels, divided = found
    argument, order = _map_argument(kernel, op, outside, tile, divided, blocks)
    offsets = op.source_offsets if loads else op.target_offsets
    starts = [builder.convert(kernel.index(offsets[d]), I32) for d in order]
    first = slot.first
    if rank is not None and divided is not None:
        share = tile.sizes[divided] // blocks
        at = order.index(divided)
        starts[at] = builder.add_int(starts[at], builder.mul_int(rank, builder.constant(share, I32)))
        first = builder.add_int(first, builder.mul_int(rank, builder.constant(rows // blocks * span, I32)))
    elif rank is not None:
        starts[-1] = builder.add_int(starts[-1], builder.mul_int(rank, builder.constant(panels * span, I32)))
        first = builder.add_int(first, builder.mul_int(rank, builder.constant(panels * rows * span, I32)))
    ranks = None if rank is None else range(blocks)
    with builder.elect(kernel.scope), builder.unroll(panels) as p:
        place = builder.add_int(first, builder.mul_int(p, builder.constant(rows * span, I32)))
        last = builder.add_int(starts[-1], builder.mul_int(p, builder.constant(span, I32)))
        coordinates = [*starts[:-1], last]
        if loads:
            assert slot.channel.full is not None
            builder.add(TmaLoadOp(argument, coordinates, slot.array, place, slot.channel.full, slot.number, ranks))
        else:
            builder.add(TmaStoreOp(slot.array, place, argument, coordinates))


def lower_matrix_store(kernel: Kernel, op: CopyOp) -> None:
    """`via stmatrix`: each warp stores its 16 rows, 16 columns at a time."""
    builder, tile = kernel.builder, op.tile_type
    slot, shared = kernel.slots.get(op.target), buffer_type(op.target)
    if slot is None or shared.swizzle is None or shared.swizzle.along.data != shared.rank - 1:
        raise error_at(op, "tile.copy: via stmatrix stores rows to a slot that is swizzled along them")
    if tile.rank < 2 or tile.count != tile.sizes[-2] * tile.sizes[-1]:
        raise error_at(op, f"tile.copy: via stmatrix stores one matrix, got a tile of {list(tile.sizes)}")
    rows = tile.sizes[-2]
    leading = [builder.constant(0, I32)] * (tile.rank - 2)
    regs = kernel.values[op.source]
    _, span, _, panels = panel_of(shared)
    groups = builder.threads // WARPGROUP
    tid = builder.tid()
    thread = builder.mod_unsigned(tid, builder.constant(WARPGROUP, I32)) if groups > 1 else tid
    warp = builder.div_unsigned(thread, builder.constant(WARP, I32))
    lane = builder.mod_unsigned(tid, builder.constant(WARP, I32))
    row = builder.add_int(
        builder.mul_int(warp, builder.constant(16, I32)), builder.mod_unsigned(lane, builder.constant(16, I32))
    )
    if groups > 1:
        group = builder.div_unsigned(tid, builder.constant(WARPGROUP, I32))
        row = builder.add_int(row, builder.mul_int(group, builder.constant(64, I32)))
    half = builder.mul_int(builder.div_unsigned(lane, builder.constant(16, I32)), builder.constant(8, I32))
    with (
        builder.unroll(rows // (64 * groups)) as block,
        builder.unroll(panels) as p,
        builder.unroll(span // 16) as q,
    ):
        eight = builder.add(RegsAllocOp(regs_type([8], element_type(tile.element)))).results[0]
        with builder.unroll(2) as h, builder.unroll(2) as x, builder.unroll(2) as e:
            first = builder.mul_int(p, builder.constant(span // 4, I32))
            first = builder.add_int(first, builder.mul_int(q, builder.constant(4, I32)))
            column = builder.add_int(builder.add_int(first, builder.mul_int(h, builder.constant(2, I32))), e)
            line = builder.add_int(builder.mul_int(block, builder.constant(2, I32)), x)
            place = registers_of(kernel, op.source, [*leading, line, column])
            value = builder.add(RegsLoadOp(regs, place)).results[0]
            to = builder.add_int(
                builder.mul_int(h, builder.constant(4, I32)), builder.mul_int(x, builder.constant(2, I32))
            )
            builder.add(RegsStoreOp(value, eight, [builder.add_int(to, e)]))
        down = builder.add_int(row, builder.mul_int(block, builder.constant(64 * groups, I32)))
        place = builder.add_int(slot.first, builder.mul_int(down, builder.constant(span, I32)))
        place = builder.add_int(place, builder.mul_int(p, builder.constant(rows * span, I32)))
        place = builder.add_int(place, builder.add_int(builder.mul_int(q, builder.constant(16, I32)), half))
        builder.add(StMatrixOp(eight, [builder.constant(0, I32)], slot.array, place))


def rings_in(kernel: Kernel, body: Block) -> tuple[tuple[SSAValue, str], ...]:
    """The rings of load channels that ops inside a block move on: what a loop around it carries, three values each."""
    found: dict[tuple[SSAValue, str], None] = {}
    for op in (inner for top in body.ops for inner in top.walk()):
        if isinstance(op, PublishOp) and _is_carried(kernel.channels[op.channel]):
            found[op.channel, "acquire"] = None
        elif isinstance(op, ReleaseOp) and _is_carried(kernel.channels[op.channel]):
            found[op.channel, "receive"] = None
    return tuple(found)


def _is_carried(channel: Channel) -> bool:
    """Whether loops carry where the sides of a channel are: those of a store channel follow from the turn."""
    return channel.full is not None or channel.by_threads
