"""The pass `specialise-warps`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.roles import WARPGROUP, Role
from tilewright.dialects.tile.blocks import RolesOp
from tilewright.dialects.tile.channels import AcquireOp, ChannelOp, PublishOp, ReceiveOp, ReleaseOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import ForOp, KernelOp, SyncOp
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import kernels_of

REGISTERS = {1: (240, 40), 2: (240, 24), 3: (160, 32)}
"""For one, two, three warpgroups that compute: registers of their threads, and of the one that loads. Together they are
at most 65536 (CUDA C++ Programming Guide, compute capability 9.0)."""


@dataclass(frozen=True)
class SpecialiseWarpsPass(TilewrightPass):
    """Gives the two sides of a load channel to roles: one warpgroup fills slots, the others compute.

    The kernel's body is sliced twice: the producer keeps what acquires, fills and publishes slots of channels that
    tensor maps fill from global memory, and the loops and index arithmetic around it; the consumer keeps the rest. The
    block grows by a warpgroup. Relies on `pipeline-copies`; a kernel without such a channel, or with a barrier of the
    whole block, is left as it is.
    """

    name = "specialise-warps"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            channels = [o for o in kernel.body.block.ops if isinstance(o, ChannelOp) and o.is_loaded]
            if not channels:
                continue
            if kernel.threads is None:
                raise error_at(kernel, "specialise-warps: the kernel has no threads; run choose-mma first")
            groups = kernel.threads.value.data // WARPGROUP
            if any(isinstance(o, SyncOp | RolesOp) for o in kernel.walk()) or groups not in REGISTERS:
                remark(kernel, self.name, "left as it is: it has block barriers, roles, or a block of another size")
                continue
            self._split(kernel, channels, groups)

    def _split(self, kernel: KernelOp, channels: list[ChannelOp], groups: int) -> None:
        block = kernel.body.block
        # What both roles need stays in front: channels and the grid's coordinates.
        body = [o for o in block.ops if not isinstance(o, ChannelOp)]
        rings = {c.res for c in channels}
        filled = [o for o in kernel.walk() if isinstance(o, AcquireOp | PublishOp) and o.channel in rings]
        slots = {b for o in filled if isinstance(o, AcquireOp) for b in o.buffers}
        produces = {*filled, *(o for o in kernel.walk() if isinstance(o, CopyOp) and o.target in slots)}
        sides: list[Region] = []
        for producer in (False, True):
            copy: dict[SSAValue, SSAValue] = {}
            clones: dict[Operation, Operation] = {}
            side = Block()
            for each in body:
                made = each.clone(copy)
                side.add_op(made)
                clones.update(zip(each.walk(), made.walk(), strict=True))
            for old, new in clones.items():
                new.location = old.location
            keep = {clones[o] for o in produces} if producer else set[Operation]()
            drop = set[Operation]() if producer else {clones[o] for o in produces}
            _slice(side, keep, drop, producer)
            sides.append(Region(side))
        for each in reversed(body):
            each.detach()
            each.erase(safe_erase=False)
        compute, load = REGISTERS[groups]
        roles = [Role("consumer", 0, groups, compute), Role("producer", groups, groups + 1, load)]
        made = RolesOp(roles, sides)
        made.location = kernel.location
        block.add_op(made)
        kernel.properties["threads"] = i64_attr((groups + 1) * WARPGROUP)
        who = "1 warpgroup computes" if groups == 1 else f"{groups} warpgroups compute"
        remark(kernel, self.name, f"{who}, one fills slots")


def _slice(block: Block, keep: set[Operation], drop: set[Operation], producer: bool) -> None:
    """Erase, last first, what one side does not need.

    The producer needs `keep` and what that uses; the consumer all but `drop` and what is then unused.
    """
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                if isinstance(op, ForOp):
                    _slice(inner, keep, drop, producer)
        used = any(result.uses.get_length() for result in op.results) if op.results else False
        if isinstance(op, ForOp):
            needed = op.body.block.first_op is not None
        elif producer:
            needed = op in keep or used
        else:
            needed = op not in drop and (used or not op.results or isinstance(op, ReceiveOp | ReleaseOp | AcquireOp))
        if not needed:
            op.detach()
            op.erase(safe_erase=False)
