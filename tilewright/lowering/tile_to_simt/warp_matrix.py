"""`tile.mma` on matrix instructions of warps: `ldmatrix` from swizzled shared memory, `mma.sync` on its fragments.

A warp has 16 x 16 blocks of its rows of the left operand and 16 x 16 blocks of its columns of the right one in
registers, a step of 16 along the sum at a time, and multiplies each with each. `ldmatrix x4` brings a block as four
8 x 8 matrices; rows of shared memory are 8 elements along whichever dim the operand is contiguous, and `trans` turns
them where that is not the sum. Of f32, read as tf32, a step is 8 along the sum, and a matrix 8 x 4; `ldmatrix` turns
none of them, so operands that are not contiguous along the sum are loaded element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, RegsLoadOp, RegsStoreOp
from tilewright.dialects.simt.types import regs_type
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.types import AnyDistribution, BufType, Factor, buffer_type, merged
from tilewright.lowering.tile_to_simt.builder import I32, Builder
from tilewright.lowering.tile_to_simt.channels import WARP, panel_of
from tilewright.lowering.tile_to_simt.elements import thread_digit
from tilewright.lowering.tile_to_simt.state import Kernel, Slot, distribution, element_bytes, element_type
from tilewright.passes.choose_mma import STEP, has_instruction, product_dims
from tilewright.passes.core import error_at

BLOCK = 16
"""Rows or columns of a block of an operand."""
MATRIX = 8
"""Rows of a matrix of `ldmatrix`."""
ROW_BYTES = 16
"""Bytes of each of these rows."""
SHAPES = {2: "m16n8k16", 4: "m16n8k8"}
"""By bytes of an element."""


def lower_mma_sync(kernel: Kernel, op: MmaOp) -> None:
    """Loads and products of one tile, the sum outermost."""
    builder, dims = kernel.builder, product_dims(op)
    lhs, rhs = kernel.slots.get(op.lhs), kernel.slots.get(op.rhs)
    if dims is None or lhs is None or rhs is None:
        raise error_at(op, "tile.mma: inst mma.sync takes its operands from swizzled shared memory; run choose-mma")
    left, right = buffer_type(op.lhs), buffer_type(op.rhs)
    if not has_instruction(left.element, op.precision):
        raise error_at(op, f"tile.mma: inst mma.sync takes bf16, f16 or with precision tf32 f32, got {left.element}")
    m, n, k = dims
    rows, columns, depth = (op.sizes[d] or 0 for d in (m, n, k))
    acc_dims = op.operand_dims[2]
    spread = distribution(op, op.acc.type)
    down = _blocks(builder, op, spread[acc_dims.index(m)], rows, (Factor(8, 4),))
    across = _blocks(builder, op, spread[acc_dims.index(n)], columns, (Factor(2, 0), Factor(4, 1)))
    element = element_type(left.element)
    step_depth = STEP // element_bytes(left.element)
    fragment = BLOCK * step_depth // WARP
    a = builder.add(RegsAllocOp(regs_type([down.count, fragment], element))).results[0]
    b = builder.add(RegsAllocOp(regs_type([across.count, fragment], element))).results[0]
    a.name_hint, b.name_hint = "a", "b"
    zero = builder.constant(0, I32)

    def times(value: SSAValue, by: int) -> SSAValue:
        return builder.mul_int(value, builder.constant(by, I32))

    with builder.unroll(depth // step_depth) as s:
        step = times(s, step_depth)
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
            b_place = [j, times(half, fragment // 2)]
            shape = SHAPES[element_bytes(left.element)]
            _multiply(kernel, shape, (a, [i, zero]), (b, b_place), kernel.values[op.acc], c, axes)


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
    """A block of an operand, from place `own` in its rows or columns and `k` in the sum, into `regs[block]`.

    The four matrices come in the order in which `mma.sync` wants the registers: of the left operand along its rows
    first, of the right one (two fragments of 8 columns) along the sum first.
    """
    builder = kernel.builder
    layout, span, rows, panels = panel_of(type_)
    lane = builder.mod_unsigned(builder.tid(), builder.constant(WARP, I32))

    def bit(stride: int, weight: int) -> SSAValue:
        digit = builder.mod_unsigned(
            builder.div_unsigned(lane, builder.constant(stride, I32)), builder.constant(2, I32)
        )
        return builder.mul_int(digit, builder.constant(weight, I32))

    along_k = layout.along.data == k_dim
    size = element_bytes(type_.element)
    if not along_k and size != 2:
        _load_elements(kernel, slot, type_, own, k, regs, block, k_first=k_first)
        return
    # Lanes 8 q to 8 q + 7 name the rows of matrix q.
    row = builder.mod_unsigned(lane, builder.constant(MATRIX, I32))
    chunk = ROW_BYTES // size
    own_bit, k_bit = (2 * MATRIX, MATRIX) if k_first else (MATRIX, 2 * MATRIX)
    own_half, k_half = bit(own_bit, MATRIX), bit(k_bit, chunk)
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


def _load_elements(
    kernel: Kernel,
    slot: Slot,
    type_: BufType,
    own: SSAValue,
    k: SSAValue,
    regs: SSAValue,
    block: SSAValue,
    *,
    k_first: bool,
) -> None:
    """The same for elements of 32 bits that are contiguous along the operand's own dim: lane 4 g + t has places g and
    g + 8 of it, at t and t + 4 along the sum."""
    builder = kernel.builder
    _, span, rows, _ = panel_of(type_)
    lane = builder.mod_unsigned(builder.tid(), builder.constant(WARP, I32))
    group = builder.div_unsigned(lane, builder.constant(4, I32))
    inside = builder.mod_unsigned(lane, builder.constant(4, I32))

    def times(value: SSAValue, by: int) -> SSAValue:
        return builder.mul_int(value, builder.constant(by, I32))

    with builder.unroll(2) as x, builder.unroll(2) as y:
        # Registers run along the sum first in the right operand, along its rows first in the left one.
        own_half, k_half = (x, y) if k_first else (y, x)
        place = builder.add_int(builder.add_int(own, times(own_half, MATRIX)), group)
        line = builder.add_int(builder.add_int(k, times(k_half, 4)), inside)
        panel = builder.div_unsigned(place, builder.constant(span, I32))
        column = builder.mod_unsigned(place, builder.constant(span, I32))
        at = builder.add_int(times(panel, rows * span), builder.add_int(times(line, span), column))
        number = builder.add_int(times(x, 2), y)
        builder.add(LoadOp(slot.array, builder.add_int(slot.first, at), regs, [block, number]))


def _multiply(
    kernel: Kernel,
    shape: str,
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
    builder.add(MmaSyncOp(shape, *a, *b, c, [builder.constant(0, I32)]))
    each(load=False)
