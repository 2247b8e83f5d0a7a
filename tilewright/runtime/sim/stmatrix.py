"""`simt.stmatrix`: a warp stores four 8 x 8 matrices of 16-bit elements, a row of 16 bytes from each lane's address."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.memory import SharedOp
from tilewright.dialects.simt.types import SharedType
from tilewright.dialects.simt.wgmma import StMatrixOp
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler
from tilewright.runtime.sim.machine import CHUNK, Chunks
from tilewright.runtime.sim.observers import Counter, Place
from tilewright.runtime.sim.registers import check_initialised, flight_check, register_access
from tilewright.runtime.sim.state import WARP, State
from tilewright.runtime.sim.tensor_maps import swizzled_chunks

ROW = 8
"""Elements of a row of a matrix."""


def fragments_as_rows(registers: Array, trans: bool) -> Array:
    """Registers (8, blocks, threads) to the row that each lane's address gets, (blocks, threads, 8)."""
    _, blocks, threads = registers.shape
    # Register 2 q + c of lane 4 r + j is element (r, 2 j + c) of matrix q; lane 8 q + r has the address of its row r.
    parts = registers.reshape(4, 2, blocks, threads // WARP, 8, 4).transpose(2, 3, 0, 4, 5, 1)  # b, w, q, r, j, c
    matrices = parts.reshape(blocks, threads // WARP, 4, 8, 8)
    if trans:
        matrices = np.swapaxes(matrices, -1, -2)
    return matrices.reshape(blocks, threads, ROW)


def compile_stmatrix(compiler: Compiler, op: StMatrixOp) -> Compiled:
    """`simt.stmatrix`."""
    if not isinstance(op.shared.owner, SharedOp):
        raise TilewrightError("expected shared memory made by simt.shared", location_of(op))
    assert isinstance(op.shared.type, SharedType)
    offset, count, swizzle = op.shared.owner.offset.value.data, op.shared.type.count, op.shared.type.swizzle.data
    dtype = storage_dtype(op.shared.type.element)
    site = compiler.site(op, "shared")
    access = register_access(compiler, op, op.regs, op.indices, ROW)
    index_slot = compiler.slot(op.index)
    trans = op.trans is not None
    checks = compiler.checks
    initialised = check_initialised(compiler, op, op.regs, access) if checks else None
    in_flight = flight_check(compiler, op, op.regs, access)
    counter = Counter(Place(site, -1, offset, dtype.itemsize, ROW, (), swizzle)) if compiler.counts else None
    if compiler.counts:
        compiler.access_sites.append(site)

    def run(state: State) -> None:
        active = state.active()
        if not active.any():
            return
        index = np.broadcast_to(state.env[index_slot], (state.blocks, state.threads))
        outside = ((index < 0) | (index > count - ROW)) & active
        misaligned = (index * dtype.itemsize % CHUNK != 0) & active
        if outside.any() or misaligned.any():
            if not checks:
                raise TilewrightError(f"{site.op_name}: an address is out of bounds or misaligned", site.location)
            state.fault("out-of-bounds", site, outside, f"elements 0..{count - 1} exist", index)
            state.fault("misaligned", site, misaligned, "the address is not a multiple of 16 bytes", index)
            active = active & ~outside & ~misaligned
        index = np.where(active, index, 0)
        chunks = offset // CHUNK + swizzled_chunks(index * dtype.itemsize // CHUNK, swizzle)
        if counter is not None:
            counter(state, index, active)
        if checks:
            _check(state, active)
            if initialised is not None:
                initialised(state, active)
            if in_flight is not None:
                in_flight(state)
            assert state.races is not None
            assert state.machine is not None
            assert state.machine.clocks is not None
            each = CHUNK // state.machine.clocks.cell
            cells = chunks[None] * each + np.arange(each)[:, None, None]
            state.races.on_write(state, site, cells, active)
        values = np.broadcast_to(access.read(state, False), (ROW, state.blocks, state.threads))
        rows = np.ascontiguousarray(fragments_as_rows(values, trans).astype(dtype)).view(Chunks)[..., 0]
        chunks = chunks + (np.arange(state.blocks) * (state.shared.pitch // CHUNK))[:, None]
        state.shared.data.view(Chunks)[chunks[active]] = rows[active]

    def _check(state: State, active: Array) -> None:
        warps = active.reshape(state.blocks, -1, WARP)
        partial = (warps.any(-1, keepdims=True) & ~warps).reshape(active.shape)
        state.fault("barrier-divergence", site, partial, "a stmatrix without all lanes of its warp")

    return Compiled(run, False)


def stmatrix_table() -> dict[type[Operation], CompileFn]:
    """The entry of the compiler's table."""
    return {StMatrixOp: compile_stmatrix}
