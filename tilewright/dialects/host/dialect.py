"""The `host` dialect."""

from xdsl.ir import Dialect

from tilewright.dialects.host.ops import (
    AllocOp,
    BindOp,
    DispatchOp,
    FuncOp,
    GuardOp,
    LaunchOp,
    LetOp,
    OutputOp,
    YieldOp,
)

Host = Dialect("host", [AllocOp, BindOp, DispatchOp, FuncOp, GuardOp, LaunchOp, LetOp, OutputOp, YieldOp], [])
