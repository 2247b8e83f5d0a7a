"""The pass `stage-results`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, IntAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.sym import ApplyOp, Expr
from tilewright.dialects.tile.blocks import SliceOp
from tilewright.dialects.tile.channels import (
    AcquireOp,
    ChannelOp,
    PublishOp,
    ReceiveOp,
    ReleaseOp,
    channel_type,
)
from tilewright.dialects.tile.compute import MapOp, MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp
from tilewright.dialects.tile.types import BufType, SwizzledLayout, buf_type
from tilewright.passes.choose_mma import SWIZZLE, WARP_TILE, mapped_dim, product_dims, unmapped, warp_grid
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.element_size import bytes_of
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import IterationDims, KernelScopes, buf, iteration_dims, kernels_of

STAGES = 2
"""Slots that results are staged through: one is written while the other is being stored."""

EARLY_REGISTERS = 128
"""Registers of a thread for accumulators and for what is loaded before them: with 128 accumulators, another 32 elements
of a bias made ptxas spill."""
COLUMN_LANES = 4
"""Lanes that the columns of accumulators are spread over (PTX ISA, wgmma)."""


@dataclass(frozen=True)
class StageResultsPass(TilewrightPass):
    """Cuts what follows a product on matrix instructions into panels of columns, stored through shared memory.

    The ops after the loop of the product (loads of biases and the like, maps, the stores) move into a loop over panels
    of `columns`, unrolled, on slices of the accumulators: a thread needs the registers of one panel at a time. What has
    columns alone (a bias) is loaded before the product where registers suffice. A store
    of 16-bit results goes through a channel of two slots, written by matrix stores, from which tensor maps store it,
    or where they cannot the threads, side by side. What follows a product of warps is cut into panels of rows, 16 of
    each warp, and stored from registers. A reduction of what is cut combines panel by panel into a fragment that is
    filled before the loop and used after it. Relies on `choose-mma`.
    """

    name = "stage-results"
    level = "tile"
    columns: int = 64

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.columns < 8 or self.columns & (self.columns - 1):
            raise error_at(op, f"stage-results: expected columns to be a power of two from 8, got {self.columns}")
        for kernel in kernels_of(op):
            products = [o for o in kernel.walk() if isinstance(o, MmaOp)]
            if len(products) == 1 and products[0].inst is not None and products[0].inst.data != "fma":
                self._cut(kernel, products[0])

    def _cut(self, kernel: KernelOp, mma: MmaOp) -> None:
        loop: Operation = mma
        while loop.parent_op() is not None and not isinstance(loop.parent_op(), KernelOp):
            outer = loop.parent_op()
            assert outer is not None
            loop = outer
        tail: list[Operation] = []
        following = loop.next_op
        while following is not None:
            tail.append(following)
            following = following.next_op
        dims, scopes, own = iteration_dims(kernel), KernelScopes(kernel), product_dims(mma)
        assert own is not None
        by_warps = mma.inst is not None and mma.inst.data == "mma.sync"
        axis = mma.operand_dims[2].index(own[0] if by_warps else own[1])
        columns = dims.dims[mma.acc][axis]
        assert columns is not None  # there are several
        size = buf(mma.acc).sizes[axis]
        width = warp_grid(mma.sizes[own[0]] or 0, mma.sizes[own[1]] or 0)[0] * WARP_TILE if by_warps else self.columns
        why = self._refusal(tail, size, width)
        if why is not None:
            remark(mma, self.name, f"the epilogue is left whole: {why}")
            return
        if not by_warps:
            tail = self._load_early(tail, loop, dims, columns)
        _Cut(kernel, mma, tail, dims, scopes, columns, min(width, size), "rows" if by_warps else "columns").run()

    def _load_early(self, tail: list[Operation], loop: Operation, dims: IterationDims, columns: int) -> list[Operation]:
        """Move loads of what has columns alone (a bias) in front of the product, which hides how long they take, as far
        as registers suffice; the rest of the tail."""
        block, left = loop.parent, list(tail)
        (product,) = (op for op in loop.walk() if isinstance(op, MmaOp))
        kernel = loop.parent_op()
        assert isinstance(kernel, KernelOp)
        assert block is not None
        assert kernel.threads is not None
        room = EARLY_REGISTERS - buf(product.acc).count // kernel.threads.value.data
        for copy in [op for op in tail if isinstance(op, CopyOp) and op.spaces == ("global", "fragment")]:
            fragment = copy.target
            wide = [d for d, size in zip(dims.dims[fragment], buf(fragment).sizes, strict=True) if size > 1]
            written = [use.operation for use in fragment.uses if use.operation in tail and use.operation is not copy]
            if wide != [columns] or any(isinstance(op, CopyOp | FillOp) for op in written):
                continue
            held = buf(fragment).count // COLUMN_LANES
            if held > room:
                continue
            needed = [v.owner for v in copy.source_offsets if isinstance(v.owner, ApplyOp) and v.owner in left]
            if any(isinstance(v.owner, Operation) and v.owner in left for op in needed for v in op.operands):
                continue
            assert isinstance(fragment.owner, AllocOp)
            moved = [*dict.fromkeys(needed), fragment.owner, copy]
            room -= held
            for op in moved:
                left.remove(op)
                op.detach()
            block.insert_ops_before(moved, loop)
            remark(copy, self.name, "loaded before the product, whose steps hide how long it takes")
        return left

    def _refusal(self, tail: list[Operation], size: int, width: int) -> str | None:
        if size % min(width, size):
            return f"{size} columns are no multiple of {width}"
        for op in tail:
            if not isinstance(op, AllocOp | ApplyOp | CopyOp | FillOp | MapOp | ReduceOp):
                return f"it has {op.name}"
            buffers = [op.res] if isinstance(op, AllocOp) else list(op.operands) if isinstance(op, CopyOp) else []
            if any(isinstance(v.type, BufType) and v.type.space.data == "shared" for v in buffers):
                return "it has shared buffers"
            if isinstance(op, MapOp) and op.valid_limits:
                return "it has a map with limits"
        return None


@dataclass
class _Cut:
    """The loop over panels under way."""

    kernel: KernelOp
    mma: MmaOp
    tail: list[Operation]
    dims: IterationDims
    scopes: KernelScopes
    columns: int
    """The iteration dim that is cut: that of the columns, or of the rows."""
    width: int
    what: str

    def run(self) -> None:
        body = Block(arg_types=[IndexType()])
        panel = body.args[0]
        panel.name_hint = "panel"
        values: dict[SSAValue, SSAValue] = {}
        moved: list[Operation] = []
        block = self.kernel.body.block
        stores: list[CopyOp] = []
        around, after = self._around()
        for op in after:
            op.detach()
        for op in self.tail:
            if isinstance(op, ApplyOp) or op in around or op in after:
                continue  # index arithmetic stays in front of the loop
            moved.append(op)
            if isinstance(op, AllocOp):
                made: Operation = AllocOp(self._narrow(op))
                made.results[0].name_hint = op.res.name_hint
                values[op.res] = made.results[0]
                body.add_op(made)
            elif isinstance(op, CopyOp):
                self._copy(op, body, panel, values, stores)
            else:
                for operand in op.operands:
                    self._slice(operand, body, panel, values)
                made = op.clone(dict(values))
                if isinstance(op, ReduceOp):
                    self._limit(op, made, body, panel)
                body.add_op(made)
        size = self._size(self.mma.acc)
        loop = ForOp(0, size, self.width, Region(body), unroll=size // self.width)
        for new in loop.walk():
            new.location = self.mma.location
        block.add_op(loop)
        block.add_ops(after)
        for op in reversed(moved):
            op.detach()
            op.erase(safe_erase=False)
        remark(loop, StageResultsPass.name, f"{size // self.width} panels of {self.width} {self.what}")
        for store in stores:
            self._stage(store)

    def _around(self) -> tuple[list[Operation], list[Operation]]:
        """What stands in front of the loop, and behind it: the fragments into which reductions combine what is cut, and
        all that needs these."""
        into = {op.target for op in self.tail if isinstance(op, ReduceOp) and self._reduces(op)}
        before: list[Operation] = []
        after: list[Operation] = []
        late = set(into)
        for op in self.tail:
            made = op.res if isinstance(op, AllocOp) else op.target if isinstance(op, FillOp | ReduceOp) else None
            if made in into:
                if not isinstance(op, ReduceOp):
                    before.append(op)
            elif isinstance(op, CopyOp | MapOp | ReduceOp) and any(v in late for v in op.operands):
                after.append(op)
                late.update(op.outputs if isinstance(op, MapOp) else [op.target])
        # What only these need comes with them: buffers, and what is loaded for them.
        outside = set[Operation](after)
        for op in reversed([o for o in self.tail if o not in before and o not in outside]):
            if isinstance(op, AllocOp | FillOp | CopyOp):
                made = op.res if isinstance(op, AllocOp) else op.target
                users = {use.operation for use in made.uses if use.operation is not op}
                held = not isinstance(made.type, BufType) or made.type.space.data != "fragment"
                if not held and users and users <= outside:
                    outside.add(op)
        return before, [op for op in self.tail if op in outside]

    def _reduces(self, op: ReduceOp) -> bool:
        """Whether the dim that is cut is one of those that go."""
        own = zip(self.dims.dims[op.source], op.source_map, strict=True)
        return any(kind == self.columns and d in op.reduced_dims for kind, d in own)

    def _limit(self, op: ReduceOp, made: Operation, body: Block, panel: SSAValue) -> None:
        """Of the limit along the dim that is cut, what is left at the panel."""
        own = dict(zip(op.source_map, self.dims.dims[op.source], strict=True))
        first = 2
        for number, d in enumerate(op.valid_limits):
            if own[d] == self.columns:
                left = ApplyOp(Expr.symbol("n") - Expr.symbol("p"), {"n": op.limits[number], "p": panel})
                body.add_op(left)
                made.operands[first + number] = left.result

    def _axes(self, value: SSAValue) -> list[int]:
        return [axis for axis, d in enumerate(self.dims.dims.get(value, ())) if d == self.columns]

    def _size(self, value: SSAValue) -> int:
        return buf(value).sizes[self._axes(value)[0]]

    def _narrow(self, alloc: AllocOp) -> BufType:
        axes = self._axes(alloc.res)
        sizes = [self.width if axis in axes else n for axis, n in enumerate(alloc.type.sizes)]
        return buf_type(sizes, alloc.type.element, "fragment")

    def _slice(self, value: SSAValue, body: Block, panel: SSAValue, values: dict[SSAValue, SSAValue]) -> None:
        """The panel of a fragment that was made before the epilogue: the accumulators."""
        if value in values or value not in self.dims.dims:
            return
        axes = self._axes(value)
        if not axes:
            return
        type_ = buf(value)
        sizes = [self.width if axis in axes else n for axis, n in enumerate(type_.sizes)]
        zero = ApplyOp(Expr.const(0), {})
        offsets = [panel if axis in axes else zero.result for axis in range(type_.rank)]
        part = SliceOp(value, offsets, buf_type(sizes, type_.element, "fragment"))
        part.res.name_hint = value.name_hint
        body.add_ops([zero, part])
        values[value] = part.res

    def _copy(
        self, op: CopyOp, body: Block, panel: SSAValue, values: dict[SSAValue, SSAValue], stores: list[CopyOp]
    ) -> None:
        """A copy with global memory, moved on to the panel's columns."""
        stores_result = op.spaces == ("fragment", "global")
        fragment = op.source if stores_result else op.target
        self._slice(fragment, body, panel, values)
        axes = self._axes(fragment)
        offsets = list(op.target_offsets if stores_result else op.source_offsets)
        for axis in axes:
            at = ApplyOp(Expr.symbol("o") + Expr.symbol("p"), {"o": offsets[axis], "p": panel})
            body.add_op(at)
            offsets[axis] = at.result
        inside = values.get(fragment, fragment)
        if stores_result:
            made = CopyOp(inside, [], op.target, offsets, bounds=op.bound_words, other=op.other)
            # Matrix stores put columns of the accumulators along the rows of a panel.
            if axes == [op.tile_type.rank - 1]:
                stores.append(made)
        else:
            made = CopyOp(op.source, offsets, inside, [], bounds=op.bound_words, other=op.other)
        body.add_op(made)

    def _stage(self, store: CopyOp) -> None:
        """Through a slot of shared memory, where a tensor map can store it from there."""
        tile = store.tile_type
        along, scopes = mapped_dim(store, self.scopes), KernelScopes(self.kernel)
        why = unmapped(store, scopes)
        size = bytes_of(tile.element)
        last = tile.rank - 1
        one_matrix = tile.rank >= 2 and tile.sizes[-2] > 1 and tile.count == tile.sizes[-2] * tile.sizes[-1]
        if size != 2 or not one_matrix or tile.sizes[last] * size != SWIZZLE:
            remark(
                store, StageResultsPass.name, f"stored from registers: no panel of {SWIZZLE} bytes of 16-bit elements"
            )
            return
        if why is None and along != last:
            why = "its rows are not contiguous"
        slot = buf_type(tile.sizes, tile.element, "shared", SwizzledLayout(IntAttr(SWIZZLE), IntAttr(last)))
        panels = store.parent_op()
        assert isinstance(panels, ForOp)
        turns = 1 if panels.unroll is None else panels.unroll.value.data
        # Slots are taken by the turn of the unrolled loop, so they must divide it.
        channel = ChannelOp(channel_type(STAGES if turns % STAGES == 0 else 1, [slot]))
        channel.res.name_hint = "staged"
        first = self.kernel.body.block.first_op
        block = store.parent
        assert first is not None
        assert block is not None
        self.kernel.body.block.insert_op_before(channel, first)
        acquire, receive = AcquireOp(channel.res), ReceiveOp(channel.res)
        lag = 1 if channel.type.stages.data > 1 else 0
        fill = CopyOp(store.source, [], acquire.buffers[0], [], via="stmatrix")
        via = "tma" if why is None else None
        drain = CopyOp(receive.buffers[0], [], store.target, store.target_offsets, bounds=store.bound_words, via=via)
        new = [fill, PublishOp(channel.res), receive, drain, ReleaseOp(channel.res, lag)]
        for each in (channel, acquire, *new):
            each.location = store.location
        # The wait for a slot comes before the panel is computed: its barrier would else separate a conversion to 16
        # bits from the store that packs two of them into a register.
        start = block.first_op
        assert start is not None
        block.insert_op_before(acquire, start)
        block.insert_ops_before(new, store)
        store.detach()
        store.erase()
        assert panels.parent is not None
        end = ReleaseOp(channel.res)
        end.location = store.location
        panels.parent.insert_op_after(end, panels)
        how = "by tensor maps" if why is None else f"by the threads: {why}"
        remark(fill, StageResultsPass.name, f"stored through shared memory, {how}")
