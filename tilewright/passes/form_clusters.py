"""The pass `form-clusters`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import SSAValue

from tilewright.dialects.assembly import int_array
from tilewright.dialects.roles import CLUSTERS
from tilewright.dialects.sym import ApplyOp, Expr, ceildiv
from tilewright.dialects.sym.attributes import DimsAttr
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.copies import CopyOp
from tilewright.dialects.tile.structure import KernelOp
from tilewright.passes.choose_mma import WARPGROUP_ARCH
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import kernels_of

DIMS = {"rows": -2, "columns": -1}
"""The grid dim that counts the tiles along each side of a result."""


@dataclass(frozen=True)
class FormClustersPass(TilewrightPass):
    """Makes blocks that are to be a cluster follow one another: their place in it becomes the last grid dim.

    A kernel whose `cluster` is `[2, 1]` over a grid of rows and columns of tiles gets a grid of pairs of rows, columns,
    and two blocks of a cluster. Where the number of rows is odd, the last cluster has a tile beyond the edge, of which
    copies are clipped. So a kernel may not have `proved` bounds yet. `along` (`rows` or `columns`) asks for clusters of
    `size` blocks in kernels with a product that do not ask themselves.
    """

    name = "form-clusters"
    level = "tile"
    along: str | None = None
    size: int = 2

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.along is not None and self.along not in DIMS:
            raise error_at(op, f"form-clusters: expected along to be {' or '.join(DIMS)}, got {self.along}")
        if self.size not in CLUSTERS:
            raise error_at(op, f"form-clusters: expected a size of {', '.join(map(str, CLUSTERS))}, got {self.size}")
        for kernel in kernels_of(op):
            multiplies = any(isinstance(inner, MmaOp) for inner in kernel.walk())
            if self.along is not None and kernel.cluster is None and multiplies and len(kernel.grid.data) >= 2:
                wanted = [1] * len(kernel.grid.data)
                wanted[DIMS[self.along]] = self.size
                kernel.properties["cluster"] = int_array(wanted)
            if kernel.cluster is not None and not _has_own_dim(kernel):
                self._form(kernel)

    def _form(self, kernel: KernelOp) -> None:
        several = [d for d, n in enumerate(kernel.clusters) if n > 1]
        if kernel.arch is not None and kernel.arch.data != WARPGROUP_ARCH:
            del kernel.properties["cluster"]
            remark(kernel, self.name, f"no clusters: {kernel.arch.data} has none")
            return
        if len(several) > 1 or kernel.persistent is not None or _has_proved_bounds(kernel):
            del kernel.properties["cluster"]
            remark(kernel, self.name, "no clusters: of several dims, of a persistent kernel, or after prove-bounds")
            return
        (dim,) = several
        size, block = kernel.clusters[dim], kernel.body.block
        coordinate = kernel.coordinates[dim]
        if kernel.grid.data[dim].constant == 1 or not _stores_by(kernel, coordinate):
            del kernel.properties["cluster"]
            remark(kernel, self.name, f"no clusters: blocks along grid dim {dim} store to the same place")
            return
        rank = block.insert_arg(IndexType(), len(block.args))
        rank.name_hint = "rank"
        tile = ApplyOp(size * Expr.symbol("c") + Expr.symbol("r"), {"c": coordinate, "r": rank})
        tile.result.name_hint = coordinate.name_hint
        tile.location = kernel.location
        for use in list(coordinate.uses):
            use.operation.operands[use.index] = tile.result
        tile.operands[0] = coordinate
        first = block.first_op
        if first is None:
            block.add_op(tile)
        else:
            block.insert_op_before(tile, first)
        grid = [ceildiv(n, size) if d == dim else n for d, n in enumerate(kernel.grid.data)]
        kernel.properties["grid"] = DimsAttr((*grid, Expr.const(size)))
        kernel.properties["cluster"] = int_array([1] * len(grid) + [size])
        remark(kernel, self.name, f"{size} neighbours along grid dim {dim} are a cluster")


def _stores_by(kernel: KernelOp, coordinate: SSAValue) -> bool:
    """Whether all that is stored to global memory goes where the coordinate says. Else a block whose tile is beyond the
    edge would store over another's: nothing clips it."""
    moved: set[SSAValue] = {coordinate}
    for op in kernel.walk():
        if any(operand in moved for operand in op.operands):
            moved.update(op.results)
    stores = [op for op in kernel.walk() if isinstance(op, CopyOp) and op.spaces[1] == "global"]
    return all(any(offset in moved for offset in op.target_offsets) for op in stores)


def _has_own_dim(kernel: KernelOp) -> bool:
    """Whether the last grid dim is the place in a cluster."""
    return kernel.is_clustered and kernel.grid.data[-1].constant == kernel.cluster_size


def _has_proved_bounds(kernel: KernelOp) -> bool:
    """Whether something relies on where the tiles are."""
    return any("proved" in getattr(op, "bound_words", ()) for op in kernel.walk())
