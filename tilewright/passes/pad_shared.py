"""The pass `pad-shared`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, ForOp
from tilewright.dialects.tile.types import AnyDistribution, strided
from tilewright.passes.bank_conflicts import tile_wavefronts
from tilewright.passes.core import TilewrightPass
from tilewright.passes.element_size import bytes_of
from tilewright.passes.layout_rewrite import set_type
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import KernelScopes, kernels_of
from tilewright.passes.vectorise import ACCESS_BYTES, check_access_bytes, set_width

PADS = (0, 1, 2, 4, 8, 16)
"""Elements added to a row that are tried."""


@dataclass(frozen=True)
class Access:
    """One copy's use of a shared buffer: how a warp walks it, and how often."""

    copy: CopyOp | GatherOp
    dims: tuple[AnyDistribution, ...]
    sizes: tuple[int, ...]
    axis: int | None
    times: int
    starts: tuple[int, ...]
    """For each dim a power of two that divides where the copy starts in the buffer, for certain."""
    wide: bool = True
    """Whether one access may take several elements; a gather stores one by one."""
    access_bytes: int = ACCESS_BYTES
    """The widest access of the device."""

    def width(self, strides: Sequence[int], element_bytes: int) -> int:
        """The widest access that a layout allows: along the access's own dim, else along the dim of stride 1."""
        axis = self.axis
        if not self.wide:
            return 1
        if axis is None:
            axis = next((d for d, s in enumerate(strides) if s == 1 and self.dims[d].vector > 1), None)
        if axis is None or strides[axis] != 1:
            return 1
        width = min(self.dims[axis].vector, self.access_bytes // element_bytes, self.starts[axis])
        while width > 1 and any(s % width for d, s in enumerate(strides) if d != axis):
            width //= 2
        return width

    def requests(self, width: int) -> int:
        """Requests of one warp for the whole tile."""
        local = prod(d.elements_per_thread(n) for d, n in zip(self.dims, self.sizes, strict=True))
        return max(1, local // width) * self.times

    def cost(self, strides: Sequence[int], element_bytes: int) -> float:
        """Wavefronts, and half a wavefront for issuing each request."""
        width = self.width(strides, element_bytes)
        return self.requests(width) * (tile_wavefronts(self.dims, self.sizes, strides, element_bytes, width) + 0.5)


@dataclass(frozen=True)
class PadSharedPass(TilewrightPass):
    """Chooses the row order and pitch of each shared buffer by counting bank conflicts, and the width of its accesses.

    Every candidate (rows in tensor order or turned, a few paddings) is priced by the wavefronts that its copies need;
    the plain layout stays unless another is strictly cheaper. Where conflicts remain a remark says so. Relies on
    `map-threads`; without this pass layouts stay plain.
    """

    name = "pad-shared"
    level = "tile"
    access_bytes: int = ACCESS_BYTES
    """The widest access, in bytes."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_access_bytes(op, self.name, self.access_bytes)
        for kernel in kernels_of(op):
            scopes = KernelScopes(kernel)
            for alloc in [o for o in kernel.walk() if isinstance(o, AllocOp)]:
                if alloc.type.space.data == "shared" and alloc.type.layout_is_open:
                    self._choose(alloc, scopes)

    def _choose(self, alloc: AllocOp, scopes: KernelScopes) -> None:
        accesses = accesses_of(alloc.res, scopes, self.access_bytes)
        if not accesses:
            return
        type_ = alloc.type
        size = bytes_of(type_.element)
        priced = [(strides, sum(a.cost(strides, size) for a in accesses)) for strides in candidates(type_.sizes)]
        plain, plain_cost = priced[0]
        best, least = min(priced, key=lambda entry: entry[1])  # the first of equals
        set_type(alloc.res, type_.with_layout(strided(best)))
        for access in accesses:
            apply_width(access, best, size, alloc.res)
        conflicts = sum(extra_wavefronts(a, best, size) for a in accesses)
        if best != plain:
            remark(
                alloc,
                self.name,
                f"strides {list(best)} for {list(type_.sizes)}: cost {least:g} instead of {plain_cost:g}",
            )
        elif conflicts:
            remark(
                alloc, self.name, f"no pitch helps: {conflicts} extra wavefronts a tile remain at strides {list(best)}"
            )
        else:
            remark(alloc, self.name, f"strides {list(best)} are free of conflicts")


def candidates(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Element strides to try, the plain row-major ones first."""
    moving = [d for d, n in enumerate(sizes) if n > 1]
    orders = [list(range(len(sizes)))]
    if len(moving) >= 2:
        a, b = moving[-2:]
        turned = list(range(len(sizes)))
        turned[a], turned[b] = turned[b], turned[a]
        orders.append(turned)
    found: list[tuple[int, ...]] = []
    for pads in ((0,), PADS[1:]):
        for order in orders:
            for pad in pads:
                strides, step, padded = [1] * len(sizes), 1, False
                for d in reversed(order):
                    strides[d] = step
                    step *= sizes[d]
                    if sizes[d] > 1 and not padded:
                        step, padded = step + pad, True
                if tuple(strides) not in found:
                    found.append(tuple(strides))
    return found


def accesses_of(buffer: SSAValue, scopes: KernelScopes, access_bytes: int = ACCESS_BYTES) -> list[Access]:
    """How the kernel's copies use a shared buffer; empty while some distribution is undecided."""
    found: list[Access] = []
    for use in buffer.uses:
        copy = use.operation
        if isinstance(copy, GatherOp) and copy.dist is not None:
            sizes = copy.tile_type.sizes
            starts = (1,) * len(sizes)
            found.append(Access(copy, copy.dist.dims, sizes, None, static_trips(copy), starts, wide=False))
        if not isinstance(copy, CopyOp):
            continue
        dist = copy.distribution
        if dist is None:
            return []
        # A staging copy's vectors run along the dim of its global access, a fragment's along the contiguous dim.
        axis = copy.vector_dim if "global" in copy.spaces and copy.tile_type.rank else None
        trips, starts = static_trips(copy), starts_of(copy, buffer, scopes)
        found.append(Access(copy, dist.dims, copy.tile_type.sizes, axis, trips, starts, access_bytes=access_bytes))
    return found


def starts_of(copy: CopyOp, buffer: SSAValue, scopes: KernelScopes) -> tuple[int, ...]:
    """For each dim the greatest power of two, up to a wide access, that divides a copy's offset into a buffer."""
    offsets = list(copy.source_offsets if copy.source is buffer else copy.target_offsets)
    if not offsets:
        return (ACCESS_BYTES,) * copy.tile_type.rank
    found: list[int] = []
    for value in offsets:
        start, divisor = scopes.at(copy).expr(value), ACCESS_BYTES
        while not scopes.divides(copy, start, divisor):
            divisor //= 2
        found.append(divisor)
    return tuple(found)


def static_trips(copy: Operation) -> int:
    """How often the loops of constant length around a copy run it."""
    trips, op = 1, copy.parent_op()
    while op is not None:
        if isinstance(op, ForOp):
            lower, upper, step = (e.data.constant for e in (op.lower, op.upper, op.step))
            if lower is not None and upper is not None and step is not None:
                trips *= max(1, -((lower - upper) // step))
        op = op.parent_op()
    return trips


def apply_width(access: Access, strides: Sequence[int], element_bytes: int, buffer: SSAValue) -> None:
    """Writes the width that the layout allows on the copy."""
    copy, width = access.copy, access.width(strides, element_bytes)
    if isinstance(copy, GatherOp):
        return
    if "global" in copy.spaces:
        key = "store_width" if copy.target is buffer else "width"
        if copy.width is not None:
            # The width of the other side stays, also where it was said by this one alone.
            copy.properties["store_width"] = i64_attr(copy.widths[1])
            copy.properties[key] = i64_attr(width)
        return
    axis = next((d for d, s in enumerate(strides) if s == 1 and access.dims[d].vector > 1), None)
    set_width(copy, width, copy.tile_type.rank - 1 if axis is None or width == 1 else axis)


def extra_wavefronts(access: Access, strides: Sequence[int], element_bytes: int) -> int:
    """Wavefronts of a tile beyond what its bytes need."""
    width = access.width(strides, element_bytes)
    needed = max(1, width * element_bytes // 4)
    return access.requests(width) * max(
        0, tile_wavefronts(access.dims, access.sizes, strides, element_bytes, width) - needed
    )
