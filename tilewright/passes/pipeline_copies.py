"""The pass `pipeline-copies`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from tilewright.dialects.tile.channels import (
    MAX_STAGES,
    AcquireOp,
    ChannelOp,
    PublishOp,
    ReceiveOp,
    ReleaseOp,
    channel_type,
)
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp
from tilewright.passes.allocate_shared import dense_bytes, shared_limit
from tilewright.passes.choose_mma import only_fill, unmapped
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, buf, kernels_of

SPARE_BYTES = 2048
"""Left for barriers and for the alignment of rings."""


@dataclass(frozen=True)
class PipelineCopiesPass(TilewrightPass):
    """Turns copy-then-multiply in a loop into a channel: slots that are filled ahead while earlier ones are multiplied.

    The shared operands of a `tile.mma` on matrix instructions become the buffers of a slot: acquired, filled by tensor
    maps, published, received, and released one turn later, since the instructions run on for a turn. `stages` is the
    number of slots; 0 takes as many as shared memory holds, up to 8. Relies on `choose-mma`; there is one thread of
    control still.
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
                if mma.inst is not None and mma.inst.data == "wgmma":
                    self._pipeline(kernel, mma, scopes)

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
        others = sum(
            dense_bytes(part) * o.type.stages.data
            for o in kernel.walk()
            if isinstance(o, ChannelOp)
            for part in o.type.parts
        )
        arch = "" if kernel.arch is None else kernel.arch.data
        room = shared_limit(arch) - SPARE_BYTES - others
        stages = self.stages or max(1, min(8, room // slot))
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
