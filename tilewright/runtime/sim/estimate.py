"""How long a simulated launch will take, from the ops that it will execute and what each was measured to cost.

The constants are seconds of one core of a 2.x GHz server processor (NumPy 2.4): good to a factor of two or three, which
is what a progress bar and a refusal of hopeless launches need. They follow from running each op alone over 256 and
65 536 threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import arith, math, scf
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.roles import WARPGROUP
from tilewright.dialects.simt.async_copy import CpAsyncOp
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.memory import LoadOp, RegsAllocOp, RegsLoadOp, RegsStoreOp, StoreOp
from tilewright.dialects.simt.roles import ElectOp, RolesOp
from tilewright.dialects.simt.structure import KernelOp, UnrollOp
from tilewright.dialects.simt.tma import TmaLoadOp, TmaStoreOp
from tilewright.dialects.simt.types import GlobalType, TmapType
from tilewright.dialects.simt.wgmma import WgmmaOp, WgmmaRegsOp
from tilewright.runtime.scalar_ops import SCALAR_OPS, quiet
from tilewright.runtime.sim.compiler import Level
from tilewright.runtime.sim.launch import compile_kernel, scalar_arguments
from tilewright.runtime.sim.vectorise import is_parallel

FIXED = 4e-6
"""Any op, however few threads: a call and a few NumPy calls."""
PRODUCT = 130e-6
"""A `simt.mma_sync` of one warp: 16 steps along k."""
LANE = 0.7e-9
"""One more thread of an ordinary op."""
_LANE_OF: dict[type[Operation], float] = {
    arith.DivSIOp: 2.2e-9,
    arith.RemSIOp: 3e-9,
    arith.FloorDivSIOp: 3e-9,
    arith.TruncFOp: 5.4e-9,
    math.FmaOp: 2.2e-9,
    math.ErfOp: 105e-9,
    **dict.fromkeys(
        (math.ExpOp, math.Exp2Op, math.LogOp, math.Log2Op, math.TanhOp, math.SinOp, math.CosOp, math.RsqrtOp), 6e-9
    ),
    math.PowFOp: 20e-9,
    RegsLoadOp: 0.2e-9,
    RegsStoreOp: 0.5e-9,
    RegsAllocOp: 0.3e-9,
    MmaSyncOp: 300e-9,
}
_ACCESS: dict[str, tuple[float, float, float]] = {
    # (fixed, each element, each request of a lane); shared accesses that all blocks share are counted once for all.
    "fast": (16e-6, 2.2e-9, 0.0),
    "count": (30e-6, 2.2e-9, 6.5e-9),
    "check": (90e-6, 5e-9, 15e-9),
}
MULTIPLICATION = 0.05e-9
"""One multiplication of a matrix instruction, and what is read for it."""
MATRIX = 60e-6
"""A matrix instruction, however many blocks and small."""
BOX = 40e-6
"""A box of a tensor map of one block."""
BOX_ELEMENT = 0.4e-9


@dataclass
class _Walk:
    """Sums costs over a kernel's ops; each region is visited once and weighted by its trip count."""

    level: Level
    threads: int
    known: dict[SSAValue, int | None] = field(default_factory=dict[SSAValue, "int | None"])
    fixed: float = 0.0
    """Seconds for each batch of blocks."""
    lanes: float = 0.0
    """Seconds for each block."""

    def block(self, block: Block, executions: float, iterations: float) -> None:
        """`executions` of the Python code, `iterations` of the work, which vectorised loops do many of at a time."""
        for op in block.ops:
            if isinstance(op, UnrollOp):
                count = op.count.value.data
                times = 1 if is_parallel(op, False) else count
                self.block(op.body.block, executions * times, iterations * count)
            elif isinstance(op, scf.ForOp):
                trips = self.trips(op)
                self.block(op.body.block, executions * trips, iterations * trips)
            elif isinstance(op, scf.IfOp | RolesOp | ElectOp):
                for region in op.regions:
                    if region.blocks:
                        self.block(region.block, executions, iterations)
            else:
                self.op(op, executions, iterations)

    def op(self, op: Operation, executions: float, iterations: float) -> None:
        """One op without regions."""
        lanes = iterations * self.threads
        if isinstance(op, LoadOp | StoreOp):
            fixed, element, request = _ACCESS[self.level]
            self.fixed += executions * fixed
            in_global = isinstance(op.memory.type, GlobalType)
            self.lanes += lanes * (op.width.value.data * element + (request if in_global else 0.0))
            return
        if isinstance(op, WgmmaOp | WgmmaRegsOp):
            tile = op.tile
            self.fixed += executions * MATRIX
            self.lanes += lanes / WARPGROUP * tile.m * tile.n * tile.k * MULTIPLICATION
            return
        if isinstance(op, TmaLoadOp | TmaStoreOp):
            assert isinstance(op.map.type, TmapType)
            self.lanes += iterations * (BOX + op.map.type.count * BOX_ELEMENT)
            return
        if isinstance(op, LdmatrixOp | CpAsyncOp):
            fixed, element, request = _ACCESS[self.level]
            width = op.registers if isinstance(op, LdmatrixOp) else op.width.value.data
            # A copy is looked at when it starts and when it lands.
            self.fixed += executions * fixed * (1 if isinstance(op, LdmatrixOp) else 2)
            self.lanes += lanes * (width * element + request)
            return
        self.fixed += executions * (PRODUCT if isinstance(op, MmaSyncOp) else FIXED)
        if not self.uniform(op):
            self.lanes += lanes * _LANE_OF.get(type(op), LANE)

    def uniform(self, op: Operation) -> bool:
        """Whether the result is one value for all threads and blocks (as far as constants and arguments show)."""
        return bool(op.results) and self.integer(op.results[0]) is not None

    def integer(self, value: SSAValue) -> int | None:
        """The value of an integer made of constants, arguments and loop variables (their first value); else None."""
        if value not in self.known:
            self.known[value] = self._integer(value)
        return self.known[value]

    def _integer(self, value: SSAValue) -> int | None:
        owner = value.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if isinstance(loop, UnrollOp):
                return 0
            if isinstance(loop, scf.ForOp) and value is owner.args[0]:
                return self.integer(loop.lb)
            return None
        if not owner.name.startswith("arith.") or type(owner) not in SCALAR_OPS:
            return None
        operands = [self.integer(o) for o in owner.operands]
        if any(o is None for o in operands):
            return None
        with quiet():
            arrays = [np.asarray(o, np.int64) for o in operands]
            found = SCALAR_OPS[type(owner)](owner, arrays, "typed")
        return int(found) if found.dtype.kind in "bi" else 0

    def trips(self, op: scf.ForOp) -> float:
        """The trip count; 1 where a bound is not known."""
        lower, upper, step = (self.integer(v) for v in (op.lb, op.ub, op.step))
        if lower is None or upper is None or not step:
            return 1.0
        return float(max(0, -(-(upper - lower) // step)))


def estimate_seconds(
    kernel: KernelOp, grid: int, scalars: list[int | float], *, level: Level = "fast", batch: int | None = None
) -> float:
    """Seconds that `simulate` will take for `grid` blocks with these scalars, to a factor of two or three.

    Both arms of a branch count; a loop whose bounds come from memory, the thread or the block counts once.
    """
    if grid <= 0:
        return 0.0
    walk = _Walk(level, kernel.threads.value.data)
    for argument, value in zip(scalar_arguments(kernel), scalars, strict=True):
        walk.known[argument] = int(value) if np.isfinite(value) else 0
    walk.block(kernel.body.block, 1.0, 1.0)
    size = batch or compile_kernel(kernel, level).batch_size(grid)
    return -(-grid // size) * walk.fixed + grid * walk.lanes
