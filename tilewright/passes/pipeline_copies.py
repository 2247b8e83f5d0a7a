"""The pass `pipeline-copies`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.sym import ApplyOp, Expr, smin
from tilewright.dialects.tile.channels import (
    MAX_STAGES,
    AcquireOp,
    ChannelOp,
    PublishOp,
    ReceiveOp,
    ReleaseOp,
    channel_type,
)
from tilewright.dialects.tile.compute import MmaOp, ReduceOp
from tilewright.dialects.tile.copies import ASYNC_BYTES, CopyOp
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp
from tilewright.dialects.tile.types import distributed
from tilewright.passes.allocate_shared import ALIGNMENT, dense_bytes, shared_limit
from tilewright.passes.choose_mma import only_fill, unmapped
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.element_size import bytes_of
from tilewright.passes.finish_schedule import exchanged_elements
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, buf, kernels_of
from tilewright.passes.vectorise import provable_width, set_widths, widen

SPARE_BYTES = 2048
"""Left for barriers and for the alignment of rings."""
MOST_AHEAD = 4
"""Slots that warps fill and read, at most: three tiles on their way cover the latency of global memory."""


@dataclass(frozen=True)
class PipelineCopiesPass(TilewrightPass):
    """Turns copy-then-multiply in a loop into a channel: slots that are filled ahead while earlier ones are multiplied.

    The shared operands of a `tile.mma` on matrix instructions become the buffers of a slot. Those of warpgroups are
    acquired, filled by tensor maps, published, received, and released one turn later, since the instructions run on for
    a turn. Those of warps are filled some turns ahead, all slots but one before the loop and one in each turn, by
    asynchronous copies where accesses are wide enough, else by loads and stores.

    `stages` is the number of slots; 0 takes as many as shared memory holds, up to 8, or for warps up to 4, with room
    for a second block if that leaves 3. Relies on `choose-mma`; there is one thread of control still.
    """

    name = "pipeline-copies"
    level = "tile"
    stages: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not 0 <= self.stages <= MAX_STAGES:
            raise error_at(op, f"pipeline-copies: expected 0 to {MAX_STAGES} stages, got {self.stages}")
        for kernel in kernels_of(op):
            scopes = KernelScopes(kernel)
            for mma in [o for o in kernel.walk() if isinstance(o, MmaOp)]:
                inst = "fma" if mma.inst is None else mma.inst.data
                if inst == "wgmma":
                    self._pipeline(kernel, mma, scopes)
                elif inst == "mma.sync":
                    self._fill_ahead(kernel, mma, scopes)

    def _pipeline(self, kernel: KernelOp, mma: MmaOp, scopes: KernelScopes) -> None:
        loop = mma.parent_op()
        fills = [only_fill(value, mma) for value in (mma.lhs, mma.rhs)]
        if not isinstance(loop, ForOp) or loop.parent is None or fills[0] is None or fills[1] is None:
            remark(mma, self.name, "left as it is: no loop whose copies fill both operands")
            return
        copies = [f for f in fills if f is not None]
        for copy in copies:
            why = unmapped(copy, scopes)
            if why is not None:
                remark(copy, self.name, f"left as it is: {why}")
                return
        types = [buf(copy.target) for copy in copies]
        slot = sum(dense_bytes(t) for t in types)
        stages = self.stages or max(1, min(8, _room(kernel) // slot))
        lag = 1 if stages > 1 else 0
        channel = ChannelOp(channel_type(stages, types))
        channel.res.name_hint = "ring"
        acquire, publish = AcquireOp(channel.res), PublishOp(channel.res)
        receive, release = ReceiveOp(channel.res), ReleaseOp(channel.res, lag)
        last = ReleaseOp(channel.res)
        new: list[Operation] = [channel, acquire, publish, receive, release, last]
        for each in new:
            each.location = mma.location
        first = kernel.body.block.first_op
        assert first is not None
        kernel.body.block.insert_op_before(channel, first)
        block = loop.body.block
        block.insert_op_before(acquire, copies[0] if copies[0].is_before_in_block(copies[1]) else copies[1])
        after = copies[1] if copies[0].is_before_in_block(copies[1]) else copies[0]
        block.insert_ops_after([publish, receive], after)
        block.insert_op_after(release, mma)
        loop.parent.insert_op_after(last, loop)
        for number, copy in enumerate(copies):
            self._fill_slot(copy, mma, acquire, receive, number)
        remark(loop, self.name, f"{stages} slots of {slot} bytes, filled by tensor maps")

    def _fill_ahead(self, kernel: KernelOp, mma: MmaOp, scopes: KernelScopes) -> None:
        loop = mma.parent_op()
        copies = [f for f in (only_fill(value, mma) for value in (mma.lhs, mma.rhs)) if f is not None]
        if not isinstance(loop, ForOp) or loop.parent is None or len(copies) < 2:
            remark(mma, self.name, "left as it is: no loop whose copies fill both operands")
            return
        types = [buf(copy.target) for copy in copies]
        slot = sum(dense_bytes(t) for t in types)
        shared, alone = _room(kernel) // 2 // slot, _room(kernel) // slot
        stages = self.stages or min(MOST_AHEAD, shared if shared > 2 else alone)
        if stages < 2:
            remark(loop, self.name, f"left as it is: {stages} slots of {slot} bytes, at least 2 are needed")
            return
        for copy in copies:
            _widen(copy, scopes)
        step = loop.step.data
        channel = ChannelOp(channel_type(stages, types))
        channel.res.name_hint = "ring"
        first = kernel.body.block.first_op
        assert first is not None
        kernel.body.block.insert_op_before(channel, first)
        # Index arithmetic stays for what else uses it; what only copies use is dead.
        moved = [o for o in loop.body.block.ops if o in copies or isinstance(o, ApplyOp)]
        ahead = step * (stages - 1)
        start, end = loop.lower.data, loop.upper.data
        before = ForOp(start, smin(end, start + ahead), step, _fill(loop, moved, copies, channel), where=loop.where)
        here = Expr.symbol(_fresh_name(loop))
        where = {**loop.where, str(here): loop.variable}
        turn = _fill(loop, moved, copies, channel)
        after = ForOp(here + ahead, smin(end, here + ahead + step), step, turn, where=where)
        receive, release = ReceiveOp(channel.res), ReleaseOp(channel.res)
        for number, value in enumerate((mma.lhs, mma.rhs)):
            receive.buffers[number].name_hint = value.name_hint
        loop.parent.insert_op_before(before, loop)
        loop.body.block.insert_ops_before([receive, after], mma)
        loop.body.block.insert_op_after(release, mma)
        for new in (channel, receive, release, *before.walk(), *after.walk()):
            new.location = mma.location
        for number, copy in enumerate(copies):
            alloc = copy.target.owner
            assert isinstance(alloc, AllocOp)
            mma.operands[number] = receive.buffers[number]
            for old in (copy, alloc):
                old.detach()
                old.erase()
        for op in reversed(moved):
            if isinstance(op, ApplyOp) and not op.result.uses.get_length():
                op.detach()
                op.erase()
        made = [o for o in after.walk() if isinstance(o, CopyOp)]
        how = " and ".join(dict.fromkeys("asynchronous copies" if o.is_async else "loads and stores" for o in made))
        remark(loop, self.name, f"{stages} slots of {slot} bytes, filled {stages - 1} turns ahead by {how}")

    def _fill_slot(self, copy: CopyOp, mma: MmaOp, acquire: AcquireOp, receive: ReceiveOp, number: int) -> None:
        old = copy.target
        written, read = acquire.buffers[number], receive.buffers[number]
        written.name_hint = read.name_hint = old.name_hint
        for use in list(old.uses):
            use.operation.operands[use.index] = written if use.operation is copy else read
        copy.properties["via"] = StringAttr("tma")
        for word in ("width", "along", "store_width", "unaligned", "dist"):
            copy.properties.pop(word, None)
        alloc = old.owner
        assert isinstance(alloc, AllocOp)
        alloc.detach()
        alloc.erase()
        del mma


def _room(kernel: KernelOp) -> int:
    """Bytes of shared memory that other channels leave, and reductions that warps share."""
    others = sum(
        dense_bytes(part) * o.type.stages.data
        for o in kernel.walk()
        if isinstance(o, ChannelOp)
        for part in o.type.parts
    )
    for op in kernel.walk():
        if isinstance(op, ReduceOp):
            size = exchanged_elements(op) * bytes_of(buf(op.target).element)
            others += -(-size // ALIGNMENT) * ALIGNMENT
    arch = "" if kernel.arch is None else kernel.arch.data
    return shared_limit(arch) - SPARE_BYTES - others


def _widen(copy: CopyOp, scopes: KernelScopes) -> None:
    """Accesses as wide as addresses allow: of an asynchronous copy a part may lie outside, and is zero."""
    swizzle = buf(copy.target).swizzle
    if copy.dist is None or swizzle is None:
        return
    axis = swizzle.along.data
    width = provable_width(copy, axis, scopes, whole=False)
    wide = widen(copy.dist.dims, copy.tile_type.sizes, axis, width)
    if wide[axis].vector > copy.widths[0]:
        copy.properties["dist"] = distributed(wide)
        set_widths(copy, wide[axis].vector, wide[axis].vector, axis)


def _fill(loop: ForOp, moved: list[Operation], copies: list[CopyOp], channel: ChannelOp) -> Region:
    """The body of a loop that fills a slot as a turn of `loop` fills its buffers."""
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = loop.variable.name_hint
    acquire = AcquireOp(channel.res)
    body.add_op(acquire)
    values: dict[SSAValue, SSAValue] = {loop.variable: body.args[0]}
    for number, copy in enumerate(copies):
        acquire.buffers[number].name_hint = copy.target.name_hint
        values[copy.target] = acquire.buffers[number]
    for op in moved:
        new = op.clone(values)
        body.add_op(new)
        if isinstance(new, CopyOp):
            load, store = new.widths
            if load == store and load * bytes_of(buf(new.source).element) in ASYNC_BYTES:
                new.properties["via"] = StringAttr("cp.async")
    body.add_op(PublishOp(channel.res))
    return Region(body)


def _fresh_name(loop: ForOp) -> str:
    """A name for the loop's variable that none of its bounds uses."""
    used = {*loop.where, *loop.lower.data.symbols, *loop.upper.data.symbols, *loop.step.data.symbols}
    return next(name for name in chain("k", (f"k{n}" for n in count(1))) if name not in used)
