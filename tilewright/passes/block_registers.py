"""The pass `block-registers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.sym import ApplyOp, Expr
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, ForOp
from tilewright.dialects.tile.types import buf_type
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.remarks import remark
from tilewright.passes.thread_layout import MAX_THREADS
from tilewright.passes.tile_analysis import buf, kernels_of

MOST_PRODUCTS = 1024
"""Multiply-adds of a thread that are unrolled, at most, for a block of the usual size."""


@dataclass(frozen=True)
class BlockRegistersPass(TilewrightPass):
    """Splits `tile.mma` along its last summed dim: a thread holds a slice of each operand at a time, not all of it.

    The copies that fill the operands and the mma move into `tile.for %kk = 0 to size step depth unroll n`, on fragments
    of `depth` elements along the summed dim: what a thread keeps of them are a few registers, reused for every
    accumulator it has. Relies on each operand being filled by one copy in the mma's block and read by nothing else,
    from a buffer that nothing writes in between; other multiplications are left as they are, and kernels that
    their author mapped to threads.
    """

    name = "block-registers"
    level = "tile"
    depth: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.depth < 1 or self.depth & (self.depth - 1):
            raise error_at(op, f"block-registers: expected a depth that is a power of two, got {self.depth}")
        for kernel in kernels_of(op):
            for mma in [o for o in kernel.walk() if isinstance(o, MmaOp)] if kernel.mapped is None else ():
                self._split(mma)

    def _split(self, mma: MmaOp) -> None:
        if mma.inst is not None and mma.inst.data != "fma":
            return
        fills = [_only_fill(value, mma) for value in (mma.lhs, mma.rhs)]
        if fills[0] is None or fills[1] is None or mma.lhs is mma.rhs or not mma.reduced_dims:
            remark(mma, self.name, "left whole: an operand is not filled by one copy of its own that may move")
            return
        summed = mma.reduced_dims[-1]
        size = mma.sizes[summed]
        assert size is not None
        if size <= self.depth:
            return
        trips = size // self.depth
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = "kk"
        left, right, result = mma.operand_dims
        lhs, rhs = self._slice(fills[0], left, summed, body), self._slice(fills[1], right, summed, body)
        part = MmaOp(mma.iteration.value.data, (lhs, left), (rhs, right), (mma.acc, result))
        part.precision = mma.precision
        body.add_op(part)
        # Beyond some thousand multiply-adds in a row a compiler takes minutes, for no gain.
        products = buf(mma.acc).count * self.depth // MAX_THREADS
        unroll = trips
        while unroll > 1 and unroll % 2 == 0 and unroll * products > MOST_PRODUCTS:
            unroll //= 2
        loop = ForOp(0, size, self.depth, Region(body), unroll=unroll)
        block = mma.parent
        assert block is not None
        for new in loop.walk():
            new.location = mma.location
        block.insert_op_before(loop, mma)
        stale: list[Operation] = [mma, *(f for f in fills if f is not None)]
        stale += [f.target.owner for f in fills if f is not None and isinstance(f.target.owner, AllocOp)]
        for old in stale:
            old.detach()
            old.erase()
        remark(loop, self.name, f"{trips} steps of depth {self.depth}")

    def _slice(self, fill: CopyOp, own: Sequence[int], summed: int, body: Block) -> SSAValue:
        """Loads the slice at the loop variable of what `fill` loaded whole."""
        type_ = buf(fill.target)
        sizes = [self.depth if d == summed else size for d, size in zip(own, type_.sizes, strict=True)]
        alloc = AllocOp(buf_type(sizes, type_.element, "fragment"))
        alloc.res.name_hint = fill.target.name_hint
        offsets: list[SSAValue] = []
        new: list[Operation] = []
        for axis, d in enumerate(own):
            outer = fill.source_offsets[axis] if fill.source_offsets else None
            if d != summed and outer is not None:
                offsets.append(outer)
                continue
            if d == summed and outer is None:
                offsets.append(body.args[0])
                continue
            e = Expr.const(0) if outer is None else Expr.symbol("k") + Expr.symbol("kk")
            moved = ApplyOp(e, {} if outer is None else {"k": outer, "kk": body.args[0]})
            new.append(moved)
            offsets.append(moved.result)
        copy = CopyOp(fill.source, offsets, alloc.res, [], bounds=fill.bound_words, other=fill.other)
        body.add_ops([alloc, *new, copy])
        return alloc.res


def _only_fill(fragment: SSAValue, mma: MmaOp) -> CopyOp | None:
    """The copy that fills an operand, when that and the multiplication are all that touch it, in one block."""
    users = {use.operation for use in fragment.uses}
    fill = [u for u in users if isinstance(u, CopyOp) and u.target is fragment]
    if len(users) != 2 or len(fill) != 1 or mma not in users:
        return None
    alloc = fragment.owner
    together = fill[0].parent is mma.parent and isinstance(alloc, AllocOp) and alloc.parent is mma.parent
    return fill[0] if together and not _is_overwritten(fill[0], mma) else None


def _is_overwritten(fill: CopyOp, mma: MmaOp) -> bool:
    """Whether something between a copy and the multiplication after it, in one block, writes what the copy reads."""
    op = fill.next_op
    while op is not None and op is not mma:
        if any(isinstance(o, CopyOp | GatherOp) and o.target is fill.source for o in op.walk()):
            return True
        op = op.next_op
    return op is None
