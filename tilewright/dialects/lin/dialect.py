"""The dialect object: every op of `lin`."""

from __future__ import annotations

from xdsl.ir import Dialect

from tilewright.dialects.lin.access import AccessAttr
from tilewright.dialects.lin.body import IndexOp, YieldOp
from tilewright.dialects.lin.clamp import ClampOp
from tilewright.dialects.lin.concat import ConcatOp
from tilewright.dialects.lin.contraction import BatchMatmulOp, MatmulOp
from tilewright.dialects.lin.convolution import Conv2dOp
from tilewright.dialects.lin.elementwise import CastOp, MapOp
from tilewright.dialects.lin.gather import GatherOp
from tilewright.dialects.lin.generic import GenericOp
from tilewright.dialects.lin.group import GroupOp
from tilewright.dialects.lin.pad import PadOp
from tilewright.dialects.lin.reduction import ReduceOp
from tilewright.dialects.lin.reshape import ReshapeOp
from tilewright.dialects.lin.slice import SliceOp
from tilewright.dialects.lin.softmax import SoftmaxOp
from tilewright.dialects.lin.transpose import TransposeOp

Lin = Dialect(
    "lin",
    [
        GenericOp,
        YieldOp,
        IndexOp,
        MapOp,
        ReduceOp,
        MatmulOp,
        BatchMatmulOp,
        SoftmaxOp,
        TransposeOp,
        CastOp,
        ClampOp,
        SliceOp,
        PadOp,
        ConcatOp,
        ReshapeOp,
        GatherOp,
        Conv2dOp,
        GroupOp,
    ],
    [AccessAttr],
)
