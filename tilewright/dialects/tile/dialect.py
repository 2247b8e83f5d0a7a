"""The `tile` dialect."""

from xdsl.ir import Dialect

from tilewright.dialects.tile.blocks import BlockCountOp, RasterOp, RolesOp, SliceOp
from tilewright.dialects.tile.channels import AcquireOp, ChannelOp, ChannelType, PublishOp, ReceiveOp, ReleaseOp
from tilewright.dialects.tile.compute import IndexOp, MapOp, MmaOp, ReduceOp
from tilewright.dialects.tile.copies import CopyOp, FillOp
from tilewright.dialects.tile.gathers import GatherOp
from tilewright.dialects.tile.structure import AllocOp, ForOp, KernelOp, SyncOp, YieldOp
from tilewright.dialects.tile.types import BufType, DistributedLayout, MixedLayout, StridedLayout, SwizzledLayout

Tile = Dialect(
    "tile",
    [
        AcquireOp,
        AllocOp,
        BlockCountOp,
        ChannelOp,
        CopyOp,
        FillOp,
        ForOp,
        GatherOp,
        IndexOp,
        KernelOp,
        MapOp,
        MmaOp,
        PublishOp,
        RasterOp,
        ReceiveOp,
        ReduceOp,
        ReleaseOp,
        RolesOp,
        SliceOp,
        SyncOp,
        YieldOp,
    ],
    [BufType, ChannelType, DistributedLayout, MixedLayout, StridedLayout, SwizzledLayout],
)
