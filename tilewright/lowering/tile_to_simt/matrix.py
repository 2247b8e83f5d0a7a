"""`tile.mma` on matrix instructions of sm_90a: descriptors of swizzled slots, one a 64-row block and step."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.simt.wgmma import Shape, WgmmaCommitOp, WgmmaFenceOp, WgmmaOp
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.types import BufType, buffer_type
from tilewright.lowering.tile_to_simt.builder import I32
from tilewright.lowering.tile_to_simt.channels import panel_of
from tilewright.lowering.tile_to_simt.state import Kernel, Slot, element_bytes
from tilewright.passes.choose_mma import has_instruction, product_dims
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
