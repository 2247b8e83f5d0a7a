"""The pass `pipeline-copies`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.assembly import i64_attr
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
from tilewright.dialects.tile.types import buf_type, distributed
from tilewright.passes.allocate_shared import ALIGNMENT, dense_bytes, shared_limit
from tilewright.passes.choose_mma import left_in_registers, only_fill, unmapped
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.element_size import bytes_of
from tilewright.passes.finish_schedule import exchanged_elements
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, buf, kernels_of
from tilewright.passes.vectorise import provable_width, set_widths, widen

SPARE_BYTES = 2048
"""Left for barriers and for the alignment of rings."""
MOST_WORDS = 16
"""Registers of a thread that may hold what its next turn multiplies, beside its accumulators."""
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
                elif kernel.mapped is None:
                    self._load_ahead(kernel, mma)

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
        # Registers of an operand are loaded anew each turn: what reads them is waited for.
        lag = 1 if stages > 1 and not left_in_registers(mma) else 0
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

    def _load_ahead(self, kernel: KernelOp, mma: MmaOp) -> None:
        """Loads of the next turn go into registers while this one multiplies, and from there to shared memory."""
        loop = _filling_loop(mma)
        copies = [] if loop is None else _loads(kernel, loop)
        if loop is None or not copies:
            remark(mma, self.name, "left as it is: no loop whose copies fill shared memory")
            return
        assert kernel.threads is not None
        words = sum(-(-dense_bytes(buf(c.target)) // (4 * kernel.threads.value.data)) for c in copies)
        if words > MOST_WORDS:
            remark(
                loop, self.name, f"left as it is: {words} registers a thread for the next turn, at most {MOST_WORDS}"
            )
            return
        assert loop.parent is not None
        name = _fresh_name(loop)
        start = ApplyOp(loop.lower.data, loop.where)
        # Past the end as far as the last turn goes anyway, so that no index grows beyond what guards count.
        after = smin(loop.upper.data, Expr.symbol(name) + loop.step.data)
        following = ApplyOp(after, {**loop.where, name: loop.variable})
        here, later = list[Operation]([start]), list[Operation]([following])
        for copy in copies:
            assert copy.dist is not None
            type_ = buf(copy.target)
            held = AllocOp(buf_type(type_.sizes, type_.element, "fragment", copy.dist))
            held.res.name_hint = None if copy.target.name_hint is None else f"next_{copy.target.name_hint}"
            here += [held, *_load(copy, held.res, loop, start.result)]
            later += _load(copy, held.res, loop, following.result)
            along = None if copy.along is None else copy.along.value.data
            fill = CopyOp(held.res, [], copy.target, list(copy.target_offsets), width=copy.widths[1], along=along)
            fill.location = copy.location
            loop.body.block.insert_op_before(fill, copy)
        for new in (*here, *later):
            new.location = mma.location
        loop.parent.insert_ops_before(here, loop)
        loop.body.block.insert_ops_after(later, copies[-1])
        for copy in copies:
            copy.detach()
            copy.erase()
        remark(loop, self.name, f"loads run a turn ahead, in {words} registers a thread")

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


def _filling_loop(mma: MmaOp) -> ForOp | None:
    """The innermost loop around a product in whose body copies from global memory fill shared buffers."""
    at = mma.parent_op()
    while isinstance(at, ForOp):
        if any(isinstance(o, CopyOp) and o.spaces == ("global", "shared") for o in at.body.block.ops):
            return at
        at = at.parent_op()
    return None


def _loads(kernel: KernelOp, loop: ForOp) -> list[CopyOp]:
    """The copies of a loop's body from global memory, which nothing stores to, to a shared buffer that nothing else
    writes; none unless all are such, and read where the loop's variable and what is outside say."""
    found = [o for o in loop.body.block.ops if isinstance(o, CopyOp) and o.spaces == ("global", "shared")]
    stored = {o.target for o in kernel.walk() if isinstance(o, CopyOp) and o.spaces[1] == "global"}
    for copy in found:
        others = [u.operation for u in copy.target.uses if u.operation is not copy]
        if copy.dist is None or not copy.by_threads or copy.source in stored:
            return []
        if any(isinstance(o, CopyOp) and o.target is copy.target for o in others):
            return []
        for value in copy.source_offsets:
            if not _is_outside(value, loop) and value is not loop.variable:
                owner = value.owner
                if not isinstance(owner, ApplyOp) or owner.parent is not loop.body.block:
                    return []
                if any(v is not loop.variable and not _is_outside(v, loop) for v in owner.operands):
                    return []
    return found


def _is_outside(value: SSAValue, loop: ForOp) -> bool:
    owner = value.owner
    at = owner.parent_op() if isinstance(owner, Block) else owner
    while at is not None and at is not loop:
        at = at.parent_op()
    return at is None


def _load(copy: CopyOp, held: SSAValue, loop: ForOp, at: SSAValue) -> list[Operation]:
    """What loads the tile of the turn in which the loop's variable is `at`, with the index arithmetic for it."""
    made: list[Operation] = []
    offsets: list[SSAValue] = []
    bounds = list(copy.bound_words)
    for axis, value in enumerate(copy.source_offsets):
        if value is loop.variable:
            offsets.append(at)
        elif isinstance(value.owner, ApplyOp) and loop.variable in value.owner.operands:
            moved = value.owner.clone({loop.variable: at})
            made.append(moved)
            offsets.append(moved.results[0])
        elif isinstance(value.owner, ApplyOp) and value.owner.parent is loop.body.block:
            moved = value.owner.clone()
            made.append(moved)
            offsets.append(moved.results[0])
            continue
        else:
            offsets.append(value)
            continue
        bounds[axis] = "clip"  # past the end behind the last turn
    load = CopyOp(
        copy.source,
        offsets,
        held,
        [],
        bounds=bounds,
        other=copy.other,
        width=copy.widths[0],
        along=None if copy.along is None else copy.along.value.data,
        unaligned=copy.unaligned is not None,
    )
    return [*made, load]


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
    now = 1 if copy.unaligned is not None else copy.widths[0]
    if wide[axis].vector > now:
        copy.properties.pop("unaligned", None)
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
            if new.unaligned is None and load == store and load * bytes_of(buf(new.source).element) in ASYNC_BYTES:
                new.properties["via"] = StringAttr("cp.async")
                if new.width is None:  # one element alone, of 4 bytes
                    new.properties["width"] = i64_attr(load)
    body.add_op(PublishOp(channel.res))
    return Region(body)


def _fresh_name(loop: ForOp) -> str:
    """A name for the loop's variable that none of its bounds uses."""
    used = {*loop.where, *loop.lower.data.symbols, *loop.upper.data.symbols, *loop.step.data.symbols}
    return next(name for name in chain("k", (f"k{n}" for n in count(1))) if name not in used)
