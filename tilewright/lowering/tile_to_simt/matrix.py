"""`tile.mma` on matrix instructions of sm_90a: descriptors of swizzled slots, one a 64-row block and step; or a left
operand of f32 that is not contiguous along the sum, which is loaded into registers first."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp
from tilewright.dialects.simt.types import regs_type
from tilewright.dialects.simt.wgmma import LEFT_REGISTERS, Shape, WgmmaCommitOp, WgmmaFenceOp, WgmmaOp, WgmmaRegsOp
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.types import BufType, Factor, buffer_type
from tilewright.lowering.tile_to_simt.builder import I32
from tilewright.lowering.tile_to_simt.channels import panel_of
from tilewright.lowering.tile_to_simt.elements import thread_place
from tilewright.lowering.tile_to_simt.state import Kernel, Slot, distribution, element_bytes
from tilewright.passes.choose_mma import has_instruction, left_in_registers, product_dims
from tilewright.passes.core import error_at

ROWS = 64
LEADING_UNUSED = 16
"""The leading offset of an operand that is contiguous along k, which the hardware ignores."""


def lower_wgmma(kernel: Kernel, op: MmaOp) -> None:
    """Start the instructions of one turn as a group; `tile.release` waits for them."""
    builder, dims = kernel.builder, product_dims(op)
    lhs, rhs = kernel.slots.get(op.lhs), kernel.slots.get(op.rhs)
    assert lhs is not None  # `check_scheduled` has looked
    assert rhs is not None
    if dims is None:
        raise error_at(op, "tile.mma: inst wgmma adds to one dim of rows, then one of columns, over one summed dim")
    left, right = buffer_type(op.lhs), buffer_type(op.rhs)
    if not has_instruction(left.element, op.precision):
        raise error_at(op, f"tile.mma: inst wgmma takes bf16, f16 or with precision tf32 f32, got {left.element}")
    if op.acc in kernel.register_offsets:
        raise error_at(op, "tile.mma: inst wgmma adds to whole accumulators, got a part of a fragment")
    m, n, k = dims
    rows, columns, depth = (op.sizes[d] or 0 for d in (m, n, k))
    groups = builder.threads // WARPGROUP
    step = 32 // element_bytes(left.element)
    acc = kernel.values[op.acc]
    if acc not in kernel.accumulators:
        kernel.accumulators.append(acc)
    if left_in_registers(op):
        _lower_from_registers(kernel, op, lhs, rhs, (m, n, k), step)
        return
    zero = builder.constant(0, I32)
    group = zero if groups == 1 else builder.div_unsigned(builder.tid(), builder.constant(WARPGROUP, I32))
    left_k, right_k = op.operand_dims[0].index(k), op.operand_dims[1].index(k)
    builder.add(WgmmaFenceOp())
    with builder.unroll(rows // (ROWS * groups)) as block, builder.unroll(depth // step) as s:
        down = builder.add_int(builder.mul_int(block, builder.constant(groups, I32)), group)
        a, a_major, a_offsets = _operand(kernel, lhs, left, left_k, s, step, down)
        b, b_major, b_offsets = _operand(kernel, rhs, right, right_k, s, step, zero)
        builder.add(
            WgmmaOp(
                Shape(ROWS, columns, step),
                (lhs.array, a),
                (rhs.array, b),
                acc,
                [builder.mul_int(block, builder.constant(2, I32)) if d == m else zero for d in op.operand_dims[2]],
                majors=(a_major, b_major),
                lhs_offsets=a_offsets,
                rhs_offsets=b_offsets,
            )
        )
    builder.add(WgmmaCommitOp())


def _lower_from_registers(
    kernel: Kernel, op: MmaOp, lhs: Slot, rhs: Slot, dims: tuple[int, int, int], step: int
) -> None:
    """The same with the left operand in registers: two neighbours along its own dim in an access, all steps of the turn
    before the first instruction."""
    builder, (m, n, k) = kernel.builder, dims
    left, right = buffer_type(op.lhs), buffer_type(op.rhs)
    rows, columns, depth = (op.sizes[d] or 0 for d in dims)
    groups, steps = builder.threads // WARPGROUP, depth // step
    blocks = rows // (ROWS * groups)
    acc_dims = op.operand_dims[2]
    spread = distribution(op, op.acc.type)[acc_dims.index(m)]
    digits = spread.factors(rows)
    if digits[0] != Factor(2, 0) or (digits[-1] != Factor(blocks, 0) and blocks > 1):
        raise error_at(
            op, f"tile.mma: inst wgmma: accumulators lie otherwise than a left operand in pairs: {op.acc.type}"
        )
    _, span, lines, _ = panel_of(left)
    zero = builder.constant(0, I32)

    def times(value: SSAValue, by: int) -> SSAValue:
        return builder.mul_int(value, builder.constant(by, I32))

    # Beside the accumulators: the wait behind the loop names them too.
    acc = kernel.values[op.acc]
    beside = RegsAllocOp(regs_type([blocks, steps, LEFT_REGISTERS], f32))
    assert isinstance(acc.owner, Operation)
    assert acc.owner.parent is not None
    acc.owner.parent.insert_op_after(beside, acc.owner)
    a = beside.res
    a.name_hint = "a"
    kernel.accumulators.append(a)
    own = thread_place(builder, spread, rows)
    inside = builder.mod_unsigned(builder.tid(), builder.constant(LEFT_REGISTERS, I32))
    with builder.unroll(blocks) as block:
        place = builder.add_int(own, times(block, ROWS * groups))
        panel = builder.div_unsigned(place, builder.constant(span, I32))
        column = builder.mod_unsigned(place, builder.constant(span, I32))
        start = builder.add_int(lhs.first, builder.add_int(times(panel, lines * span), column))
        with builder.unroll(steps) as s, builder.unroll(2) as half:
            line = builder.add_int(builder.add_int(times(s, step), times(half, step // 2)), inside)
            at = builder.add_int(start, times(line, span))
            builder.add(LoadOp(lhs.array, at, a, [block, s, times(half, 2)], 2))
    builder.add(WgmmaFenceOp())
    turned = acc_dims.index(m) > acc_dims.index(n)
    with builder.unroll(blocks) as block, builder.unroll(steps) as s:
        b, _, offsets = _operand(kernel, rhs, right, op.operand_dims[1].index(k), s, step, zero)
        indices = [times(block, 2) if d == m else zero for d in acc_dims]
        shape = Shape(ROWS, columns, step)
        builder.add(WgmmaRegsOp(shape, (a, [block, s, zero]), (rhs.array, b), acc, indices, offsets, turned=turned))
    builder.add(WgmmaCommitOp())


def _operand(
    kernel: Kernel, slot: Slot, type_: BufType, k_dim: int, s: SSAValue, step: int, block: SSAValue
) -> tuple[SSAValue, str, tuple[int, int]]:
    """(first element, major dim, byte offsets) of an operand at step `s` along k and 64-row block `block`."""
    builder = kernel.builder
    layout, span, rows, _ = panel_of(type_)
    row_bytes = layout.bytes.data
    if layout.along.data == k_dim:
        # Panels lie along k: a step is 32 bytes further in a row, every few steps in the next panel.
        each = span // step
        place = builder.add_int(slot.first, builder.mul_int(block, builder.constant(ROWS * span, I32)))
        if type_.sizes[k_dim] == span:
            place = builder.add_int(place, builder.mul_int(s, builder.constant(step, I32)))
        else:
            panel = builder.div_unsigned(s, builder.constant(each, I32))
            inner = builder.mod_unsigned(s, builder.constant(each, I32))
            place = builder.add_int(place, builder.mul_int(panel, builder.constant(rows * span, I32)))
            place = builder.add_int(place, builder.mul_int(inner, builder.constant(step, I32)))
        return place, "k", (LEADING_UNUSED, 8 * row_bytes)
    # Panels lie along the operand's own dim: a step is as many rows further, a block of 64 some panels.
    panels = ROWS // span
    place = builder.add_int(slot.first, builder.mul_int(block, builder.constant(panels * rows * span, I32)))
    place = builder.add_int(place, builder.mul_int(s, builder.constant(step * span, I32)))
    return place, "mn", (rows * row_bytes, 8 * row_bytes)
