"""The pass `choose-mma`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.precision import TF32
from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.sym import Expr, Relation
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.iteration import maps_attr
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp
from tilewright.dialects.tile.types import BufType, SwizzledLayout, buf_type
from tilewright.passes.core import TilewrightPass
from tilewright.passes.element_size import bytes_of
from tilewright.passes.layout_rewrite import set_type
from tilewright.passes.remarks import remark
from tilewright.passes.thread_layout import WARP
from tilewright.passes.tile_analysis import KernelScopes, buf, kernels_of
from tilewright.passes.vectorise import base_symbol

WARPGROUP_ARCH = "sm_90a"
"""The architecture whose warpgroups multiply."""
ROWS = 64
"""Rows of one warpgroup instruction (PTX ISA, wgmma)."""
COLUMNS = (8, 16, 32, 64, 96, 128, 192, 256)
"""Columns of one that the emitter has."""
SWIZZLE = 128
"""Bytes of a panel of a swizzled operand."""
MAX_BOX = 256
"""Elements of a tensor map's box along a dim (CUDA driver API, cuTensorMapEncodeTiled)."""
MAX_WARPGROUPS = 2
"""Warpgroups that multiply: with 240 registers a thread two leave room for one that loads."""
ALIGNMENT = 16
"""Bytes that addresses and strides of what a tensor map moves are multiples of."""
WARP_TILE = 16
"""Rows and columns of what a warp multiplies at a time: m16n8k16, or for f32 m16n8k8, twice (PTX ISA, mma.sync)."""
STEP = 32
"""Bytes along the sum of what one instruction multiplies (PTX ISA, mma.sync and wgmma)."""
WARP_GRIDS = ((2, 4), (4, 2), (2, 2), (1, 4), (4, 1), (1, 2), (2, 1), (1, 1))
"""Warps along rows and columns that may share a block's tile."""
WARP_ACCUMULATORS = 64 * 64
"""Accumulators of a warp: they take half of its threads' registers."""
PATTERN = 1024
"""Bytes after which a swizzled buffer repeats."""


@dataclass(frozen=True)
class ChooseMmaPass(TilewrightPass):
    """Decides what multiplies: the matrix instructions of the kernel's `arch`, or the multiply-adds of threads.

    A `tile.mma` on matrix instructions reads its operands from shared memory: the fragments that one copy each fills
    become swizzled shared buffers, contiguous along the dim along which global memory is. Operands change places where
    the accumulators hold the columns first. Needs bf16 or f16 operands, or f32 ones where the op says `precision tf32`,
    with f32 accumulators, one row, one column and one summed dim (others of size 1) of fitting sizes.

    On sm_90a warpgroups multiply (`wgmma`) where tensor maps can move the operands: addresses and strides that 16 bytes
    divide for certain; one of two of f32 must be contiguous along the sum, and the other is the left one if it is not:
    its elements go through registers. On others from sm_80 on warps do (`mma.sync`), wherever operands lie. What is
    left goes to the multiply-adds of threads, which `finish-schedule` chooses; a remark says why. Relies on free tile
    IR.
    """

    name = "choose-mma"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            products = [o for o in kernel.walk() if isinstance(o, MmaOp) and o.inst is None]
            if not products:
                continue
            scopes = KernelScopes(kernel)
            arch = "any" if kernel.arch is None else kernel.arch.data
            for mma in products:
                turned = _turn(mma)
                reason = self._refusal(kernel, arch, mma, len(products))
                if reason is None:
                    reason = _wgmma_refusal(mma, scopes) if arch == WARPGROUP_ARCH else _mma_sync_refusal(mma, scopes)
                if reason is not None:
                    if turned:
                        _exchange(mma)
                    remark(mma, self.name, f"multiply-adds of threads: {reason}")
                elif arch == WARPGROUP_ARCH:
                    self._use_wgmma(kernel, mma, scopes)
                else:
                    self._use_mma_sync(kernel, mma, scopes)

    def _refusal(self, kernel: KernelOp, arch: str, mma: MmaOp, products: int) -> str | None:
        """Why no matrix instructions can be used; None if some may."""
        if arch != WARPGROUP_ARCH and not multiplies_by_warps(arch):
            return f"the kernel is for {arch}"
        if kernel.mapped is not None:
            return "its author mapped the kernel to threads"
        if not isinstance(mma.parent_op(), ForOp):
            return "it stands in no loop"
        if products > 1:
            return f"the kernel has {products} products"
        lhs, rhs, acc = (buf(v) for v in (mma.lhs, mma.rhs, mma.acc))
        if lhs.element != rhs.element or not has_instruction(lhs.element, mma.precision):
            return f"operands of {lhs.element} and {rhs.element}"
        if acc.element != Float32Type():
            return f"accumulators of {acc.element}"
        if product_dims(mma) is None:
            return "not one row, one column and one summed dim"
        for value, name in ((mma.lhs, "left"), (mma.rhs, "right")):
            if only_fill(value, mma) is None:
                return f"the {name} operand is not filled by one copy of its own"
        return None

    def _use_mma_sync(self, kernel: KernelOp, mma: MmaOp, scopes: KernelScopes) -> None:
        for value in (mma.lhs, mma.rhs):
            set_type(value, _warp_operand(mma, value, scopes))
        mma.properties["inst"] = StringAttr("mma.sync")
        rows, columns, _ = _product_sizes(mma)
        down, across = warp_grid(rows, columns)
        kernel.properties["threads"] = i64_attr(down * across * WARP)
        remark(mma, self.name, f"matrix instructions of {down} x {across} warps, operands in shared memory")

    def _use_wgmma(self, kernel: KernelOp, mma: MmaOp, scopes: KernelScopes) -> None:
        if _goes_left(mma, scopes):
            _exchange(mma)
        dims = _dims(mma)
        assert dims is not None
        for value in (mma.lhs, mma.rhs):
            fill = only_fill(value, mma)
            assert fill is not None
            along = mapped_dim(fill, scopes)
            assert along is not None
            type_ = buf(value)
            shared = buf_type(type_.sizes, type_.element, "shared", SwizzledLayout(IntAttr(SWIZZLE), IntAttr(along)))
            set_type(value, shared)
        mma.properties["inst"] = StringAttr("wgmma")
        rows = mma.sizes[dims[0]] or ROWS
        groups = _warpgroups(rows)
        kernel.properties["threads"] = i64_attr(groups * WARPGROUP)
        who = "1 warpgroup" if groups == 1 else f"{groups} warpgroups"
        through = ", the left one goes through registers" if left_in_registers(mma) else ""
        remark(mma, self.name, f"matrix instructions of {who}, operands in shared memory{through}")


def has_instruction(element: Attribute, precision: StringAttr | None) -> bool:
    """Whether matrix instructions multiply operands of a type: of 16 bits, or f32 where tf32 is precise enough."""
    if isinstance(element, Float32Type):
        return precision is not None and precision.data == TF32
    return isinstance(element, BFloat16Type | Float16Type)


def sums_along_rows(element: Attribute) -> bool:
    """Whether warpgroups read operands of a type from shared memory only where they are contiguous along the sum (PTX
    ISA, wgmma)."""
    return not isinstance(element, BFloat16Type | Float16Type)


def multiplies_by_warps(arch: str | None) -> bool:
    """Whether products go to `mma.sync` on an architecture: from sm_80 on, but for sm_90a."""
    number = re.fullmatch(r"sm_(\d+)[af]?", arch or "")
    return number is not None and int(number[1]) >= 80 and arch != WARPGROUP_ARCH


def _product_sizes(mma: MmaOp) -> tuple[int, int, int]:
    """Rows, columns and depth of a product that has one of each."""
    dims = product_dims(mma)
    assert dims is not None
    rows, columns, depth = (mma.sizes[d] or 0 for d in dims)
    return rows, columns, depth


def _wgmma_refusal(mma: MmaOp, scopes: KernelScopes) -> str | None:
    """Why warpgroups cannot multiply; None if they can."""
    rows, columns, depth = _product_sizes(mma)
    if any(only_fill(value, mma) is None for value in (mma.lhs, mma.rhs)):
        return "an operand is not filled by one copy of its own"
    if _goes_left(mma, scopes):
        rows, columns = columns, rows
    if rows % ROWS or rows > MAX_BOX or columns not in COLUMNS or depth % _step(mma):
        return f"a tile of {rows} x {columns} x {depth}"
    if rows % (ROWS * _warpgroups(rows)):
        return f"{rows} rows do not divide among {_warpgroups(rows)} warpgroups of {ROWS}"
    for value, name in ((mma.lhs, "left"), (mma.rhs, "right")):
        fill = only_fill(value, mma)
        assert fill is not None
        why = unmapped(fill, scopes)
        if why is not None:
            return f"the {name} operand: {why}"
    across = [_runs_across(mma, n, scopes) for n in range(2)]
    if sums_along_rows(buf(mma.lhs).element) and all(across):
        return f"no operand of {buf(mma.lhs).element} is contiguous along the sum"
    return None


def _runs_across(mma: MmaOp, number: int, scopes: KernelScopes) -> bool:
    """Whether memory is contiguous along an operand's own dim for certain, not along the sum."""
    fill = only_fill(mma.operands[number], mma)
    along = None if fill is None else mapped_dim(fill, scopes)
    return along is not None and mma.operand_dims[number][along] in mma.operand_dims[2]


def _goes_left(mma: MmaOp, scopes: KernelScopes) -> bool:
    """Whether the right operand of warpgroups must be the left one, which alone may go through registers."""
    left, right = (_runs_across(mma, n, scopes) for n in range(2))
    return sums_along_rows(buf(mma.rhs).element) and right and not left


def left_in_registers(mma: MmaOp) -> bool:
    """Whether the left operand of a `tile.mma` by warpgroups goes through registers on its way: it is of f32, and its
    slots are not contiguous along the sum."""
    type_ = buf(mma.lhs)
    if mma.inst is None or mma.inst.data != "wgmma" or type_.swizzle is None or not sums_along_rows(type_.element):
        return False
    return mma.operand_dims[0][type_.swizzle.along.data] in mma.operand_dims[2]


def _step(mma: MmaOp) -> int:
    """Elements along the sum of what one instruction multiplies."""
    return STEP // bytes_of(buf(mma.lhs).element)


def _mma_sync_refusal(mma: MmaOp, scopes: KernelScopes) -> str | None:
    """Why warps cannot multiply; None if they can."""
    rows, columns, depth = _product_sizes(mma)
    if rows % WARP_TILE or columns % WARP_TILE or depth % _step(mma):
        return f"a tile of {rows} x {columns} x {depth}"
    for value, name in ((mma.lhs, "left"), (mma.rhs, "right")):
        type_ = _warp_operand(mma, value, scopes)
        if type_.count * bytes_of(type_.element) % PATTERN:
            return f"the {name} operand has {type_.count} elements, no multiple of {PATTERN} bytes"
    return None


def _warp_operand(mma: MmaOp, value: SSAValue, scopes: KernelScopes) -> BufType:
    """A shared buffer for an operand of warps, swizzled along the dim along which memory is contiguous for certain, or
    else its last one: in the widest panels that divide it."""
    fill, type_ = only_fill(value, mma), buf(value)
    assert fill is not None
    along = mapped_dim(fill, scopes)
    if along is None:
        along = max(d for d, size in enumerate(type_.sizes) if size > 1)
    row = type_.sizes[along] * bytes_of(type_.element)
    panel = next(size for size in (128, 64, 32) if row % size == 0)
    return buf_type(type_.sizes, type_.element, "shared", SwizzledLayout(IntAttr(panel), IntAttr(along)))


def warp_grid(rows: int, columns: int) -> tuple[int, int]:
    """Warps along rows and along columns that share a tile of so many rows and columns, multiples of 16: four, or eight
    where they would have too much each, such that they read least of the operands."""
    most = 4 if rows * columns <= 4 * WARP_ACCUMULATORS else 8
    fitting = [
        (m, n)
        for m, n in WARP_GRIDS
        if m * n <= most and rows % (m * WARP_TILE) == 0 and columns % (n * WARP_TILE) == 0
    ]
    return min(fitting, key=lambda grid: (-grid[0] * grid[1], rows // grid[0] + columns // grid[1]))


def _warpgroups(rows: int) -> int:
    """Warpgroups that multiply a tile of so many rows, a multiple of 64: each takes 64 in turn."""
    return min(MAX_WARPGROUPS, rows // ROWS)


def product_dims(mma: MmaOp) -> tuple[int, int, int] | None:
    """The iteration dims of rows (left operand), columns (right) and the sum, when there is one of each; dims of size 1
    do not count. Accumulators hold the rows first, but for a left operand that goes through registers."""
    found, acc = _dims(mma), mma.operand_dims[2]
    if found is not None and acc.index(found[0]) > acc.index(found[1]) and not left_in_registers(mma):
        return None
    return found


def _dims(mma: MmaOp) -> tuple[int, int, int] | None:
    """The same in whichever order accumulators hold them."""
    lhs, rhs, acc = mma.operand_dims
    wide = [d for d, size in enumerate(mma.sizes) if size != 1]
    rows = [d for d in wide if d in lhs and d in acc and d not in rhs]
    columns = [d for d in wide if d in rhs and d in acc and d not in lhs]
    summed = [d for d in wide if d in lhs and d in rhs and d not in acc]
    if len(rows) != 1 or len(columns) != 1 or len(summed) != 1 or len(wide) != 3:
        return None
    return rows[0], columns[0], summed[0]


def _turn(mma: MmaOp) -> bool:
    """Let the operands change places where that makes the first dim of the accumulators the rows; whether it did."""
    if product_dims(mma) is not None:
        return False
    _exchange(mma)
    if product_dims(mma) is not None:
        return True
    _exchange(mma)
    return False


def _exchange(mma: MmaOp) -> None:
    """a * b is b * a."""
    lhs, rhs = mma.lhs, mma.rhs
    mma.operands[0], mma.operands[1] = rhs, lhs
    left, right, acc = mma.operand_dims
    mma.properties["maps"] = maps_attr([right, left, acc])


def only_fill(buffer: SSAValue, user: Operation) -> CopyOp | None:
    """The copy from global memory that fills a buffer, when it and `user` are all that touch it, in one block."""
    users = {use.operation for use in buffer.uses}
    fills = [u for u in users if isinstance(u, CopyOp) and u.target is buffer]
    if len(users) != 2 or len(fills) != 1 or user not in users or not isinstance(buffer.owner, AllocOp):
        return None
    fill = fills[0]
    return fill if fill.parent is user.parent and fill.spaces[0] == "global" else None


def mapped_dim(copy: CopyOp, scopes: KernelScopes) -> int | None:
    """The dim along which the global side of a copy is contiguous for certain, and wider than one element."""
    type_, tile = _global_type(copy), copy.tile_type
    for d, stride in reversed(list(enumerate(type_.strides or ()))):
        if tile.sizes[d] > 1 and scopes.proved(copy, Relation(stride, "==", Expr.const(1))):
            return d
    return None


def unmapped(copy: CopyOp, scopes: KernelScopes) -> str | None:
    """Why a tensor map cannot move a tile between global memory and swizzled shared memory; None if it can."""
    type_, tile = _global_type(copy), copy.tile_type
    along = mapped_dim(copy, scopes)
    if along is None:
        return "no dim of stride 1 for certain"
    size = bytes_of(type_.element)
    if tile.swizzle is not None and tile.swizzle.along.data != along:
        return f"the slot has rows along dim {tile.swizzle.along.data}, memory along dim {along}"
    if copy.spaces[1] == "global" and not scopes.divides(copy, type_.dims[along], ALIGNMENT // size):
        # Tensor maps cut a row at 16 bytes, not at an element.
        return f"a row of {type_.dims[along]} may be no multiple of {ALIGNMENT} bytes"
    if tile.sizes[along] * size % SWIZZLE:
        return f"{tile.sizes[along]} elements along the contiguous dim are no multiple of {SWIZZLE} bytes"
    if tile.rank > 5 or any(n > MAX_BOX for d, n in enumerate(tile.sizes) if d != along):
        return f"a tile of {list(tile.sizes)} exceeds a tensor map's box"
    for d, stride in enumerate(type_.strides or ()):
        if d != along and type_.dims[d].constant != 1 and not scopes.divides(copy, stride, ALIGNMENT // size):
            return f"a stride of {stride} may be no multiple of {ALIGNMENT} bytes"
    base = base_symbol(copy, copy.source if copy.spaces[0] == "global" else copy.target)
    if base is not None and not scopes.divides(copy, base, ALIGNMENT):
        return f"the address may be no multiple of {ALIGNMENT} bytes"
    return None


def _global_type(copy: CopyOp) -> BufType:
    return buf(copy.source if copy.spaces[0] == "global" else copy.target)
