"""`ldmatrix` and `mma.sync`: what the 32 lanes of a warp do together, by `dialects/simt/fragments.py`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.simt.fragments import LANES, MATRIX_ROWS, ROW_BYTES, MmaShape, Places, ldmatrix_elements
from tilewright.dialects.simt.matrix import LdmatrixOp, MmaSyncOp
from tilewright.dialects.simt.types import RegsType, SharedType
from tilewright.runtime.numerics import Array, storage_dtype
from tilewright.runtime.scalar_ops import carrier_dtype
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler
from tilewright.runtime.sim.memory import shared_array, written
from tilewright.runtime.sim.observers import Counter, Observer, Place, alignment_check, swizzled_bytes, wrap_check
from tilewright.runtime.sim.registers import check_initialised, register_access
from tilewright.runtime.sim.scalars import report_partial_warps
from tilewright.runtime.sim.state import State

TF32_IGNORED = 0x1FFF
"""Bits of an f32 that a tf32 operand does not have."""


def compile_ldmatrix(compiler: Compiler, op: LdmatrixOp) -> Compiled:
    """`simt.ldmatrix`: each lane reads its words from the rows that other lanes name."""
    assert isinstance(op.memory.type, SharedType)
    element = op.memory.type.element
    dtype, carrier = storage_dtype(element), carrier_dtype(element, "typed")
    size, matrices, width = dtype.itemsize, op.count.value.data, op.registers
    offset, count = shared_array(compiler, op, op.memory)
    threads = np.arange(compiler.kernel.threads.value.data)
    places = np.array(ldmatrix_elements(matrices, size, op.trans is not None))[threads % LANES]
    # (registers, threads): the thread whose address names the row, and the element in it.
    source = (threads // LANES * LANES + places[:, :, 0].T).astype(np.intp)
    within = places[:, :, 1].T.astype(np.int64)
    named = threads % LANES < MATRIX_ROWS * matrices
    per_row = ROW_BYTES // size
    site = compiler.site(op, "shared")
    exist = f"elements 0..{count - 1} exist"
    swizzle = op.memory.type.swizzle.data
    place = Place(site, -1, offset, size, per_row, compiler.vector_counts, swizzle)
    slot = compiler.slot(op.index)
    registers = register_access(compiler, op, op.regs, op.indices, width)
    mark = written(compiler, op.regs, registers)
    observers: list[Observer] = []
    if compiler.counts:
        compiler.access_sites.append(site)
        observers.append(Counter(place))
    if compiler.checks:
        observers += [wrap_check(place, slot, None), alignment_check(place)]
    cell = compiler.cell
    pieces = np.arange(max(1, size // cell))

    def run(state: State) -> None:
        mask = state.mask
        if mask is not None and not mask.any():
            return
        if compiler.checks:
            report_partial_warps(state, site, "ldmatrix")
        index = place.all_axes(state.env[slot])
        index = np.broadcast_to(index, (*index.shape[:-1], state.threads)).astype(np.int64)
        # A role has the first threads of the tables: its threads count from 0 here.
        here = slice(0, state.threads)
        lanes = named[here] if mask is None else named[here] & mask
        outside = ((index < 0) | (index > count - per_row)) & lanes
        if outside.any():
            if not compiler.checks:
                first = int(np.broadcast_to(index, outside.shape)[outside][0])
                raise TilewrightError(f"{op.name} out of bounds: a row at element {first}: {exist}", site.location)
            state.fault("out-of-bounds", site, outside, exist, index)
        index = np.where(lanes & ~outside, index, 0)
        for observer in observers:
            observer(state, index, lanes)
        elements = np.moveaxis(index[..., source[:, here]], -2, 0)
        elements = elements + within[:, here].reshape(width, *[1] * (elements.ndim - 2), state.threads)
        # A misaligned row, reported above, may reach beyond the end.
        elements = np.minimum(elements, count - 1)
        if state.races is not None:
            cells = (swizzled_bytes(elements * size, swizzle) + offset) // cell + pieces.reshape(
                -1, *[1] * elements.ndim
            )
            state.races.on_read(state, site, cells.reshape(-1, *elements.shape[1:]), mask)
        memory = state.shared.data.view(dtype)
        rows = np.arange(state.blocks, dtype=np.int64) * (state.shared.pitch // size) + offset // size
        if swizzle:
            elements = swizzled_bytes(elements * size, swizzle) // size
        values = memory.take(elements + rows[:, None]).astype(carrier, copy=False)
        registers.write(state, values if width > 1 else values[0], mask)
        mark(state)

    return Compiled(run, False)


@dataclass(frozen=True, slots=True)
class _Gather:
    """Index tables of a shape: register * 32 + lane of each element of A, B and C, (rows, columns); and back for C."""

    a: Array
    b: Array
    c: Array
    back: tuple[Array, Array]
    """(row, column) of each register of C, (registers, lanes)."""


@cache
def _gather(shape: MmaShape) -> _Gather:
    table = np.array(shape.c)
    return _Gather(_inverse(shape.a), _inverse(shape.b), _inverse(shape.c), (table[..., 0].T, table[..., 1].T))


def _inverse(places: Places) -> Array:
    table = np.array(places)
    lane, register = np.indices(table.shape[:2])
    found = np.empty(tuple(int(n) for n in table.reshape(-1, 2).max(0) + 1), np.intp)
    found[table[..., 0], table[..., 1]] = register * LANES + lane
    return found


def _whole(fragment: Array, places: Array) -> Array:
    """The matrices (rows, columns, axes..., warps) of a fragment (registers, axes..., threads)."""
    by_warp = np.moveaxis(fragment.reshape(*fragment.shape[:-1], -1, LANES), -1, 1)
    return by_warp.reshape(-1, *by_warp.shape[2:])[places]


def multiply(shape: MmaShape, a: Array, b: Array, c: Array) -> Array:
    """D = A B + C of float32 fragments (registers, axes..., threads), the axes broadcast to those of C.

    Sums go over k ascending, each rounded to f32, as `MmaSyncOp` says.
    """
    gather = _gather(shape)
    left, right, total = _whole(a, gather.a), _whole(b, gather.b), _whole(c, gather.c)
    for k in range(shape.k):
        total += left[:, k, None] * right[None, k]
    found = total[gather.back]  # (registers, lanes, axes..., warps)
    return np.moveaxis(found, 1, -1).reshape(c.shape)


def as_tf32(values: Array) -> Array:
    """float32 values without the fraction bits that tf32 lacks."""
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFFFFF ^ TF32_IGNORED)).view(np.float32)


def compile_mma_sync(compiler: Compiler, op: MmaSyncOp) -> Compiled:
    """`simt.mma_sync`."""
    shape = op.mma
    assert isinstance(op.a.type, RegsType)
    tf32 = isinstance(op.a.type.element, Float32Type)
    operands = (
        (op.a, op.a_indices, shape.a_registers),
        (op.b, op.b_indices, shape.b_registers),
        (op.c, op.c_indices, shape.c_registers),
    )
    accesses = [register_access(compiler, op, regs, indices, width) for regs, indices, width in operands]
    a, b, c = accesses
    site = compiler.site(op)
    checked = [
        check_initialised(compiler, op, regs, access) if compiler.checks else None
        for (regs, _, _), access in zip(operands, accesses, strict=True)
    ]

    def run(state: State) -> None:
        if state.mask is not None and not state.mask.any():
            return
        if compiler.checks:
            report_partial_warps(state, site, "mma.sync")
        for check in checked:
            if check is not None:
                check(state, None)
        left, right = a.read(state, False), b.read(state, False)
        if tf32:
            left, right = as_tf32(left), as_tf32(right)
        c.write(state, multiply(shape, left, right, c.read(state, False)), state.mask)

    return Compiled(run, False)


def matrix_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for matrices of a warp."""
    return {LdmatrixOp: compile_ldmatrix, MmaSyncOp: compile_mma_sync}
