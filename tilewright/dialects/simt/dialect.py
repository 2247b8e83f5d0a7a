"""The `simt` dialect."""

from xdsl.ir import Dialect

from tilewright.dialects.simt.async_copy import CpAsyncCommitOp, CpAsyncOp, CpAsyncWaitOp
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, RegsLoadOp, RegsStoreOp, SharedOp, StoreOp
from tilewright.dialects.simt.structure import BlockIdOp, KernelOp, TidOp, UnrollOp
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.dialects.simt.types import GlobalType, RegsType, SharedType

Simt = Dialect(
    "simt",
    [
        BarrierOp,
        BlockIdOp,
        CpAsyncCommitOp,
        CpAsyncOp,
        CpAsyncWaitOp,
        KernelOp,
        LdmatrixOp,
        LoadOp,
        MmaSyncOp,
        RegsAllocOp,
        RegsLoadOp,
        RegsStoreOp,
        SharedOp,
        ShuffleOp,
        StoreOp,
        TidOp,
        UnrollOp,
    ],
    [GlobalType, RegsType, SharedType],
)
