"""Loops, branches and the block barrier, under masks.

A condition or bound that is one value for all threads is followed as Python would; one that differs narrows the mask.
A mask that is true everywhere is None.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation

from tilewright.diagnostics import TilewrightError
from tilewright.dialects.location import location_of
from tilewright.dialects.simt.structure import UnrollOp
from tilewright.dialects.simt.sync import BarrierOp
from tilewright.runtime.numerics import Array, integer_dtype
from tilewright.runtime.sim.addresses import move_marks, report_control
from tilewright.runtime.sim.compiler import Compiled, CompileFn, Compiler, Loop, around, nothing
from tilewright.runtime.sim.report import Site
from tilewright.runtime.sim.state import BarrierWait, State, Waiting
from tilewright.runtime.sim.vectorise import MAX_ITERATIONS, is_parallel


def narrow(mask: Array | None, condition: Array) -> tuple[bool, Array | None]:
    """(whether any thread is active, the mask) where both the mask and the condition hold."""
    both = condition if mask is None else mask & condition
    if not both.any():
        return False, both
    return True, None if mask is None and both.all() else both


def compile_unroll(compiler: Compiler, op: UnrollOp) -> Compiled:
    """`simt.unroll`: an array axis where that is the same, else a Python loop."""
    count = op.count.value.data
    product = count
    for n in compiler.vector_counts:
        product *= n
    vector = compiler.vectorise and product <= MAX_ITERATIONS and is_parallel(op, compiler.aliased)
    slot = compiler.slot(op.variable)
    compiler.loops.append(Loop(op, slot, count, vector))
    if vector:
        compiler.widest = max(compiler.widest, product)
    axes = len(compiler.vector_loops)
    body = compiler.block(op.body.block)
    compiler.loops.pop()
    if vector:
        values = np.arange(count, dtype=np.int32).reshape((count,) + (1,) * (axes + 1))
        step = body.step()

        def run_axis(state: State) -> None:
            state.env[slot] = values
            step(state)

        return Compiled(run_axis, False)
    iterations = [np.full((1, 1), i, np.int32) for i in range(count)]

    def run(state: State) -> Generator[Waiting, None, None]:
        for i, value in enumerate(iterations):
            state.env[slot] = value
            state.loops[slot] = i
            if body.waits:
                yield from body.run(state)
            else:
                body.run(state)

    return around(run, body.waits)


def compile_if(compiler: Compiler, op: scf.IfOp) -> Compiled:
    """`scf.if`: the results are merged thread by thread."""
    condition = compiler.slot(op.cond)
    arms: list[tuple[Compiled, list[int]]] = []
    for region in (op.true_region, op.false_region):
        if not region.blocks:
            arms.append((nothing(), []))
            continue
        block = region.block
        body = compiler.block(block)
        last = block.last_op
        yielded = [compiler.slot(v) for v in last.operands] if isinstance(last, scf.YieldOp) else []
        arms.append((body, yielded))
    targets = [compiler.slot(r) for r in op.results]
    place = str(compiler.site(op))
    (true_body, true_values), (false_body, false_values) = arms

    def run(state: State) -> Generator[Waiting, None, None]:
        env = state.env
        where: Array = env[condition]
        if state.poisoned:
            report_control(state, [condition], place)
        outer = state.mask
        on_true, true_mask = narrow(outer, where)
        on_false, false_mask = (False, None) if on_true and true_mask is None else narrow(outer, ~where)
        if on_true:
            state.mask = true_mask
            yield from true_body.drive(state)
        if on_false:
            state.mask = false_mask
            yield from false_body.drive(state)
        state.mask = outer
        if state.poisoned:
            for target, *sources in zip(targets, true_values, false_values, strict=True):
                move_marks(state, target, sources)
        found: list[Array]
        if not on_false:
            found = [env[s] for s in true_values]
        elif not on_true:
            found = [env[s] for s in false_values]
        else:
            found = [np.where(where, env[a], env[b]) for a, b in zip(true_values, false_values, strict=True)]
        for target, value in zip(targets, found, strict=True):
            env[target] = value

    return around(run, true_body.waits or false_body.waits)


def compile_for(compiler: Compiler, op: scf.ForOp) -> Compiled:
    """`scf.for` over i32 or i64, signed; bounds may differ by block or by thread, the step is positive."""
    lower, upper, step = (compiler.slot(v) for v in (op.lb, op.ub, op.step))
    initial = [compiler.slot(v) for v in op.iter_args]
    variable, *carried = (compiler.slot(v) for v in op.body.block.args)
    body = compiler.block(op.body.block)
    last = cast(Operation, op.body.block.last_op)
    yielded = [compiler.slot(v) for v in last.operands]
    targets = [compiler.slot(r) for r in op.results]
    dtype = integer_dtype(op.lb.type)
    location = location_of(op)
    place = str(compiler.site(op))

    def run(state: State) -> Generator[Waiting, None, None]:
        env = state.env
        low, high, by = env[lower], env[upper], env[step]
        if by.min() <= 0:
            raise TilewrightError(f"scf.for: expected a positive step, got {int(by.min())}", location)
        if state.poisoned:
            report_control(state, [lower, upper, step], place)
        _carry(state, carried, initial)
        if low.size == high.size == by.size == 1:
            for i in range(int(low.item()), int(high.item()), int(by.item())):
                env[variable] = np.full((1, 1), i, dtype)
                if body.waits:
                    yield from body.run(state)
                else:
                    body.run(state)
                if carried:
                    _carry(state, carried, yielded)
        else:
            yield from masked(state, low, high, by)
        _carry(state, targets, carried)

    def masked(state: State, low: Array, high: Array, by: Array) -> Generator[Waiting, None, None]:
        env = state.env
        outer = state.mask
        # int64, so that the last step cannot wrap.
        at = low.astype(np.int64)
        while True:
            any_active, state.mask = narrow(outer, at < high)
            if not any_active:
                break
            active = state.mask
            env[variable] = at.astype(dtype)
            yield from body.drive(state)
            if state.poisoned:
                for target, source in zip(carried, yielded, strict=True):
                    move_marks(state, target, [target, source])
            new = [env[s] for s in yielded]
            for target, value in zip(carried, new, strict=True):
                env[target] = value if active is None else np.where(active, value, env[target])
            at = at + by
        state.mask = outer

    return around(run, body.waits)


def _carry(state: State, targets: Sequence[int], sources: Sequence[int]) -> None:
    """Assign all at once: a source may be another's target."""
    if state.poisoned:
        marks = [state.poisoned.get(s) for s in sources]
        for target, mark in zip(targets, marks, strict=True):
            if mark is None:
                state.poisoned.pop(target, None)
            else:
                state.poisoned[target] = mark
    env = state.env
    for target, value in zip(targets, [env[s] for s in sources], strict=True):
        env[target] = value


def compile_barrier(compiler: Compiler, op: BarrierOp) -> Compiled:
    """`simt.barrier`: the one op that waits."""
    site = compiler.site(op)
    checks = compiler.checks

    def run(state: State) -> Generator[Waiting, None, None]:
        if checks:
            check_barrier(state, site)
        generation = state.barrier.arrive()
        yield BarrierWait(site, state.barrier, generation)

    return Compiled(run, True)


def check_barrier(state: State, site: Site) -> None:
    """Report a barrier that only some threads of a block reach, and tell the race model of the barrier."""
    mask = state.mask
    if mask is not None:
        missing = mask.any(-1, keepdims=True) & ~np.broadcast_to(mask, (*mask.shape[:-1], state.threads))
        state.fault(
            "barrier-divergence", site, missing, "a thread does not reach a barrier that others of its block do"
        )
    if state.races is not None:
        state.races.on_barrier(None if mask is None else np.broadcast_to(mask.any(-1), (state.blocks,)))


def control_table() -> dict[type[Operation], CompileFn]:
    """Entries of the compiler's table for ops with regions, and the barrier."""
    return {UnrollOp: compile_unroll, scf.IfOp: compile_if, scf.ForOp: compile_for, BarrierOp: compile_barrier}
