"""arith and math ops, thread indices and shuffles: what is computed lane by lane.

`runtime.scalar_ops` says what each op means. The few ops that make up most of a kernel are called here as bare NumPy
functions when the operand types make that the same thing (a test holds the two to each other).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import Operation

from tilewright.dialects.simt.structure import BlockIdOp, GridDimOp, TidOp
from tilewright.dialects.simt.sync import ShuffleOp
from tilewright.runtime.numerics import Array, fma_f32, integer_width
from tilewright.runtime.scalar_ops import CMPI, SCALAR_OPS, quiet
from tilewright.runtime.sim.addresses import marking
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import State, Step

WARP = 32

Values: TypeAlias = Callable[..., Array]


_FLOAT32: dict[type[Operation], Values] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    math.FmaOp: fma_f32,
}
_INTEGER: dict[type[Operation], Values] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
}
_BITWISE: dict[type[Operation], Values] = {
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
}


def direct(op: Operation) -> Values | None:
    """A function of the operands' arrays alone that does what the op means, where there is one."""
    if isinstance(op, arith.SelectOp):
        return np.where
    element_type = op.operands[0].type
    if isinstance(element_type, Float32Type):
        return _FLOAT32.get(type(op))
    if not isinstance(element_type, IntegerType):
        return None
    if integer_width(op.operands[0].type) not in (32, 64):
        return _BITWISE.get(type(op))
    if isinstance(op, arith.CmpiOp):
        predicate = op.predicate.value.data
        return CMPI[predicate] if predicate < 6 else None
    return _INTEGER.get(type(op))


def compile_scalar(compiler: Compiler, op: Operation) -> Compiled:
    """An arith or math op."""
    target = compiler.slot(op.results[0])
    if isinstance(op, arith.ConstantOp):
        with quiet():
            constant = SCALAR_OPS[type(op)](op, [], "typed").reshape(1, 1)

        def run_constant(state: State) -> None:
            state.env[target] = constant

        return Compiled(run_constant, False)

    slots = [compiler.slot(operand) for operand in op.operands]
    run = _step(op, direct(op), target, slots)
    if compiler.checks and op.results[0] in compiler.address_values:
        run = marking(op, run, target, slots, compiler.site(op))
    return Compiled(run, False)


def _step(op: Operation, fn: Values | None, target: int, slots: Sequence[int]) -> Step:
    """The step that applies `fn`, or else the table's entry, to the operands."""
    if fn is None:
        meaning = SCALAR_OPS[type(op)]

        def run_table(state: State) -> None:
            env = state.env
            env[target] = meaning(op, [env[s] for s in slots], "typed")

        return run_table

    if len(slots) == 1:
        (only,) = slots

        def run_one(state: State) -> None:
            state.env[target] = fn(state.env[only])

        return run_one
    if len(slots) == 2:
        left, right = slots

        def run_two(state: State) -> None:
            env = state.env
            env[target] = fn(env[left], env[right])

        return run_two
    first, second, third = slots

    def run_three(state: State) -> None:
        env = state.env
        env[target] = fn(env[first], env[second], env[third])

    return run_three


def compile_tid(compiler: Compiler, op: TidOp) -> Compiled:
    """The thread's index in its block, (1, threads)."""
    target = compiler.slot(op.res)

    def run(state: State) -> None:
        first = state.first_thread
        state.env[target] = np.arange(first, first + state.threads, dtype=np.int32)[None, :]

    return Compiled(run, False)


def compile_block_id(compiler: Compiler, op: BlockIdOp) -> Compiled:
    """The block's index, (blocks, 1). Grids have one dimension, so y and z are 0."""
    target = compiler.slot(op.res)
    along_x = op.dim.data == "x"

    def run(state: State) -> None:
        if along_x:
            first = state.first_block
            state.env[target] = np.arange(first, first + state.blocks, dtype=np.int32)[:, None]
        else:
            state.env[target] = np.zeros((1, 1), np.int32)

    return Compiled(run, False)


def compile_grid_dim(compiler: Compiler, op: GridDimOp) -> Compiled:
    """The number of blocks."""
    target = compiler.slot(op.res)

    def run(state: State) -> None:
        state.env[target] = np.full((1, 1), state.grid, np.int32)

    return Compiled(run, False)


def shuffle_lanes(mode: str, amount: int, threads: int) -> Array:
    """For each thread, the thread whose value it gets."""
    thread = np.arange(threads)
    lane = thread % WARP
    if mode == "xor":
        source = lane ^ amount
    elif mode == "down":
        source = np.where(lane + amount < WARP, lane + amount, lane)
    else:
        source = np.full_like(lane, amount)
    return thread - lane + source


def compile_shuffle(compiler: Compiler, op: ShuffleOp) -> Compiled:
    """An exchange between the lanes of each warp."""
    target, value = compiler.slot(op.res), compiler.slot(op.value)
    lanes = shuffle_lanes(op.mode.data, op.amount.value.data, compiler.kernel.threads.value.data)

    def run(state: State) -> None:
        values = state.env[value]
        # One value for all threads stays what it is.
        # A role has the first lanes of the table: its threads count from 0 here.
        state.env[target] = values if values.shape[-1] == 1 else values[..., lanes[: state.threads]]

    if not compiler.checks:
        return Compiled(run, False)
    site = compiler.site(op)

    def run_checked(state: State) -> None:
        run(state)
        report_partial_warps(state, site, "a shuffle")

    return Compiled(run_checked, False)


def report_partial_warps(state: State, site: Site, what: str) -> None:
    """Report lanes that do not take part in what all 32 of their warp do, or none."""
    mask = state.mask
    if mask is None:
        return
    whole = np.broadcast_to(mask, (*mask.shape[:-1], state.threads))
    warps = whole.reshape(*whole.shape[:-1], -1, WARP)
    partial = warps.any(-1, keepdims=True) & ~warps
    message = f"{what} without all lanes of its warp"
    state.fault("barrier-divergence", site, partial.reshape(whole.shape), message)


def scalar_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for ops without memory or regions."""
    table: dict[type[Operation], CompileFn] = dict.fromkeys(SCALAR_OPS, compile_scalar)
    table[TidOp] = compile_tid
    table[BlockIdOp] = compile_block_id
    table[GridDimOp] = compile_grid_dim
    table[ShuffleOp] = compile_shuffle
    return table
