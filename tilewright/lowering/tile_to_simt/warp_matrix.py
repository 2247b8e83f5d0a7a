"""`tile.mma` on matrix instructions of warps: `ldmatrix` from swizzled shared memory, `mma.sync` on its fragments.

A warp has 16 x 16 blocks of its rows of the left operand and 16 x 16 blocks of its columns of the right one in
registers, a step of 16 along the sum at a time, and multiplies each with each. `ldmatrix x4` brings a block as four
8 x 8 matrices; rows of shared memory are 8 elements along whichever dim the operand is contiguous, and `trans` turns
them where that is not the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32
from xdsl.ir import SSAValue

from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.memory import RegsAllocOp, RegsLoadOp, RegsStoreOp
from tilewright.dialects.simt.types import regs_type
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.types import AnyDistribution, BufType, Factor, buffer_type, merged
from tilewright.lowering.tile_to_simt.builder import I32, Builder
from tilewright.lowering.tile_to_simt.channels import WARP, panel_of
from tilewright.lowering.tile_to_simt.elements import thread_digit
from tilewright.lowering.tile_to_simt.state import Kernel, Slot, distribution, element_type
from tilewright.passes.choose_mma import product_dims
from tilewright.passes.core import error_at

BLOCK = 16
"""Rows, columns and depth of a block of an operand."""
MATRIX = 8
"""Rows and columns of a matrix of `ldmatrix`."""
FRAGMENT = 8
"""Registers that a lane has of a block."""
SHAPE = "m16n8k16"


def lower_mma_sync(kernel: Kernel, op: MmaOp) -> None:
    """Loads and products of one tile, the sum outermost."""
    builder, dims = kernel.builder, product_dims(op)
    lhs, rhs = kernel.slots.get(op.lhs), kernel.slots.get(op.rhs)
    if dims is None or lhs is None or rhs is None:
        raise error_at(op, "tile.mma: inst mma.sync takes its operands from swizzled shared memory; run choose-mma")
    left, right = buffer_type(op.lhs), buffer_type(op.rhs)
    if not isinstance(left.element, BFloat16Type | Float16Type):
        raise error_at(op, f"tile.mma: inst mma.sync takes bf16 or f16, got {left.element}")
    m, n, k = dims
    rows, columns, depth = (op.sizes[d] or 0 for d in (m, n, k))
    acc_dims = op.operand_dims[2]
    spread = distribution(op, op.acc.type)
    down = _blocks(builder, op, spread[acc_dims.index(m)], rows, (Factor(8, 4),))
    across = _blocks(builder, op, spread[acc_dims.index(n)], columns, (Factor(2, 0), Factor(4, 1)))
    element = element_type(left.element)
    a = builder.add(RegsAllocOp(regs_type([down.count, FRAGMENT], element))).results[0]
    b = builder.add(RegsAllocOp(regs_type([across.count, FRAGMENT], element))).results[0]
    a.name_hint, b.name_hint = "a", "b"
    zero = builder.constant(0, I32)

    def times(value: SSAValue, by: int) -> SSAValue:
        return builder.mul_int(value, builder.constant(by, I32))

    with builder.unroll(depth // BLOCK) as s:
        step = times(s, BLOCK)
        with builder.unroll(down.count) as i:
            place = down.place(builder, i)
            _load(kernel, lhs, left, op.operand_dims[0].index(k), place, step, a, i, k_first=False)
        with builder.unroll(across.count) as j:
            place = across.place(builder, j)
            _load(kernel, rhs, right, op.operand_dims[1].index(k), place, step, b, j, k_first=True)
        with builder.unroll(down.count) as i, builder.unroll(across.count) as j, builder.unroll(2) as half:
            column = builder.add_int(times(j, 4), times(half, 2))
            indices = {m: times(i, 2), n: column}
            c = [indices.get(d, zero) for d in acc_dims]
            axes = acc_dims.index(m), acc_dims.index(n)
            _multiply(kernel, (a, [i, zero]), (b, [j, times(half, 4)]), kernel.values[op.acc], c, axes)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """A warp's blocks of 16 rows or columns: how many, where the first begins, and how far apart they are."""

    count: int
    first: SSAValue
    apart: int

    def place(self, builder: Builder, number: SSAValue) -> SSAValue:
        """Where a block begins."""
        return builder.add_int(self.first, builder.mul_int(number, builder.constant(self.apart, I32)))


def _blocks(builder: Builder, op: MmaOp, spread: AnyDistribution, size: int, lanes: tuple[Factor, ...]) -> _Blocks:
    """The blocks of a warp as the accumulators' layout has them: neighbours, or by turns with those of other warps.

    Digits are those of a fragment over `lanes`, then over a lane's registers, then over warps; where the registers' are
    those of one block, more of them may follow.
    """
    digits = spread.factors(size)
    inside, rest = digits[: len(lanes)], digits[len(lanes) :]
    warps = next((f for f in rest if f.is_thread), Factor(1, 0))
    held = prod(f.count for f in rest if not f.is_thread)
    alone = BLOCK // prod(f.count for f in lanes)
    neighbours = (Factor(held, 0), warps)
    by_turns = (Factor(alone, 0), warps, Factor(held // alone, 0))
    if inside != lanes or rest not in (merged(neighbours), merged(by_turns)) or held % alone or 0 < warps.stride < WARP:
        raise error_at(op, f"tile.mma: inst mma.sync: accumulators lie otherwise than its fragments: {op.acc.type}")
    count = held // alone
    in_turn = rest == merged(by_turns)
    digit = thread_digit(builder, warps) if warps.is_thread else builder.constant(0, I32)
    first = builder.mul_int(digit, builder.constant(BLOCK if in_turn else BLOCK * count, I32))
    return _Blocks(count, first, BLOCK * warps.count if in_turn else BLOCK)


def _load(
    kernel: Kernel,
    slot: Slot,
    type_: BufType,
    k_dim: int,
    own: SSAValue,
    k: SSAValue,
    regs: SSAValue,
    block: SSAValue,
    *,
    k_first: bool,
) -> None:
    """A 16 x 16 block of an operand, from place `own` in its rows or columns and `k` in the sum, into `regs[block]`.

    The four matrices come in the order in which `mma.sync` wants the registers: of the left operand along its rows
    first, of the right one (two fragments of 8 columns) along the sum first.
    """
    builder = kernel.builder
    layout, span, rows, panels = panel_of(type_)
    lane = builder.mod_unsigned(builder.tid(), builder.constant(WARP, I32))

    def bit(stride: int) -> SSAValue:
        digit = builder.mod_unsigned(
            builder.div_unsigned(lane, builder.constant(stride, I32)), builder.constant(2, I32)
        )
        return builder.mul_int(digit, builder.constant(MATRIX, I32))

    # Lanes 8 q to 8 q + 7 name the rows of matrix q.
    row = builder.mod_unsigned(lane, builder.constant(MATRIX, I32))
    own_half, k_half = (bit(2 * MATRIX), bit(MATRIX)) if k_first else (bit(MATRIX), bit(2 * MATRIX))
    along_k = layout.along.data == k_dim
    along, across = (k_half, own_half) if along_k else (own_half, k_half)
    along_start, across_start = (k, own) if along_k else (own, k)
    line = builder.add_int(builder.add_int(across, row), across_start)
    place = builder.add_int(slot.first, builder.mul_int(line, builder.constant(span, I32)))
    if panels == 1:
        place = builder.add_int(place, builder.add_int(along, along_start))
    else:
        panel = builder.div_unsigned(along_start, builder.constant(span, I32))
        inner = builder.mod_unsigned(along_start, builder.constant(span, I32))
        place = builder.add_int(place, builder.mul_int(panel, builder.constant(rows * span, I32)))
        place = builder.add_int(place, builder.add_int(along, inner))
    builder.add(LdmatrixOp(slot.array, place, regs, [block, builder.constant(0, I32)], 4, not along_k))


def _multiply(
    kernel: Kernel,
    a: tuple[SSAValue, list[SSAValue]],
    b: tuple[SSAValue, list[SSAValue]],
    acc: SSAValue,
    at: list[SSAValue],
    axes: tuple[int, int],
) -> None:
    """One instruction; its accumulators are two rows of two neighbours in the array of the tile's."""
    builder = kernel.builder
    c = builder.add(RegsAllocOp(regs_type([4], f32))).results[0]

    def each(load: bool) -> None:
        with builder.unroll(2) as x, builder.unroll(2) as e:
            place = list(at)
            place[axes[0]] = builder.add_int(place[axes[0]], x)
            place[axes[1]] = builder.add_int(place[axes[1]], e)
            number = [builder.add_int(builder.mul_int(x, builder.constant(2, I32)), e)]
            source, target = ((acc, place), (c, number)) if load else ((c, number), (acc, place))
            value = builder.add(RegsLoadOp(*source)).results[0]
            builder.add(RegsStoreOp(value, *target))

    each(load=True)
    builder.add(MmaSyncOp(SHAPE, *a, *b, c, [builder.constant(0, I32)]))
    each(load=False)
