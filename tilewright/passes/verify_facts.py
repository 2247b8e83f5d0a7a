"""The pass `verify-facts`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from tilewright.dialects.sym import Expr, Relation
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.passes.choose_mma import unmapped
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.prove_bounds import gather_bounds
from tilewright.passes.tile_analysis import KernelScopes, buf, global_side, kernels_of
from tilewright.passes.vectorise import provable_width, readable_unaligned, storable_unaligned


@dataclass(frozen=True)
class VerifyFactsPass(TilewrightPass):
    """Proves again every fact that stands on a copy with global memory: `proved` bounds, wide accesses, tensor maps.

    A copy `via tma` relies on a stride of 1, on strides, an address and (for a store) a row that 16 bytes divide, and
    on slots swizzled as memory is.

    Changes nothing. A fact that does not follow from the module's facts and what the kernel assumes is an error at the
    copy. Serves at any stage of tile IR.
    """

    name = "verify-facts"
    level = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in kernels_of(op):
            scopes = KernelScopes(kernel)
            for inner in kernel.walk():
                if isinstance(inner, CopyOp) and global_side(inner) is not None:
                    self._bounds(inner, scopes)
                    self._width(inner, scopes)
                    self._map(inner, scopes)
                elif isinstance(inner, GatherOp):
                    self._gather(inner, scopes)

    def _gather(self, op: GatherOp, scopes: KernelScopes) -> None:
        claimed = op.bound_words
        op.properties["bounds"] = ArrayAttr([StringAttr("clip" if w == "proved" else w) for w in claimed])
        try:
            found = gather_bounds(op, scopes)
        finally:
            op.properties["bounds"] = ArrayAttr([StringAttr(w) for w in claimed])
        for d, (word, provable) in enumerate(zip(claimed, found, strict=True)):
            if word == "proved" and provable != "proved":
                raise error_at(op, f"the bound of dim {d} is said to be proved, but this does not follow")

    def _bounds(self, copy: CopyOp, scopes: KernelScopes) -> None:
        side = global_side(copy)
        assert side is not None
        buffer, offsets = side
        for d, (word, size) in enumerate(zip(copy.bound_words, copy.tile_type.sizes, strict=True)):
            if word != "proved":
                continue
            start = scopes.at(copy).expr(offsets[d]) if offsets else Expr.const(0)
            inside = Relation(start + (size - 1), "<", buf(buffer).dims[d])
            if not scopes.proved(copy, inside):
                raise error_at(copy, f"the bound of dim {d} is said to be proved, but this does not follow: {inside}")

    def _map(self, copy: CopyOp, scopes: KernelScopes) -> None:
        if copy.via is not None and copy.via.data == "tma":
            why = unmapped(copy, scopes)
            if why is not None:
                raise error_at(copy, f"a tensor map cannot make this copy: {why}")

    def _width(self, copy: CopyOp, scopes: KernelScopes) -> None:
        load, store = copy.widths
        width = load if copy.spaces[0] == "global" else store
        if copy.unaligned is not None:
            if copy.spaces[0] == "global":
                if not readable_unaligned(copy, copy.vector_dim, scopes):
                    raise error_at(copy, "unaligned accesses need a source with a stride of 1 that nothing writes")
            elif not storable_unaligned(copy, copy.vector_dim, scopes, width):
                raise error_at(copy, "unaligned stores need a stride of 1, and a slot with rows along it")
        elif width > 1:
            provable = provable_width(copy, copy.vector_dim, scopes, whole=not copy.is_async)
            if provable < width:
                raise error_at(
                    copy, f"accesses of {width} elements are not proved to be aligned and inside; {provable} are"
                )
