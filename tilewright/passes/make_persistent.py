"""The pass `make-persistent`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.assembly import int_array
from tilewright.dialects.sym import ApplyOp, Expr, floordiv, mod
from tilewright.dialects.sym.attributes import DimsAttr
from tilewright.dialects.tile.blocks import BlockCountOp, RasterOp
from tilewright.dialects.tile.channels import ChannelOp, ReleaseOp
from tilewright.dialects.tile.compute import MmaOp
from tilewright.dialects.tile.structure import ForOp, KernelOp
from tilewright.passes.core import TilewrightPass, error_at
from tilewright.passes.remarks import remark
from tilewright.passes.tile_analysis import kernels_of


@dataclass(frozen=True)
class MakePersistentPass(TilewrightPass):
    """Lets a block compute one tile after the other, in an order that shares operands in the cache.

    The kernel is launched with as many blocks as run at once; block b takes the tiles b, b + blocks, ..., in a raster
    of `group` rows. Of a kernel with clusters these are tiles of clusters, of which each block has its own: so all
    blocks of a cluster make the same turns. Copies for the next tile can then run while the last one is stored. Only
    kernels with a product on matrix instructions are changed, whose blocks fill a processor each. Relies on
    `choose-mma`.
    """

    name = "make-persistent"
    level = "tile"
    group: int = 8

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.group < 1:
            raise error_at(op, f"make-persistent: expected groups of at least one row, got {self.group}")
        for kernel in kernels_of(op):
            products = [o for o in kernel.walk() if isinstance(o, MmaOp)]
            on_matrix = len(products) == 1 and products[0].inst is not None and products[0].inst.data == "wgmma"
            if not on_matrix or kernel.persistent is not None:
                continue
            if len(kernel.grid.data) - (1 if kernel.is_clustered else 0) < 2:
                remark(kernel, self.name, "left as it is: its grid has no rows and columns")
                continue
            self._wrap(kernel)

    def _wrap(self, kernel: KernelOp) -> None:
        block, grid = kernel.body.block, kernel.grid.data
        coordinates = list(kernel.coordinates)
        together, rank = kernel.cluster_size, None
        if kernel.is_clustered:
            # `form-clusters` made the last dim the place in a cluster.
            rank, grid, coordinates = coordinates[-1], grid[:-1], coordinates[:-1]
        tiles = Expr.const(1)
        for size in grid:
            tiles = tiles * size
        inside = [o for o in block.ops if not isinstance(o, ChannelOp)]
        channels = {o.res for o in block.ops if isinstance(o, ChannelOp)}
        # What was stored last need not have arrived before the next tile is computed.
        last = [o for o in inside if isinstance(o, ReleaseOp) and not o.lag.value.data and o.channel in channels]
        body = Block(arg_types=[IndexType()])
        tile = body.args[0]
        tile.name_hint = "tile"
        first: list[Operation] = []
        plane = grid[-2] * grid[-1]
        rest: SSAValue = tile
        for number, coordinate in enumerate(coordinates[:-2]):
            following = plane
            for size in grid[number + 1 : -2]:
                following = following * size
            place = ApplyOp(floordiv(Expr.symbol("t"), following), {"t": rest})
            left = ApplyOp(mod(Expr.symbol("t"), following), {"t": rest})
            first += [place, left]
            coordinate.replace_all_uses_with(place.result)
            rest = left.result
        raster = RasterOp(rest, grid[-2:], self.group)
        raster.row.name_hint, raster.column.name_hint = (c.name_hint for c in coordinates[-2:])
        coordinates[-2].replace_all_uses_with(raster.row)
        coordinates[-1].replace_all_uses_with(raster.column)
        body.add_ops([*first, raster])
        for each in inside:
            each.detach()
            if each not in last:
                body.add_op(each)
        in_cluster: list[Operation] = []
        if rank is not None:
            in_cluster = [ApplyOp(mod(Expr.symbol("b"), together), {"b": coordinates[0]})]
            in_cluster[0].results[0].name_hint = rank.name_hint
            rank.replace_all_uses_with(in_cluster[0].results[0])
            block.erase_arg(rank)
        for coordinate in coordinates[1:]:
            block.erase_arg(coordinate)
        coordinates[0].name_hint = "block"
        count = BlockCountOp()
        count.res.name_hint = "blocks"
        loop = ForOp(
            floordiv(Expr.symbol("b"), together),
            tiles,
            floordiv(Expr.symbol("n"), together),
            Region(body),
            where={"b": coordinates[0], "n": count.res},
        )
        for new in (count, loop, *in_cluster, *first, raster):
            new.location = kernel.location
        block.add_ops([*in_cluster, count, loop, *last])
        kernel.properties["grid"] = DimsAttr((tiles * together,))
        if rank is not None:
            kernel.properties["cluster"] = int_array([together])
        else:
            kernel.properties.pop("cluster", None)
        kernel.properties["persistent"] = UnitAttr()
        remark(loop, self.name, f"blocks take tiles in turn, {self.group} rows of tiles at a time")
