"""The `tile` dialect."""

from xdsl.ir import Dialect

from tilewright.dialects.tile.compute import IndexOp, MapOp, MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp, SyncOp, YieldOp
from tilewright.dialects.tile.types import BufType, DistributedLayout, MixedLayout, StridedLayout

Tile = Dialect(
    "tile",
    [AllocOp, CopyOp, FillOp, ForOp, GatherOp, IndexOp, KernelOp, MapOp, MmaOp, ReduceOp, SyncOp, YieldOp],
    [BufType, DistributedLayout, MixedLayout, StridedLayout],
)
