"""What a kernel at the simt level promises of its machine code: read off the IR, op by op, never written by hand.

A promise that the IR makes and the machine code does not keep was lost in the emitter, in the intrinsics header or in
NVIDIA's compiler. `tests.kernels.checks` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import Attribute, Operation

from tilewright.dialects.simt import structure
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
from tilewright.dialects.simt.structure import KernelOp
from tilewright.dialects.simt.sync import BarrierOp, ShuffleOp
from tilewright.dialects.simt.tma import BulkCommitOp, BulkWaitOp, PrefetchMapOp, TmaLoadOp, TmaStoreOp
from tilewright.dialects.simt.types import GlobalType, SharedType
from tilewright.dialects.simt.wgmma import StMatrixOp, WgmmaCommitOp, WgmmaFenceOp, WgmmaOp, WgmmaRegsOp, WgmmaWaitOp
from tilewright.lowering.host_variants import element_bytes

WIDEST = 16
"""Bytes of the widest access of one thread (PTX ISA, ld.global.v4.b32); the header splits wider ones into these."""


@dataclass(frozen=True)
class Access:
    """An op that reads or writes memory: `kind` is load or store, `space` global or shared, `bytes` those of each
    instruction that it becomes, `text` the op as the IR prints it."""

    kind: str
    space: str
    bytes: int
    text: str


@dataclass(frozen=True)
class Array:
    """An array in a block's shared memory."""

    offset: int
    bytes: int
    text: str


@dataclass
class Promises:
    """All that one kernel promises; plain data, so that it can be kept as JSON."""

    threads: int
    smem: int
    """Bytes of shared memory that a launch asks for."""
    accesses: list[Access] = field(default_factory=list[Access])
    arrays: list[Array] = field(default_factory=list[Array])
    barriers: int = 0
    """Ops, not executions."""
    shuffles: dict[str, str] = field(default_factory=dict[str, str])
    """Mode to the first op of that mode."""
    fused: dict[str, str] = field(default_factory=dict[str, str])
    """Element type to the first fused multiply-add of it."""
    instructions: dict[str, str] = field(default_factory=dict[str, str])
    """Head of an opcode that belongs to one kind of op alone, to the first such op."""
    expands: list[str] = field(default_factory=list[str])
    """Ops that NVIDIA's compiler makes sequences of, fused multiply-adds among them: divisions, functions."""

    def as_json(self) -> dict[str, Any]:
        """The same as dicts, lists, numbers and strings."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Promises:
        """The opposite of `as_json`."""
        made = Promises(**data)
        made.accesses = [Access(**each) for each in data["accesses"]]
        made.arrays = [Array(**each) for each in data["arrays"]]
        return made


def promises_of(kernel: KernelOp) -> Promises:
    """What a kernel promises. An op of `simt` that is in no table below is a KeyError: give it its promise first."""
    made = Promises(kernel.threads.value.data, kernel.smem.value.data)
    for op in kernel.body.walk():
        read = READERS.get(type(op))
        if read is not None:
            read(made, op)
        elif op.name.startswith("simt.") and type(op) not in SILENT:
            raise KeyError(f"{op.name} promises nothing yet: tests/kernels/promises.py")
        elif isinstance(op, EXPANDING) or (op.name.startswith("math.") and type(op) not in SINGLE):
            made.expands.append(op.name)
    return made


def _access(kind: str) -> Callable[[Promises, Any], None]:
    def read(made: Promises, op: LoadOp | StoreOp) -> None:
        assert isinstance(op.memory.type, GlobalType | SharedType)
        space = "global" if isinstance(op.memory.type, GlobalType) else "shared"
        element = element_bytes(op.memory.type.element)
        made.accesses.append(Access(kind, space, min(op.width.value.data * element, WIDEST), str(op)))
        if op.reach is not None:
            # At the ends of what may be read, element by element.
            made.accesses.append(Access(kind, space, element, str(op)))

    return read


def _array(made: Promises, op: SharedOp) -> None:
    assert isinstance(op.res.type, SharedType)
    size = op.res.type.count * element_bytes(op.res.type.element)
    made.arrays.append(Array(op.offset.value.data, size, str(op)))


def _barrier(made: Promises, op: BarrierOp | NamedBarrierOp) -> None:
    made.barriers += 1


def _shuffle(made: Promises, op: ShuffleOp) -> None:
    made.shuffles.setdefault(op.mode.data, str(op))


def _roles(made: Promises, op: RolesOp) -> None:
    # The number of the warpgroup, the same in a whole warp.
    made.shuffles.setdefault("index", str(op))


_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "f16", BFloat16Type: "bf16", Float32Type: "f32", Float64Type: "f64",
}  # fmt: skip


def _fused(made: Promises, op: math.FmaOp) -> None:
    made.fused.setdefault(_FLOATS[type(op.results[0].type)], str(op))


SPECIAL: dict[type[Operation], tuple[str, ...]] = {
    LdmatrixOp: ("LDSM",),
    MmaSyncOp: ("HMMA",),
    CpAsyncOp: ("LDGSTS",),
    WgmmaOp: ("HGMMA", "WARPGROUP"),
    WgmmaRegsOp: ("HGMMA", "WARPGROUP"),
    PrefetchMapOp: ("UTMACCTL",),
    TmaLoadOp: ("UTMALDG",),
    ClusterBarrierOp: ("UCGABAR_ARV", "UCGABAR_WAIT"),
    TmaStoreOp: ("UTMASTG",),
    BulkCommitOp: ("UTMACMDFLUSH",),
    StMatrixOp: ("STSM",),
    MbarInitOp: ("SYNCS",),
    MbarArriveOp: ("SYNCS",),
    MbarExpectOp: ("SYNCS",),
    MbarWaitOp: ("SYNCS",),
}
"""Ops that become instructions of their own, by the heads of these instructions' names."""


def _special(made: Promises, op: Operation) -> None:
    for head in SPECIAL[type(op)]:
        made.instructions.setdefault(head, str(op))


READERS: dict[type[Operation], Callable[[Promises, Any], None]] = {
    BarrierOp: _barrier,
    LoadOp: _access("load"),
    SharedOp: _array,
    ShuffleOp: _shuffle,
    StoreOp: _access("store"),
    NamedBarrierOp: _barrier,
    **dict.fromkeys(SPECIAL, _special),
    RolesOp: _roles,
    math.FmaOp: _fused,
}
"""The ops that leave a trace in machine code which can be told from others."""

SILENT: set[type[Operation]] = {
    RegsAllocOp, RegsLoadOp, RegsStoreOp, structure.BlockIdOp, structure.GridDimOp, structure.TidOp, structure.UnrollOp,
    BulkWaitOp, ClusterRankOp, CpAsyncCommitOp, CpAsyncWaitOp, ElectOp, FenceOp, MbarOp, MisalignedOp,
    WgmmaCommitOp, WgmmaFenceOp, WgmmaWaitOp,
}  # fmt: skip
"""The ops of `simt` that leave none to be told apart: registers are what is not memory, ids are read in several ways,
waits and fences become instructions that others need too."""

EXPANDING = (arith.DivfOp, math.FPowIOp)
SINGLE: set[type[Operation]] = {math.AbsFOp, math.AbsIOp, math.CopySignOp, math.FmaOp}
"""Ops of `math` that are single instructions or integer arithmetic."""
