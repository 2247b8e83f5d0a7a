"""The pass `promote-to-shared`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tilewright.dialects.tile.compute import MapOp, MmaOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, KernelOp
from tilewright.dialects.tile.types import buf_type
from tilewright.passes.core import TilewrightPass
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import (
    IterationDims,
    KernelScopes,
    buf,
    contiguous_dim,
    copies,
    gathers,
    iteration_dims,
    kernels_of,
    space,
)


@dataclass(frozen=True)
class PromoteToSharedPass(TilewrightPass):
    """Stages in shared memory what threads share or must turn: global to fragment becomes global to shared to fragment.

    Two reasons: the fragment is an operand of `tile.mma`, so that many threads read each element; or the tensor is
    contiguous along another dim than the kernel's result (a transpose), so that a direct read would not be coalesced.
    An operand of `tile.mma` that the kernel computes along the sum goes from the fragment that holds it to shared
    memory too, so that each element is computed by one thread. Relies on free tile IR; barriers come later. A kernel
    that its author mapped to threads stays as it is.
    """

    name = "promote-to-shared"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            if kernel.mapped is not None:
                continue
            for made in [o for o in kernel.walk() if isinstance(o, MapOp)]:
                _stage_made(made)
            dims, scopes = iteration_dims(kernel), KernelScopes(kernel)
            fast = result_fast_dim(kernel, dims, scopes)
            for gather in list(gathers(kernel)):
                if space(gather.target) != "fragment" or not is_mma_operand(gather.target):
                    continue
                if gather.values:
                    remark(gather, self.name, "left in registers: where it reads is itself spread over threads")
                else:
                    _stage_gather(gather)
            for copy in list(copies(kernel)):
                if copy.spaces != ("global", "fragment"):
                    continue
                if is_mma_operand(copy.target):
                    _stage(copy, "every element is read by many threads")
                elif is_turned(copy, dims, fast, scopes):
                    _stage(copy, "contiguous along another dim than the result")


def is_mma_operand(fragment: SSAValue) -> bool:
    """Whether a fragment is multiplied."""
    return any(isinstance(use.operation, MmaOp) and use.index < 2 for use in fragment.uses)


def result_fast_dim(kernel: KernelOp, dims: IterationDims, scopes: KernelScopes) -> int | None:
    """The iteration dim along which the first stored tile is contiguous in global memory; behind a product that of a
    whole tile, not of what a reduction leaves."""
    least = max((buf(o.acc).count for o in kernel.walk() if isinstance(o, MmaOp)), default=0)
    for copy in copies(kernel):
        if copy.spaces == ("fragment", "global") and copy.tile_type.count >= least:
            d = contiguous_dim(copy, scopes)
            if d is not None:
                return dims.dims[copy.source][d]
    return None


def is_turned(copy: CopyOp, dims: IterationDims, fast: int | None, scopes: KernelScopes) -> bool:
    """Whether a loaded tile moves along the result's fast dim but is contiguous along another one."""
    own, d = dims.dims[copy.target], contiguous_dim(copy, scopes)
    if d is None or fast is None or own[d] == fast or fast not in own:
        return False
    sizes = buf(copy.target).sizes
    return sizes[d] > 1 and sizes[own.index(fast)] > 1


def _stage_made(made: MapOp) -> None:
    """Puts an operand that a `tile.map` computes along the sum into shared memory between the two."""
    for fragment in made.outputs:
        users = {use.operation for use in fragment.uses}
        products = [u for u in users if isinstance(u, MmaOp) and u.parent is made.parent]
        if len(products) != 1 or space(fragment) != "fragment":
            continue
        (product,) = products
        number = 0 if product.lhs is fragment else 1
        along = set(product.operand_dims[number]) & set(product.reduced_dims)
        if not along or product.inst is not None or product.operands[1 - number] is fragment:
            continue
        type_, hint = buf(fragment), fragment.name_hint
        staged = AllocOp(buf_type(type_.sizes, type_.element, "shared"))
        staged.res.name_hint = f"s_{hint}" if hint else "s"
        read = AllocOp(buf_type(type_.sizes, type_.element, "fragment"))
        read.res.name_hint = hint
        down, up = CopyOp(fragment, [], staged.res, []), CopyOp(staged.res, [], read.res, [])
        assert product.parent is not None
        for new in (staged, down, read, up):
            new.location = made.location
            product.parent.insert_op_before(new, product)
        product.operands[number] = read.res
        what = f"staged a computed tile of {list(type_.sizes)} in shared memory: every element is read by many threads"
        remark(made, PromoteToSharedPass.name, what)


def _stage_gather(gather: GatherOp) -> None:
    """Gathers into shared memory, then copies what each thread needs into its registers."""
    block, type_ = gather.parent, buf(gather.target)
    assert block is not None
    staged = AllocOp(buf_type(type_.sizes, type_.element, "shared"))
    hint = gather.target.name_hint
    staged.res.name_hint = f"s_{hint}" if hint else "s"
    down = GatherOp(
        gather.source,
        gather.exprs,
        staged.res,
        bounds=gather.bound_words,
        offsets=list(gather.offsets),
        valid=gather.valid_limits,
        other=gather.other,
    )
    up = CopyOp(staged.res, [], gather.target, [])
    for new in (staged, down, up):
        new.location = gather.location
    block.insert_ops_before([staged, down, up], gather)
    what = f"staged a tile of {list(type_.sizes)} in shared memory: every element is read by many threads"
    remark(gather, PromoteToSharedPass.name, what)
    gather.detach()
    gather.erase()


def _stage(copy: CopyOp, why: str) -> None:
    block = copy.parent
    assert block is not None
    assert space(copy.target) == "fragment"
    type_ = buf(copy.target)
    staged = AllocOp(buf_type(type_.sizes, type_.element, "shared"))
    hint = copy.target.name_hint
    staged.res.name_hint = f"s_{hint}" if hint else "s"
    down = CopyOp(
        copy.source,
        list(copy.source_offsets),
        staged.res,
        [],
        bounds=copy.bound_words,
        other=copy.other,
    )
    up = CopyOp(staged.res, [], copy.target, [])
    for new in (staged, down, up):
        new.location = copy.location
    block.insert_ops_before([staged, down, up], copy)
    remark(copy, PromoteToSharedPass.name, f"staged a tile of {list(type_.sizes)} in shared memory: {why}")
    copy.detach()
    copy.erase()
