"""The pass `vectorise`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue

from tilewright.dialects.assembly import i64_attr
from tilewright.dialects.simt.memory import UNALIGNED_BYTES
from tilewright.dialects.sym import Expr, Relation
from tilewright.dialects.sym.analysis import value_symbol
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.dialects.tile.types import DimDistribution, MixedLayout, distributed
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.element_size import bytes_of
from tilewright.passes.layout_rewrite import spread_fragments, spread_of, thread_count
from tilewright.passes.remarks import remark
from tilewright.passes.thread_layout import fastest_first, fill_in_order, with_strides
from tilewright.passes.thread_spread import order_of, product_of, spread_threads
from tilewright.passes.tile_analysis import (
    IterationDims,
    KernelScopes,
    buf,
    contiguous_dim,
    copies,
    global_side,
    iteration_dims,
    kernels_of,
)

ACCESS_BYTES = 16
"""The widest access of one thread."""
WARP = 32
NARROW_SPAN_BYTES = 256
"""What the lanes of a warp may span where they move single elements beside wide accesses. Each of these comes to all
the lines of 128 bytes that it spans: twice the lines of a dense access are a fair price for wide ones, four are not."""


@dataclass(frozen=True)
class VectorisePass(TilewrightPass):
    """Widens accesses to global memory to up to `access_bytes` where alignment and size are proved; others stay.

    A copy is moved `width` elements at a time along a dim of stride 1 when width divides the other strides, the offsets
    and the size (where it is clipped), and the base address is a multiple of the access. The fragments' layouts get
    that many neighbouring elements a thread; fewer where others of the kernel's copies move single elements along the
    dim. A load of small elements that could only be single ones becomes as wide as the others, `unaligned`: aligned
    words are read and shifted; a copy from a slot stores words that are aligned in memory. A product's accumulators get
    vectors too, for wide reads of shared memory. Relies on layouts from `map-threads`, and on facts that a variant
    assumes. Where the author mapped the kernel, a width that is open becomes what the layout allows.
    """

    name = "vectorise"
    level = "tile"
    access_bytes: int = ACCESS_BYTES
    """The widest access, in bytes."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_access_bytes(op, self.name, self.access_bytes)
        for kernel in kernels_of(op):
            threads = thread_count(kernel)
            if threads is None:
                continue
            scopes, dims = KernelScopes(kernel), iteration_dims(kernel)
            if kernel.mapped is not None:
                for copy in copies(kernel):
                    if "global" in copy.spaces and copy.by_threads and copy.width is None:
                        self._fit(copy, scopes)
                continue
            self._widen_fragments(kernel, dims, scopes, threads)
            for copy in copies(kernel):
                # A layout that an instruction asks for stays; neighbours that a thread holds can still move together.
                if "global" in copy.spaces and "fragment" in copy.spaces and isinstance(copy.distribution, MixedLayout):
                    self._fit(copy, scopes)
                if "global" in copy.spaces and "fragment" not in copy.spaces and copy.by_threads:
                    self._widen_staging(copy, scopes)

    def _widen_fragments(self, kernel: KernelOp, dims: IterationDims, scopes: KernelScopes, threads: int) -> None:
        spread = spread_of(dims)
        if spread is None:
            return
        wanted: dict[int, int] = {}
        narrow_limits: dict[int, int] = {}
        wide: list[tuple[CopyOp, int, int]] = []
        single: list[tuple[CopyOp, int, int]] = []
        for copy in copies(kernel):
            if "global" not in copy.spaces or "fragment" not in copy.spaces:
                continue
            fragment = copy.target if copy.spaces[1] == "fragment" else copy.source
            for axis, d in enumerate(dims.dims[fragment]):
                width = 0 if d is None else provable_width(copy, axis, scopes, self.access_bytes)
                if d is not None and width == 1 and contiguous_dim(copy, scopes) == axis:
                    single.append((copy, axis, d))
                if d is not None and width > 1:
                    wide.append((copy, axis, d))
                    wanted[d] = min(wanted.get(d, width), width)
        shifted = [each for each in single if each[2] in wanted and readable_unaligned(each[0], each[1], scopes)]
        for copy, axis, d in single:
            if (copy, axis, d) not in shifted:
                span = NARROW_SPAN_BYTES // (WARP * bytes_of(copy.tile_type.element))
                narrow_limits[d] = min(narrow_limits.get(d, span), max(1, span))
        for d, limit in narrow_limits.items():
            if d in wanted:
                wanted[d] = min(wanted[d], limit)
        product = product_of(kernel)
        if product is not None:
            narrow = stored_dims(kernel, dims, scopes)
            for d in dims.dims[product.acc]:
                if d is not None and d not in narrow:
                    wanted.setdefault(d, self.access_bytes // bytes_of(buf(product.acc).element))
        if not wanted:
            return
        vectors = [fitting_width(wanted.get(d, 1), size) for d, size in enumerate(dims.sizes)]
        if product is not None:
            self._leave_each_thread_its_own(dims, product, threads, vectors, {d for _, _, d in wide})
        widened = spread_threads(kernel, dims, threads, order_of(spread), vectors)
        spread_fragments(dims, widened)
        for copy, axis, d in wide:
            vector = widened[d].vector
            if vector > 1:
                set_width(copy, vector, axis)
                remark(copy, self.name, f"accesses of {vector} elements along dim {axis}")
        for copy, axis, d in shifted:
            vector = widened[d].vector
            if vector * bytes_of(copy.tile_type.element) in UNALIGNED_BYTES:
                set_width(copy, vector, axis)
                copy.properties["unaligned"] = UnitAttr()
                remark(copy, self.name, f"accesses of {vector} elements from any on along dim {axis}")

    def _leave_each_thread_its_own(
        self, dims: IterationDims, product: MmaOp, threads: int, vectors: list[int], moved: set[int]
    ) -> None:
        """Narrow the vectors of accumulators until every thread of the block has some of its own, those first along
        dims that no copy moves in vectors."""
        own = [d for d in dims.dims[product.acc] if d is not None]
        while prod(dims.sizes[d] // vectors[d] for d in own) < threads:
            widest = max(own, key=lambda d: (vectors[d] > 1, d not in moved, vectors[d]))
            if vectors[widest] == 1:
                return
            vectors[widest] //= 2

    def _fit(self, copy: CopyOp, scopes: KernelScopes) -> None:
        """The width of a copy, as its distribution is."""
        layout = copy.distribution
        if layout is None:
            return
        for axis in reversed(range(copy.tile_type.rank)):
            width = fitting_width(provable_width(copy, axis, scopes, self.access_bytes), layout.dims[axis].vector)
            if width > 1:
                if "fragment" in copy.spaces:
                    set_width(copy, width, axis)
                else:
                    set_widths(copy, width, shared_width(copy, axis, scopes, width), axis)
                remark(copy, self.name, f"accesses of {width} elements along dim {axis}")
                return

    def _widen_staging(self, copy: CopyOp, scopes: KernelScopes) -> None:
        """A copy into shared memory: its own distribution gets the vectors."""
        if copy.dist is None:
            return
        sizes, dist = copy.tile_type.sizes, list(copy.dist.dims)
        for axis in reversed(range(len(sizes))):
            width = provable_width(copy, axis, scopes, self.access_bytes)
            if width > 1:
                widened = widen(dist, sizes, axis, width)
                copy.properties["dist"] = distributed(widened)
                set_widths(copy, width, shared_width(copy, axis, scopes, width), axis)
                remark(copy, self.name, f"accesses of {width} elements along dim {axis}")
                return
        axis, width = contiguous_dim(copy, scopes), self.access_bytes // bytes_of(copy.tile_type.element)
        if axis is not None and copy.spaces[1] == "shared" and readable_unaligned(copy, axis, scopes):
            widened = widen(dist, sizes, axis, width)
            if widened[axis].vector * bytes_of(copy.tile_type.element) in UNALIGNED_BYTES:
                copy.properties["dist"] = distributed(widened)
                set_widths(copy, widened[axis].vector, shared_width(copy, axis, scopes, width), axis)
                copy.properties["unaligned"] = UnitAttr()
                remark(copy, self.name, f"accesses of {width} elements from any on along dim {axis}")
            return
        axis = copy.tile_type.rank - 1
        if storable_unaligned(copy, axis, scopes, width):
            widened = widen(dist, sizes, axis, width)
            if widened[axis].threads >= width:
                copy.properties["dist"] = distributed(widened)
                set_widths(copy, width, width, axis)
                copy.properties["unaligned"] = UnitAttr()
                remark(copy, self.name, f"accesses of {width} elements from any on along dim {axis}")


def set_width(copy: CopyOp, width: int, axis: int) -> None:
    """Access `width` elements along `axis`."""
    copy.properties["width"] = i64_attr(width)
    if axis != copy.tile_type.rank - 1:
        copy.properties["along"] = i64_attr(axis)
    else:
        copy.properties.pop("along", None)


def set_widths(copy: CopyOp, outer: int, inner: int, axis: int) -> None:
    """Access global memory `outer` elements at a time along `axis`, and shared memory `inner`."""
    load, store = (outer, inner) if copy.spaces[0] == "global" else (inner, outer)
    set_width(copy, load, axis)
    copy.properties["store_width"] = i64_attr(store)


def shared_width(copy: CopyOp, axis: int, scopes: KernelScopes, most: int) -> int:
    """Elements of the widest access along a dim of a copy's shared side that its layout allows, up to `most`.

    1 while the layout is open: `pad-shared` chooses both. Chunks of 16 bytes stay whole in a swizzled slot.
    """
    from_shared = copy.spaces[0] == "shared"
    type_ = buf(copy.source if from_shared else copy.target)
    offsets = list(copy.source_offsets if from_shared else copy.target_offsets)
    if type_.swizzle is not None:
        return most if type_.swizzle.along.data == axis and not offsets else 1
    strides = type_.strides
    if strides is None or strides[axis].constant != 1:
        return 1
    width, scope = most, scopes.at(copy)
    while width > 1:
        starts = [scope.expr(o) * s for o, s in zip(offsets, strides, strict=True)] if offsets else []
        steps = [s for d, s in enumerate(strides) if d != axis and type_.sizes[d] > 1]
        if all(scopes.divides(copy, e, width) for e in (*starts, *steps)):
            return width
        width //= 2
    return 1


def check_access_bytes(op: ModuleOp, pass_name: str, access_bytes: int) -> None:
    """Raise unless the width of an access is one that IR can have: a power of two up to 16 bytes, and 8 for an f64."""
    if access_bytes not in (8, 16):
        raise error_at(op, f"{pass_name}: expected access_bytes to be 8 or 16, got {access_bytes}")


def provable_width(
    copy: CopyOp, axis: int, scopes: KernelScopes, access_bytes: int = ACCESS_BYTES, *, whole: bool = True
) -> int:
    """Elements of the widest access along a dim of a copy with global memory that is aligned and inside for certain.

    With `whole` false it need not be inside: what lies outside is cut off one access.
    """
    side = global_side(copy)
    if side is None:
        return 1
    buffer, offsets = side
    type_ = buf(buffer)
    strides = type_.strides
    tile = copy.tile_type.sizes
    if strides is None or tile[axis] == 1 or not scopes.proved(copy, Relation(strides[axis], "==", Expr.const(1))):
        return 1
    base = base_symbol(copy, buffer)
    scope = scopes.at(copy)
    width = access_bytes // bytes_of(type_.element)
    while width > 1:
        size = bytes_of(type_.element) * width
        aligned = base is None or scopes.divides(copy, base, size)
        for d, stride in enumerate(strides):
            start = scope.expr(offsets[d]) if offsets else Expr.const(0)
            if d == axis:
                inside = not whole or copy.bound_words[d] == "proved" or scopes.divides(copy, type_.dims[d], width)
                aligned = aligned and inside and scopes.divides(copy, start, width)
            elif not (type_.dims[d].constant == 1 or scopes.divides(copy, stride, width)):
                aligned = False
        if aligned and tile[axis] % width == 0:
            return width
        width //= 2
    return 1


def readable_unaligned(copy: CopyOp, axis: int, scopes: KernelScopes) -> bool:
    """Whether wide reads of a copy's global source may begin at any element of a dim: they touch neighbours that the
    copy does not ask for, so nothing in the kernel may write there. Worth it for elements of less than 4 bytes."""
    if copy.spaces[0] != "global" or not copy.by_threads:
        return False
    type_ = buf(copy.source)
    if type_.strides is None or bytes_of(type_.element) >= min(UNALIGNED_BYTES):
        return False
    written = any(other.target is copy.source for other in copies(scopes.kernel))
    return not written and scopes.proved(copy, Relation(type_.strides[axis], "==", Expr.const(1)))


def storable_unaligned(copy: CopyOp, axis: int, scopes: KernelScopes, width: int) -> bool:
    """Whether a copy from a slot to global memory may store words of `width` elements that are aligned there: chunks of
    16 bytes of the slot's rows are read whole, and shifted. Rows must be contiguous, on either side: of one panel."""
    type_, slot = buf(copy.target), buf(copy.source)
    if copy.spaces != ("shared", "global") or type_.strides is None or copy.source_offsets:
        return False
    swizzle, size = slot.swizzle, bytes_of(type_.element)
    contiguous = swizzle is not None and swizzle.along.data == axis and slot.sizes[axis] * size == swizzle.bytes.data
    return (
        contiguous
        and size < min(UNALIGNED_BYTES)
        and size * width == ACCESS_BYTES
        and scopes.proved(copy, Relation(type_.strides[axis], "==", Expr.const(1)))
    )


def base_symbol(copy: CopyOp, buffer: SSAValue) -> Expr | None:
    """The symbol of a kernel argument's base address (see `base_of`); None where it is aligned by construction."""
    kernel = copy.parent_op()
    while not isinstance(kernel, KernelOp):
        assert kernel is not None  # a copy stands in a kernel
        kernel = kernel.parent_op()
    arguments: list[SSAValue] = list(kernel.arguments)
    return base_of(kernel, arguments.index(buffer))


def base_of(kernel: KernelOp, number: int) -> Expr | None:
    """The base address symbol of argument `number`; None for scratch ("" in `bases`), which is aligned to 256 bytes.

    A kernel without `bases` says nothing of its addresses: each is a symbol of which nothing is known.
    """
    names = kernel.bases
    if number >= len(names):
        return value_symbol(kernel.arguments[number])
    return Expr.symbol(names[number]) if names[number] else None


def stored_dims(kernel: KernelOp, dims: IterationDims, scopes: KernelScopes) -> set[int]:
    """Iteration dims along which results are contiguous in global memory.

    Where such a store cannot be wide, a thread must not have neighbours: the lanes of a warp then fill whole sectors.
    """
    found: set[int] = set()
    for copy in copies(kernel):
        if copy.spaces == ("fragment", "global"):
            axis = contiguous_dim(copy, scopes)
            d = None if axis is None else dims.dims[copy.source][axis]
            if d is not None:
                found.add(d)
    return found


def fitting_width(width: int, size: int) -> int:
    """The width (a power of two), or less so that it divides the size."""
    while width > 1 and size % width:
        width //= 2
    return width


def widen(spread: Sequence[DimDistribution], sizes: Sequence[int], axis: int, width: int) -> list[DimDistribution]:
    """Vectors of `width` along one dim of a copy; the threads that it gives up go to the other dims, slowest first."""
    width = fitting_width(width, sizes[axis])
    order = fastest_first(spread)
    threads = prod(d.threads for d in spread)
    room = [size // width if d == axis else size for d, size in enumerate(sizes)]
    counts = fill_in_order(room, order, threads)
    return with_strides(counts, [width if d == axis else e.vector for d, e in enumerate(spread)], order)
