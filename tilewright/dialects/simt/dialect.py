"""The `simt` dialect."""

from xdsl.ir import Dialect

from tilewright.dialects.simt.async_copy import CpAsyncCommitOp, CpAsyncOp, CpAsyncWaitOp
from tilewright.dialects.simt.clusters import ClusterBarrierOp, ClusterRankOp
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.mbarriers import (
    FenceOp,
    MbarArriveOp,
    MbarExpectOp,
    MbarInitOp,
    MbarOp,
    MbarWaitOp,
    NamedBarrierOp,
)
from tilewright.dialects.simt.memory import (
    LoadOp,
    MisalignedOp,
    RegsAllocOp,
    RegsLoadOp,
    RegsStoreOp,
    SharedOp,
    StoreOp,
)
from tilewright.dialects.simt.roles import ElectOp, RolesOp
from tilewright.dialects.simt.structure import BlockIdOp, GridDimOp, KernelOp, TidOp, UnrollOp
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.dialects.simt.tma import BulkCommitOp, BulkWaitOp, PrefetchMapOp, TmaLoadOp, TmaStoreOp
from tilewright.dialects.simt.types import GlobalType, MbarType, RegsType, SharedType, TensorMapAttr, TmapType
from tilewright.dialects.simt.wgmma import StMatrixOp, WgmmaCommitOp, WgmmaFenceOp, WgmmaOp, WgmmaRegsOp, WgmmaWaitOp

Simt = Dialect(
    "simt",
    [
        BarrierOp,
        BlockIdOp,
        BulkCommitOp,
        BulkWaitOp,
        ClusterBarrierOp,
        ClusterRankOp,
        ElectOp,
        FenceOp,
        GridDimOp,
        CpAsyncCommitOp,
        CpAsyncOp,
        CpAsyncWaitOp,
        KernelOp,
        LdmatrixOp,
        LoadOp,
        MbarArriveOp,
        MbarExpectOp,
        MbarInitOp,
        MbarOp,
        MbarWaitOp,
        NamedBarrierOp,
        MisalignedOp,
        MmaSyncOp,
        PrefetchMapOp,
        RegsAllocOp,
        RegsLoadOp,
        RegsStoreOp,
        RolesOp,
        SharedOp,
        ShuffleOp,
        StMatrixOp,
        StoreOp,
        TidOp,
        TmaLoadOp,
        TmaStoreOp,
        UnrollOp,
        WgmmaCommitOp,
        WgmmaFenceOp,
        WgmmaOp,
        WgmmaRegsOp,
        WgmmaWaitOp,
    ],
    [GlobalType, MbarType, RegsType, SharedType, TensorMapAttr, TmapType],
)
